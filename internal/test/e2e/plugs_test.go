package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// TestAGatewayThatReportsUsageCondensesByPriceAsTheProxyDoes: the provider counts more tokens than we do, which moves the steps at which
// condensing pays. A gateway that reports what the provider counted forwards at each step what the proxy forwards. One that does not report
// forwards something else at some step, so the reports are what makes them equal.
func TestAGatewayThatReportsUsageCondensesByPriceAsTheProxyDoes(t *testing.T) {
	t.Parallel()
	const steps = 60
	seen := make(chan []byte, 1)
	answering := func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost { // it is asked for its models, too
			http.NotFound(w, r)
			return
		}
		body, _ := io.ReadAll(r.Body)
		seen <- body
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Go on."}}],"usage":%s}`, bill(body))
	}
	server := httptest.NewServer(http.HandlerFunc(answering))
	t.Cleanup(server.Close)
	start := func() *process {
		return serve(t, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--upstream", server.URL+"/v1", "--store", newStore(t))
	}
	proxied, reporting, silent := start(), start(), start()
	var history []any
	condensed, differ := 0, 0
	for n := range steps {
		history = append(history, map[string]any{"role": "user", "content": fmt.Sprintf("Parcel %d: %s", n, strings.Repeat("The shelf in aisle nine holds parcels. ", 250))})
		request := encode(map[string]any{"model": "gpt-4.1", "messages": history})
		if status, text := postBody(t, proxied, "/chat/completions", string(request)); status != http.StatusOK {
			t.Fatalf("status %d: %.300s", status, text)
		}
		want := messagesOf(t, <-seen)
		got, id := compressed(t, reporting, request)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: the gateway forwards %d messages, the proxy %d", n, len(got), len(want))
		}
		forwarded := encode(map[string]any{"model": "gpt-4.1", "messages": got})
		if _, text := postBody(t, reporting, "/usage", fmt.Sprintf(`{"id":%q,"usage":%s}`, id, bill(forwarded))); string(text) != `{"recorded":true}` {
			t.Fatalf("step %d: the report was answered with %s", n, text)
		}
		if len(want) < len(history) {
			condensed++
		}
		if unreported, _ := compressed(t, silent, request); !reflect.DeepEqual(unreported, want) {
			differ++
		}
		history = append(history, map[string]any{"role": "assistant", "content": "Go on."})
	}
	t.Logf("%d steps, %d condensed; without reports %d differ", steps, condensed, differ)
	if condensed < 5 || differ == 0 {
		t.Errorf("%d of %d steps are condensed, and %d differ without reports", condensed, steps, differ)
	}
}

// bill is what a provider says that a body used, of which it had nothing in its cache.
func bill(body []byte) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":0}}`, len(body)/2)
}

func messagesOf(t *testing.T, body []byte) []any {
	t.Helper()
	var o struct{ Messages []any }
	ok(t, json.Unmarshal(body, &o))
	return o.Messages
}

// compressed returns what /v1/compress makes of a request's messages, and the id of the request.
func compressed(t *testing.T, p *process, request []byte) (messages []any, id string) {
	t.Helper()
	status, text := postBody(t, p, "/compress", string(request))
	var o struct {
		Messages []any
		Session  struct{ Request string }
	}
	if err := json.Unmarshal(text, &o); err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v: %.300s", status, err, text)
	}
	return o.Messages, o.Session.Request
}
