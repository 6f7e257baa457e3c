package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// refusals returns the number of requests that the upstream refused.
func refusals(up *fakeupstream.Server) (n int) {
	for _, r := range up.Requests() {
		if r.Refused != nil {
			n++
		}
	}
	return n
}

// TestRolesAlternate plays a run against an upstream that requires alternating roles. It refuses at most one request, if the
// proxy is not configured for it, and the agent sees none of it.
func TestRolesAlternate(t *testing.T) {
	for name, c := range map[string]struct {
		section string
		refused int
	}{"learnt": {"", 1}, "configured": {"\nmodels: {" + judge.Model + ": {context_window: 128000, max_output: 16384, alternate_roles: true}}", 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Alternates: true})
			p := serve(t, "--config", s.config(t, embedded(newStore(t))+c.section))
			run := demo.Sample()
			for n := range run.Messages {
				if n > 0 && strings.Contains(string(run.Messages[n]), `"role":"assistant"`) {
					answer := send(t, p, body(run.Messages[:n]))
					ok(t, answer.finish())
					if failed := answer.Header.Get("X-Dewpoint-Condense-Failed"); answer.StatusCode != http.StatusOK || failed != "" {
						t.Fatalf("%d messages: %s, failed %q", n, answer.Status, failed)
					}
				}
			}
			if got := refusals(s.Upstream); got != c.refused {
				t.Errorf("%d refusals", got)
			}
		})
	}
}

// TestAzureDeployment condenses a request to a deployment, with the version in the base URL, and calls the summariser the same
// way.
func TestAzureDeployment(t *testing.T) {
	s := newSetting(t, fakeupstream.Options{})
	var mu sync.Mutex
	var calls []string
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost { // the list of models is requested as well
			mu.Lock()
			calls = append(calls, r.URL.RequestURI()+" "+r.Header.Get("Api-Key")+r.Header.Get("Authorization"))
			mu.Unlock()
		}
		r.URL.Path = "/v1/chat/completions"
		s.Upstream.ServeHTTP(w, r)
	}))
	defer front.Close()
	s.url = front.URL + "/openai/deployments/main?api-version=2024-10-21"
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	answer := send(t, p, body(demo.Sample().Messages[:maxSize+2]))
	ok(t, answer.finish())
	if answer.StatusCode != http.StatusOK || !strings.HasSuffix(answer.Header.Get("X-Dewpoint-Condensed"), "; summary") || len(calls) != 2 {
		t.Errorf("%s, condensed %q, %d calls", answer.Status, answer.Header.Get("X-Dewpoint-Condensed"), len(calls))
	}
	for _, call := range calls {
		if !strings.HasPrefix(call, "/openai/deployments/main/chat/completions?api-version=2024-10-21 ") {
			t.Errorf("called %s", call)
		}
	}
}

// TestRefusedCondensationIsForwardedVerbatim plays a run against an upstream that refuses condensed histories: each step is answered, only the
// first condensed request is refused, and later steps are forwarded unchanged at once. The same is true for a client that no longer wants
// condensations, and whose answers are bound to condensed histories.
func TestRefusedCondensationIsForwardedVerbatim(t *testing.T) {
	const steps = 40
	for name, seals := range map[string]fakeupstream.Seal{"content": "", "reasoning": fakeupstream.SealThinkingBlocks} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newLenient(t, fakeupstream.Options{Seals: seals, Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
				if seals == "" && strings.Contains(string(r.Body), "dewpoint_record") {
					return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "This is not allowed here."}}
				}
				return fakeupstream.Answer{Content: "Understood."}
			}})
			p := serve(t, "--config", s.config(t, embedded(newStore(t))))
			history := []json.RawMessage{encode(map[string]string{"role": "system", "content": "You help."})}
			for n := range steps {
				history = append(history, encode(map[string]string{"role": "user", "content": fmt.Sprint(n, strings.Repeat(" and so on", 40))}))
				header := http.Header{}
				if seals != "" && n >= 20 {
					header.Set("X-Dewpoint-Condense", "off")
				}
				text, err := send(t, p, body(history), header).rest()
				ok(t, err)
				var got struct {
					Choices []struct{ Message json.RawMessage }
				}
				ok(t, json.Unmarshal([]byte(text), &got))
				history = append(history, got.Choices[0].Message)
			}
			summaries := s.Upstream.SummariserCalls()
			if got := len(s.Upstream.Requests()) - summaries; got != steps+1 || summaries == 0 {
				t.Errorf("%d requests for %d steps, %d summaries", got, steps, summaries)
			}
		})
	}
}
