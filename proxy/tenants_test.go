package proxy_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

const (
	keyA = keyMark + "of-a"
	keyB = keyMark + "of-b"
)

// two returns two tenants, each with its own key and upstream credential.
func two(base *url.URL) []*proxy.Tenant {
	tenant := func(name string, keys ...string) *proxy.Tenant {
		t := &proxy.Tenant{
			Tenant:   engine.Tenant{Name: name, Condenser: llm(0, "", patience)},
			Upstream: proxy.UpstreamConfig{BaseURL: base, APIKey: keyMark + "upstream-" + name},
		}
		for _, key := range keys {
			t.Keys = append(t.Keys, sha256.Sum256([]byte(key)))
		}
		return t
	}
	return []*proxy.Tenant{tenant("a", keyA, keyA+"-2"), tenant("b", keyB)}
}

func TestKeys(t *testing.T) {
	r := newRig(t, setup{tenants: two})
	for _, c := range []struct{ name, value, tenant string }{
		{"Authorization", "Bearer " + keyA, "a"},
		{"Authorization", "bearer   " + keyA, "a"},
		{"Authorization", "Bearer " + keyA + "-2", "a"},
		{"Authorization", keyB, "b"},
		{"X-Api-Key", keyB, "b"},
		{"Api-Key", keyB, "b"},
		{"X-Nothing", keyB, ""},
		{"Authorization", "Bearer " + keyA + "x", ""},
		{"Authorization", "Bearer " + strings.ToUpper(keyA), ""},
		{"Authorization", "Bearer", ""},
		{"Authorization", "Bearer ", ""},
		{"Authorization", "Basic " + keyA, ""},
		{"Authorization", fmt.Sprintf("Bearer %x", sha256.Sum256([]byte(keyA))), ""},
		{"Authorization", "Bearer " + keyA + " " + keyB, ""},
	} {
		resp, body := r.ask(hello, c.name, c.value)
		if c.tenant == "" {
			wantError(t, resp, body, 401, "invalid_api_key")
			if !strings.Contains(body, "'Authorization: Bearer KEY' or 'x-api-key: KEY'") {
				t.Errorf("%s: %s", c.name, body)
			}
			continue
		}
		if got := r.forwarded().Header.Get("Authorization"); resp.StatusCode != 200 || got != "Bearer "+keyMark+"upstream-"+c.tenant {
			t.Errorf("%s: %s: status %d, upstream's key %q", c.name, c.value, resp.StatusCode, got)
		}
	}
}

// TestNoKeyOfAClientGoesUpstream: if the operator's key replaces the client's, upstream gets no key of the client, wherever it was sent. The
// rest of the query is unchanged.
func TestNoKeyOfAClientGoesUpstream(t *testing.T) {
	base, got := mirror(t)
	r := newRig(t, setup{base: base, tenants: two})
	for _, c := range []struct{ header, query, want string }{
		{"Authorization", "", ""}, {"Api-Key", "", ""}, {"X-Api-Key", "", ""}, {"x-goog-api-key", "?b=%2F&a=1", "?b=%2F&a=1"},
		{"", "?key=" + keyA, ""}, {"", "?b=%2f&key=" + keyA + "&a&key=" + keyA, "?b=%2f&a"}, {"", "?%6Bey=" + keyA + "&keys=1", "?keys=1"},
		{"x-goog-api-key", "?key=" + keyB, ""},
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/embeddings"} {
			req := r.request(guard(t), http.MethodPost, path+c.query, hello)
			req.Header.Del("Authorization")
			if c.header != "" {
				req.Header.Set(c.header, keyA)
			}
			resp, err := r.client.Do(req)
			must(t, err)
			if answer := drain(t, resp); resp.StatusCode != http.StatusOK {
				t.Errorf("%v: %s: %s", c, resp.Status, answer)
				continue
			}
			up := <-got
			_, query, _ := strings.Cut(up.target, "?")
			if "?"+query != c.want && query+c.want != "" {
				t.Errorf("%v: the query is %q", c, query)
			}
			if all := fmt.Sprint(up); strings.Contains(all, keyA) || strings.Contains(all, keyB) {
				t.Errorf("%v: upstream saw the key: %v", c, all)
			}
		}
	}
}

// TestRefusedBodyIsRead: a client with a wrong key sees its answer, however much it sends.
func TestRefusedBodyIsRead(t *testing.T) {
	r := newRig(t, setup{tenants: two})
	resp, body := r.ask(messages(say("user", strings.Repeat("x", 8<<20))), "Authorization", "Bearer wrong")
	wantError(t, resp, body, 401, "invalid_api_key")
	for _, path := range []string{"/v1/models", "/"} {
		resp, err := r.client.Do(r.request(guard(t), http.MethodGet, path, ""))
		must(t, err)
		wantError(t, resp, drain(t, resp), 401, "invalid_api_key")
	}
	if n := len(r.up.Requests()); n != 0 {
		t.Errorf("%d requests went upstream", n)
	}
}

// callTurns is a conversation with tool calls whose ids are easy to guess.
func callTurns(n int) []string {
	all := []string{say("user", "look around")}
	for i := range n {
		all = append(all,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"look","arguments":"{}"}}]}`, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%d","content":%q}`, i, "at "+strings.Repeat("things ", 60)))
	}
	return all
}

