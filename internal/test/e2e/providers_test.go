package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// standIn is a provider's server, which records what it gets, the proxy's own calls included.
type standIn struct {
	name string
	url  string

	mu    sync.Mutex
	calls []string // method, path and credentials
	texts []string // bodies
}

// providers starts a server for each of three providers and returns the section upstream that leads to them, with further keys of the sections.
func providers(t *testing.T, keys map[string]string) (servers map[string]*standIn, section string) {
	t.Helper()
	servers, section = map[string]*standIn{}, "{"
	for _, name := range []string{"openai", "anthropic", "chatgpt"} {
		s := &standIn{name: name}
		fake := fakeupstream.New(fakeupstream.Options{IsSummary: func(r *fakeupstream.Request) bool {
			return !r.Stream && strings.Contains(string(r.Body), "NEXT_STEP")
		}})
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			s.note(r)
			fake.ServeHTTP(w, r)
		}))
		t.Cleanup(func() {
			fake.Close()
			server.CloseClientConnections()
			server.Close()
		})
		s.url, servers[name] = server.URL, s
		section += fmt.Sprintf("%s: {base_url: %q%s}, ", name, s.url+"/v1", keys[name])
	}
	return servers, section + keys[""] + "}"
}

func (s *standIn) note(r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(text))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, r.Method+" "+r.URL.Path+" "+strings.Join(append(r.Header["Authorization"], r.Header["X-Api-Key"]...), " "))
	s.texts = append(s.texts, string(text))
}

// got returns the number of calls that contain a text.
func (s *standIn) got(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.calls {
		if strings.Contains(call, text) {
			n++
		}
	}
	return n
}

// summaries returns the number of summaries that the server was asked for.
func (s *standIn) summaries() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, text := range s.texts {
		if strings.Contains(text, "NEXT_STEP") && strings.Contains(text, "DECISIONS") {
			n++
		}
	}
	return n
}

// wantKeys checks that every call had one of the keys, and no other.
func (s *standIn) wantKeys(t *testing.T, keys ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, call := range s.calls {
		if _, key, _ := strings.Cut(call[strings.IndexByte(call, ' ')+1:], " "); !slices.Contains(keys, strings.TrimPrefix(key, "Bearer ")) {
			t.Errorf("%s got %q, want one of the keys %q", s.name, call, keys)
		}
	}
}

// talk sends requests of a growing history in one protocol, long enough to be condensed.
func talk(t *testing.T, url string, header map[string]string, protocol string) {
	t.Helper()
	var history []any
	for n := range 14 {
		history = append(history, map[string]any{"role": "user", "content": fmt.Sprintf("Question %d: %s", n, strings.Repeat("why and how? ", 40))})
		request := map[string]any{"model": "gpt-4.1", "messages": history}
		path := "/chat/completions"
		switch protocol {
		case "messages":
			request["model"], request["max_tokens"], path = "claude-sonnet-4-5", 100, "/messages"
		case "responses":
			request, path = map[string]any{"model": "gpt-5.5", "input": history}, "/responses"
		}
		text, err := json.Marshal(request)
		ok(t, err)
		fetch(t, http.MethodPost, url+path, header, text)
		history = append(history, map[string]any{"role": "assistant", "content": fmt.Sprintf("Answer %d.", n)})
	}
}

// fetch sends a request, and returns the body of its answer, which must have status 200.
func fetch(t *testing.T, method, url string, header map[string]string, body []byte) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	ok(t, err)
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(t, err)
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s %s: %s %s", method, url, resp.Status, text)
	}
	return string(text)
}

// Headers of clients of three providers.
var (
	openAIClient    = map[string]string{"Authorization": "Bearer client-openai"}
	anthropicClient = map[string]string{"x-api-key": "client-anthropic", "anthropic-version": "2023-06-01"}
	codexClient     = map[string]string{"Authorization": "Bearer client-chatgpt", "chatgpt-account-id": "account"}
)

