package e2e

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// web is an upstream whose answers have the CORS headers that the test wants, and which counts preflights.
type web struct {
	*httptest.Server
	header     atomic.Pointer[http.Header]
	preflights atomic.Int64
}

func newWeb(t testing.TB) *web {
	w := &web{}
	w.Server = httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodOptions {
			w.preflights.Add(1)
		}
		if h := w.header.Load(); h != nil {
			for name, values := range *h {
				out.Header()[name] = values
			}
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Yes."},"finish_reason":"stop"}]}`)
	}))
	t.Cleanup(w.Close)
	return w
}

// proxy starts a proxy before the upstream with more configuration.
func (w *web) proxy(t testing.TB, more string) *process {
	t.Helper()
	return serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
store: %s
condenser: {type: noop}
limits: {max_body: 1KiB}
%s`, embedded(newStore(t)), strings.ReplaceAll(more, "URL", w.URL))))
}

// browse sends a request with headers written as NAME: VALUE.
func browse(t testing.TB, p *process, method, path, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequest(method, "http://"+p.Addr+path, strings.NewReader(body))
	ok(t, err)
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	ok(t, err)
	_, err = io.Copy(io.Discard, resp.Body)
	ok(t, err)
	_ = resp.Body.Close()
	return resp
}

const (
	origin = "Origin: https://app.example"
	wants  = "Access-Control-Request-Method: POST"
)

// allowed returns the CORS headers of a response, in a fixed order.
func allowed(resp *http.Response) string {
	h := resp.Header
	return fmt.Sprintf("%d %s|%s|%s|%s", resp.StatusCode, strings.Join(h["Access-Control-Allow-Origin"], "+"), h.Get("Access-Control-Allow-Methods"),
		h.Get("Access-Control-Allow-Headers"), strings.Join(h["Vary"], "+"))
}

// TestPreflights: a preflight is answered here, without a key, and says no more than the browser asks for.
func TestPreflights(t *testing.T) {
	t.Parallel()
	const open, tenants, listed = "upstream: {base_url: URL/v1}", "upstream: {base_url: URL/v1, api_key: k}\ntenants: {a: {%s}}\n", "cors: {origins: [\"https://app.example\"]}\n"
	with := fmt.Sprintf(tenants, keysOf("a"))
	const asks = "Vary: Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
	_, vary, _ := strings.Cut(asks, ": ")
	for name, c := range map[string]struct {
		config  string
		headers []string
		want    string
	}{
		"local upstream":   {open, []string{origin, wants}, "204 |||" + vary},
		"without tenants":  {"upstream: {base_url: \"https://api.openai.com/v1\"}", []string{origin, wants, "Access-Control-Request-Headers: authorization,content-type"}, "204 *|POST|authorization, content-type|" + vary},
		"with tenants":     {with, []string{origin, wants, "Access-Control-Request-Headers: x-api-key, anthropic-version"}, "204 *|POST|x-api-key, anthropic-version|" + vary},
		"listed":           {with + listed, []string{origin, wants}, "204 https://app.example|POST||" + vary},
		"not listed":       {with + listed, []string{"Origin: https://app.example.evil", wants}, "204 |||" + vary},
		"none":             {with + "cors: {origins: []}\n", []string{origin, wants}, "204 |||" + vary},
		"operator's key":   {"upstream: {base_url: URL/v1, api_key: k}", []string{origin, wants}, "204 |||" + vary},
		"opened on demand": {"upstream: {base_url: URL/v1, api_key: k}\ncors: {origins: [\"*\"]}\n", []string{origin, wants}, "204 *|POST||" + vary},
		"odd method":       {with, []string{origin, "Access-Control-Request-Method: PO ST"}, "204 *|||" + vary},
		"odd headers":      {with, []string{origin, wants, "Access-Control-Request-Headers: a b, x-ok, <i>, " + strings.Repeat("y", 200)}, "204 *|POST|x-ok|" + vary},
		"many headers":     {with, []string{origin, wants, "Access-Control-Request-Headers: " + strings.TrimSuffix(strings.Repeat("z,", 500), ",")}, "204 *|POST|" + strings.TrimSuffix(strings.Repeat("z, ", 64), ", ") + "|" + vary},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWeb(t)
			p := w.proxy(t, c.config)
			for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/models"} {
				resp := browse(t, p, http.MethodOptions, path, "", c.headers...)
				if got := allowed(resp); got != c.want || resp.Close {
					t.Errorf("%s: got %s, want %s; closed: %t", path, got, c.want, resp.Close)
				}
			}
			if n := w.preflights.Load(); n > 0 {
				t.Errorf("upstream got %d preflights", n)
			}
		})
	}
}

// TestOptionsThatAreNoPreflight go upstream, or are refused, like every other method.
func TestOptionsThatAreNoPreflight(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	p := w.proxy(t, fmt.Sprintf("upstream: {base_url: URL/v1, api_key: k}\ntenants: {a: {%s}}", keysOf("a")))
	if resp := browse(t, p, http.MethodOptions, "/v1/models", "", origin); resp.StatusCode != 401 {
		t.Errorf("without a key: %s", resp.Status)
	}
	if resp := browse(t, p, http.MethodOptions, "/v1/models", "", origin, "Authorization: Bearer key-a"); resp.StatusCode != 200 || w.preflights.Load() != 1 {
		t.Errorf("with a key: %s", resp.Status)
	}
}

// TestOwnErrorsHaveCORSHeaders: a page can read each of our own errors, in every protocol, and the headers that describe it.
func TestOwnErrorsHaveCORSHeaders(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	ok(t, closed.Close())
	key := func(name string) string { return "Authorization: Bearer key-" + name }
	for _, c := range []struct {
		cors, origin, vary string
	}{
		{"", "*", ""},
		{"cors: {origins: [\"https://other.example\", \"https://app.example\"]}\n", "https://app.example", "Origin"},
		{"cors: {origins: [\"https://other.example\"]}\n", "", "Origin"},
		{"cors: {origins: []}\n", "", ""},
	} {
		p := w.proxy(t, c.cors+fmt.Sprintf(`
upstream: {base_url: URL/v1, api_key: k}
tenants:
  a: {%s}
  limited: {%s, limits: {requests_per_minute: 1}}
  cut: {%s, upstream: {base_url: "http://%s/v1", api_key: k}}
`, keysOf("a"), keysOf("limited"), keysOf("cut"), closed.Addr()))
		browse(t, p, http.MethodPost, "/v1/chat/completions", "{}", key("limited"))
		for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/embeddings"} {
			for want, send := range map[int][]string{
				401: {"{}", origin},
				400: {"{}", origin, key("a")},
				413: {strings.Repeat("x", 2000), origin, key("a")},
				426: {"{}", origin, key("a"), "Upgrade: websocket", "Connection: Upgrade"},
				429: {"{}", origin, key("limited")},
				502: {`{"model":"m","messages":[{"role":"user","content":"hi"}],"input":"hi","max_tokens":9}`, origin, key("cut")},
			} {
				to := path
				if want == 400 {
					to += "/%2e%2e/x" // which climbs
				}
				resp := browse(t, p, http.MethodPost, to, send[0], send[1:]...)
				if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != want || got != c.origin || resp.Header.Get("Vary") != c.vary {
					t.Errorf("%q %s: %d with origin %q, vary %q; want %d, %q, %q", c.cors, to, resp.StatusCode, got, resp.Header.Get("Vary"), want, c.origin, c.vary)
				}
				if exposes := strings.Contains(resp.Header.Get("Access-Control-Expose-Headers"), "X-Dewpoint-Request-Id"); exposes != (c.origin != "") {
					t.Errorf("%q %s: exposes %q", c.cors, to, resp.Header.Get("Access-Control-Expose-Headers"))
				}
			}
		}
	}
}

// TestRelayedAnswersHaveCORSHeaders: an answer that upstream gives without CORS headers gets ours; otherwise upstream's are kept, and only the
// names of our headers are added.
func TestRelayedAnswersHaveCORSHeaders(t *testing.T) {
	t.Parallel()
	w := newWeb(t)
	p := w.proxy(t, "upstream: {base_url: URL/v1}\ncors: {origins: [\"https://app.example\"]}")
	post := func(headers ...string) *http.Response {
		return browse(t, p, http.MethodPost, "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, headers...)
	}
	if got, want := allowed(post(origin)), "200 https://app.example|||Origin"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := allowed(post("Origin: https://evil.example")); got != "200 |||Origin" {
		t.Errorf("another origin gets %s", got)
	}
	if got := allowed(post()); got != "200 |||" {
		t.Errorf("a client that is no browser gets %s", got)
	}
	w.header.Store(&http.Header{"Access-Control-Allow-Origin": {"https://upstream.example"}, "Access-Control-Expose-Headers": {"X-Upstream"}, "Vary": {"Accept"}})
	resp := post(origin)
	if got, want := allowed(resp), "200 https://upstream.example|||Accept"; got != want {
		t.Errorf("upstream's headers became %s, want %s", got, want)
	}
	if exposed := resp.Header["Access-Control-Expose-Headers"]; len(exposed) != 2 || !slices.Contains(exposed, "X-Upstream") || !strings.Contains(strings.Join(exposed, ", "), "X-Dewpoint-Tokens") {
		t.Errorf("exposed are %q", exposed)
	}
}
