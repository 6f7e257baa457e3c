package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// TestByDefaultUpstreamGetsOnlyTheClientsRequests: without a condenser in the configuration, histories are condensed by price, also for a model
// whose price is not known, and upstream gets one request for each of the client's: no call of ours is made with the client's key. That holds
// when the client asks for a condensation, too.
func TestByDefaultUpstreamGetsOnlyTheClientsRequests(t *testing.T) {
	t.Parallel()
	const steps, known, unknown = 40, "gpt-5.5", "our-own-model"
	const said = "usual ratios decide when to condense"
	step := strings.Repeat("The shelf in aisle nine holds parcels. ", 250) // 2,000 tokens
	for name, c := range map[string]struct{ path, field, limit, answer string }{
		"chat":      {"/chat/completions", "messages", "max_tokens", `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Go on."}}]}`},
		"messages":  {"/messages", "messages", "max_tokens", `{"type":"message","role":"assistant","content":[{"type":"text","text":"Go on."}],"stop_reason":"end_turn"}`},
		"responses": {"/responses", "input", "max_output_tokens", `{"object":"response","status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Go on."}]}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int64
			upstream := stub(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				_, _ = io.WriteString(w, c.answer)
			})
			p := serve(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", upstream, "--store", newStore(t))
			for _, model := range []string{known, unknown} {
				var history []any
				condensed, before := 0, requests.Load()
				for n := range steps {
					history = append(history, map[string]any{"role": "user", "content": fmt.Sprintf("Parcel %d of %s: %s", n, model, step)})
					req, a := post(t, p, encode(map[string]any{"model": model, c.field: history, c.limit: 100}))
					req.URL.Path = "/v1" + c.path
					if n == steps-2 {
						req.Header.Set("X-Dewpoint-Condense", "now")
					}
					resp, err := a.client.RoundTrip(req)
					ok(t, err)
					_, err = io.Copy(io.Discard, resp.Body)
					ok(t, err)
					ok(t, resp.Body.Close())
					if resp.Header.Get("X-Dewpoint-Condensed") != "" {
						condensed++
					}
					history = append(history, map[string]any{"role": "assistant", "content": "Go on."})
				}
				if got := requests.Load() - before; got != steps || condensed < 2 {
					t.Errorf("%s: upstream got %d requests for %d, of which %d were condensed", model, got, steps, condensed)
				}
			}
			if lines := strings.Count(p.log.String(), said); lines != 1 || !strings.Contains(p.log.String(), `"model":"`+unknown+`","cached_input":0.1,"output":5`) {
				t.Errorf("the log says so %d times, and not of the model without a price: %s", lines, p.log)
			}
		})
	}
}