// condensesSoon is a configuration under which requests of talk wait for a summary by their own model.
const condensesSoon = "condenser: {type: llm, max_size: 10, keep_first: 1, min_tokens: 0, trigger: limits, wait: deadline, deadline: 1m, background_at: 0%s}\n"

func serveProviders(t *testing.T, section, condenser, more string) *process {
	t.Helper()
	return serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(
		"listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nshutdown: {delay: 0s}\nstore: %s\nupstream: %s\n"+condensesSoon+"%s",
		embedded(newStore(t)), section, condenser, more)))
}

// TestEachProviderGetsItsOwnClientsAndKeys: one process serves the clients of three providers at the same time. Requests, lists of models and
// summaries of one provider's client go only to that provider, with the client's key.
func TestEachProviderGetsItsOwnClientsAndKeys(t *testing.T) {
	t.Parallel()
	servers, section := providers(t, nil)
	p := serveProviders(t, section, "", "")
	var clients sync.WaitGroup
	for protocol, header := range map[string]map[string]string{"chat": openAIClient, "messages": anthropicClient, "responses": codexClient} {
		clients.Go(func() {
			talk(t, p.url(), header, protocol)
			fetch(t, http.MethodGet, p.url()+"/models", header, nil)
		})
	}
	clients.Wait()
	for name, key := range map[string]string{"openai": "client-openai", "anthropic": "client-anthropic", "chatgpt": "client-chatgpt"} {
		s := servers[name]
		s.wantKeys(t, key)
		if s.got("GET /v1/models") == 0 || s.got("POST") <= 14 || s.summaries() == 0 {
			t.Errorf("%s got %d calls for models, %d others, %d for summaries", name, s.got("GET /v1/models"), s.got("POST"), s.summaries())
		}
	}
}

// TestOperatorsKeysStayWithTheirProvider: keys of the operator's are only sent to the provider that they are for, also by a condenser model.
func TestOperatorsKeysStayWithTheirProvider(t *testing.T) {
	t.Parallel()
	servers, section := providers(t, map[string]string{"": "api_key: operator-openai", "anthropic": ", api_key: operator-anthropic"})
	p := serveProviders(t, section, ", llm_config: cheap", "llms: {cheap: {model: gpt-4o-mini}}\n")
	talk(t, p.url(), openAIClient, "chat")
	talk(t, p.url(), anthropicClient, "messages")
	talk(t, p.url(), codexClient, "responses")
	servers["openai"].wantKeys(t, "operator-openai")
	servers["anthropic"].wantKeys(t, "operator-anthropic")
	servers["chatgpt"].wantKeys(t, "client-chatgpt")
	if n := servers["openai"].summaries(); n < 3 || servers["anthropic"].summaries()+servers["chatgpt"].summaries() > 0 {
		t.Errorf("summaries by the condenser model: %d at its own provider, %d at others", n, servers["anthropic"].summaries()+servers["chatgpt"].summaries())
	}
}

// TestTenantsKeysGoToNoProvider: a tenant's key, which is only valid here, is not sent to a provider for which the operator has no key.
func TestTenantsKeysGoToNoProvider(t *testing.T) {
	t.Parallel()
	servers, section := providers(t, map[string]string{"": "api_key: operator-openai"})
	p := serveProviders(t, section, "", "tenants: [{name: a, api_keys: [{sha256: "+
		"2c70e12b7a0646f92279f427c7b38e7334d8e5389cff167a1dc30e73f826b683}]}]\n") // of "key"
	request := []byte(`{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"Hello"}]}`)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url()+"/messages", bytes.NewReader(request))
	ok(t, err)
	req.Header.Set("x-api-key", "key")
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(t, err)
	if resp.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "no key for the provider") || servers["anthropic"].got("") > 0 {
		t.Errorf("%s %s, %d calls", resp.Status, text, servers["anthropic"].got(""))
	}
	fetch(t, http.MethodGet, p.url()+"/models", map[string]string{"Authorization": "Bearer key"}, nil)
	servers["openai"].wantKeys(t, "operator-openai")
}