// TestIsolation has one client send another's history, session key, tool call ids, summary and answers.
func TestIsolation(t *testing.T) {
	for name, c := range map[string]struct {
		tenants func(*url.URL) []*proxy.Tenant
		a, b    string
	}{
		"tenants":             {two, "Bearer " + keyA, "Bearer " + keyB},
		"credentials":         {nil, "Bearer " + keyA, "Bearer " + keyB},
		"no credential":       {nil, "Bearer " + keyA, ""},
		"credential of a kin": {nil, "Bearer " + keyA, "Bearer " + keyA + "-2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkIsolation(t, c.tenants, c.a, c.b)
		})
	}
}

// TestACredentialIsAllKeys: clients with one key in common are distinguished by another.
func TestACredentialIsAllKeys(t *testing.T) {
	r := condensing(t, setup{})
	bearer := []string{"Authorization", "Bearer " + keyA, "X-Session-Id", "shared"}
	seen := map[string]string{}
	for name, header := range map[string][]string{
		"a bearer alone": nil, "x-api-key": {"x-api-key", keyA}, "another x-api-key": {"x-api-key", keyB}, "api-key": {"api-key", keyB},
		"x-goog-api-key": {"x-goog-api-key", keyB}, "two": {"x-api-key", keyB, "api-key", keyA},
		"ocp-apim-subscription-key": {"ocp-apim-subscription-key", keyB},
	} {
		resp, _ := r.ask(hello, append(header, bearer...)...)
		got := resp.Header.Get("X-Dewpoint-Session")
		if other, known := seen[got]; known || got == "" {
			t.Errorf("%s and %s share session %q", name, other, got)
		}
		seen[got] = name
	}
	if resp, _ := r.ask(hello, append([]string{"Cookie", "session=1"}, bearer...)...); seen[resp.Header.Get("X-Dewpoint-Session")] != "a bearer alone" {
		t.Error("a cookie, which servers replace at any time, begins another session")
	}
	header := func(name string) string { return http.Header{"X-Api-Key": {keyB}}.Get(name) }
	keys, both := engine.Credential(header, "alt=sse&key="+keyA)
	_, one := engine.Credential(header, "alt=sse")
	if !slices.Equal(keys, []string{keyB, keyA}) || both == one {
		t.Errorf("the key in the query counts for nothing: %q, %q", both, one)
	}
	if keys, _ := engine.Credential(func(string) string { return "" }, "access_token="+keyA); !slices.Equal(keys, []string{keyA}) {
		t.Errorf("the keys are %q", keys)
	}
}

func checkIsolation(t *testing.T, tenants func(*url.URL) []*proxy.Tenant, a, b string) {
	summary := "ALPHA: they looked around, and hid the treasure in Elm Street."
	r := condensing(t, setup{
		tenants: tenants, condenser: llm(0, "", patience),
		upstream: fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: summary}
		}},
	})
	credential := func(value string) []string {
		header := []string{"X-Session-Id", "shared-session"}
		if value != "" {
			header = append(header, "Authorization", value)
		}
		return header
	}
	history := callTurns(8)
	r.up.Script(fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "call_secret", Name: "look", Arguments: `{"task":"find the treasure"}`}}})
	mine := r.wantCondensed(messages(history...), credential(a)...)
	if !strings.Contains(string(r.forwarded().Body), "ALPHA") {
		t.Fatalf("A's own request has no summary: %s", r.forwarded().Body)
	}
	record := string(r.forwarded().Messages[1])
	summary = "BRAVO: somebody looked around."
	for name, body := range map[string]string{
		"history":      messages(history...),
		"less history": messages(history[:5]...),
		"call id":      messages(say("user", "go on"), `{"role":"assistant","tool_calls":[{"id":"call_secret","type":"function","function":{"name":"look","arguments":"{}"}}]}`, `{"role":"tool","tool_call_id":"call_secret","content":"x"}`),
		"task":         messages(say("user", "find the treasure")),
		"first word":   messages(history[0]),
	} {
		resp, answer := r.ask(body, credential(b)...)
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d, %s", name, resp.StatusCode, answer)
		}
		if strings.Contains(string(r.forwarded().Body), "ALPHA") {
			t.Errorf("%s: B was given A's summary", name)
		}
		for _, header := range []string{"X-Dewpoint-Session", "X-Dewpoint-Thread"} {
			if got := resp.Header.Get(header); got == "" || got == mine.Header.Get(header) {
				t.Errorf("%s: %s is %q, A's", name, header, got)
			}
		}
	}
	resp := r.wantUnchanged(messages(record, say("user", "and now?")), credential(b)...)
	if got := resp.Header.Get("X-Dewpoint-Session"); got == mine.Header.Get("X-Dewpoint-Session") {
		t.Error("the summary's text leads B to A's session")
	}
	again := r.wantCondensed(messages(append(history, say("user", "more"))...), credential(a)...)
	if !strings.Contains(string(r.forwarded().Body), "ALPHA") || again.Header.Get("X-Dewpoint-Thread") != mine.Header.Get("X-Dewpoint-Thread") {
		t.Error("A's conversation does not go on as it was")
	}
}
