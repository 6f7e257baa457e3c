package proxy_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// azure is a server that serves calls of deployments only, with a version and a key in its own header.
type azure struct {
	*httptest.Server
	key string

	mu    sync.Mutex
	paths []string
	calls []*http.Request
	large int // bytes of the last body
}

func newAzure(t *testing.T, key string) *azure {
	t.Helper()
	completions := fakeupstream.New(fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "USER_CONTEXT: tea is to be made, and all that was said of it is kept here in short."}
	}})
	t.Cleanup(completions.Close)
	a := &azure{key: key}
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		a.mu.Lock()
		a.paths, a.calls, a.large = append(a.paths, r.URL.Path), append(a.calls, r), len(body)
		a.mu.Unlock()
		deployment := strings.HasPrefix(r.URL.Path, "/openai/deployments/") && strings.HasSuffix(r.URL.Path, "/chat/completions")
		if !deployment || r.URL.Query().Get("api-version") != "2024-10-21" || r.Header.Get("Api-Key") != key || r.Header.Get("Authorization") != "" {
			http.Error(w, `{"error":{"code":"401","message":"Access denied due to invalid subscription key or wrong API endpoint."}}`, http.StatusUnauthorized)
			return
		}
		if !bytes.Contains(body, []byte(`"model":`)) {
			body = append([]byte(`{"model":"deployed",`), body[1:]...)
		}
		r.URL.Path, r.Body = "/v1/chat/completions", io.NopCloser(bytes.NewReader(body))
		completions.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// TestAzure: calls of a deployment are condensed. Our own calls go to a deployment with the same version, the headers of the organisation
// and of gateways, and the client's key or the configured one. With a key of the summariser's own they have none of the client's headers.
func TestAzure(t *testing.T) {
	for name, c := range map[string]struct {
		configured, query, summariser, key, want string
	}{
		"client's key, own model":     {"", "", "", "", "/openai/deployments/Our-GPT/chat/completions"},
		"configured key, other model": {keyMark + "azure", "", "small", "", "/openai/deployments/small/chat/completions"},
		"version in the base":         {"", "?api-version=2024-10-21", "", "", "/openai/deployments/Our-GPT/chat/completions"},
		"summariser's own key":        {"", "", "", keyMark + "azure", "/openai/deployments/Our-GPT/chat/completions"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAzure(t, keyMark+"azure")
			condenser := condense.NewLLM(condense.LLMSettings{
				Settings:   condense.Settings{MaxSize: 10, KeepFirst: 2, MinimumProgress: 0.1},
				Summariser: summariser.Caller{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience}, Model: c.summariser,
				Endpoint: condense.Endpoint{APIKey: c.key},
			})
			r := newRig(t, setup{base: a.URL + c.query, tenants: func(base *url.URL) []*proxy.Tenant {
				return []*proxy.Tenant{{
					Tenant:   engine.Tenant{Name: "default", Anonymous: true, Condenser: condenser},
					Upstream: proxy.UpstreamConfig{BaseURL: base, APIKey: c.configured},
				}}
			}})
			body := strings.Replace(messages(turns("tea", 21)...), `"model":"gpt-4o",`, "", 1)
			path := "/openai/deployments/Our-GPT/chat/completions"
			if c.query == "" {
				path += "?api-version=2024-10-21"
			}
			req := r.request(t.Context(), http.MethodPost, path, body)
			req.Header.Del("Authorization")
			req.Header.Set("Api-Key", keyMark+"azure")
			req.Header.Set("Helicone-Property-App", "tea")
			req.Header.Set("OpenAI-Organization", "org-1")
			resp, err := r.client.Do(req)
			must(t, err)
			answer := drain(t, resp)
			if resp.StatusCode != http.StatusOK || !strings.HasSuffix(resp.Header.Get("X-Dewpoint-Condensed"), "; summary") || a.large >= len(body) {
				t.Fatalf("%s, condensed %q, failed %q: %s", resp.Status, resp.Header.Get("X-Dewpoint-Condensed"),
					resp.Header.Get("X-Dewpoint-Condense-Failed"), answer)
			}
			own, last := a.calls[0], len(a.paths)-1
			if a.paths[0] != c.want || a.paths[last] != "/openai/deployments/Our-GPT/chat/completions" {
				t.Errorf("called %v", a.paths)
			}
			billed := own.Header.Get("Helicone-Property-App") == "tea" && own.Header.Get("OpenAI-Organization") == "org-1"
			unbilled := own.Header.Get("Helicone-Property-App")+own.Header.Get("OpenAI-Organization") == ""
			if c.key == "" && !billed || c.key != "" && !unbilled {
				t.Errorf("our own call has the headers %v", own.Header)
			}
		})
	}
}
