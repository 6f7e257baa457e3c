package e2e

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// operatorKey replaces the keys of clients in these tests.
const operatorKey = "sk-operator-0123456789"

// withOperatorKey starts a proxy that sends the operator's key to an upstream.
func withOperatorKey(t *testing.T, upstream http.HandlerFunc) *process {
	t.Helper()
	front := httptest.NewServer(upstream)
	t.Cleanup(front.Close)
	return serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q, api_key: %q}
store: %s
`, front.URL+"/v1", operatorKey, embedded(newStore(t)))))
}

// served are a path of each protocol with a body for it, and a path that passes unread.
var served = map[string]string{
	"/v1/chat/completions": `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hello."}]}`,
	"/v1/responses":        `{"model":"m","stream":true,"input":[{"role":"user","content":"Hello."}]}`,
	"/v1/messages":         `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"Hello."}]}`,
	"/v1/embeddings":       `{"model":"m","input":"Hello."}`,
}

// TestKeyInAnAnswerIsMasked has an upstream that repeats the operator's key in each form that an error can have. The client gets the error, but
// not the key.
func TestKeyInAnAnswerIsMasked(t *testing.T) {
	t.Parallel()
	half := len(operatorKey) / 2
	text := `{"error":{"message":"wrong key ` + operatorKey + `","type":"invalid_request_error"}}`
	long := fmt.Sprintf(`{"error":{"message":"wrong key %s","padding":%q}}`, operatorKey, strings.Repeat("x", 100<<10))
	chunks := func(contentType string, status int, pieces ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(status)
			for _, piece := range pieces {
				_, _ = io.WriteString(w, piece)
				w.(http.Flusher).Flush()
			}
		}
	}
	first, second, _ := strings.Cut(text, operatorKey)
	first, second = first+operatorKey[:half], operatorKey[half:]+second
	for name, answer := range map[string]http.HandlerFunc{
		"an event":               chunks("text/event-stream", 200, "data: "+text+"\n\n"),
		"a divided event":        chunks("text/event-stream", 200, "data: "+first, second+"\n\n"),
		"an event in the middle": chunks("text/event-stream", 200, "data: {}\n\n", "data: {}\n\nevent: error\ndata: "+first, second+"\n\n"),
		"chunks":                 chunks("application/json", 401, first, second),
		"chunks of a success":    chunks("application/json", 200, first, second),
		"a long error":           chunks("application/json", 401, long),
		"a long success": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(long)))
			_, _ = io.WriteString(w, long)
		},
		"a compressed error": func(w http.ResponseWriter, _ *http.Request) {
			var packed bytes.Buffer
			z := gzip.NewWriter(&packed)
			_, _ = io.WriteString(z, text)
			_ = z.Close()
			w.Header().Set("Content-Encoding", "gzip")
			w.Header().Set("Content-Length", fmt.Sprint(packed.Len()))
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write(packed.Bytes())
		},
		"an error in an unknown encoding": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "rot0")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := withOperatorKey(t, answer)
			for path, body := range served {
				_, got := roundTrip(t, p, path, body, nil)
				if strings.Contains(got, operatorKey) || strings.Contains(got, operatorKey[half:]) {
					t.Errorf("%s: the client sees the key: %.200q", path, got)
				}
				if want := "wrong key " + strings.Repeat("*", len(operatorKey)); name != "an error in an unknown encoding" && !strings.Contains(got, want) {
					t.Errorf("%s: the client does not get the error: %.200q", path, got)
				}
			}
		})
	}
}

// roundTrip sends a request, and returns the header and the body of the answer, decoded if it is compressed.
func roundTrip(t *testing.T, p *process, target, body string, header http.Header) (http.Header, string) {
	t.Helper()
	req, a := post(t, p, []byte(body))
	req.URL.Path, req.URL.RawQuery, _ = strings.Cut(target, "?")
	req.Header.Set("Anthropic-Version", "2023-06-01") // ignored in other protocols
	req.Header.Set("Accept-Encoding", "gzip")
	maps.Copy(req.Header, header)
	resp, err := a.client.RoundTrip(req)
	ok(t, err)
	a.Response = resp
	text, _ := a.rest() // a stream without its protocol's end mark is cut off
	if resp.Header.Get("Content-Encoding") == "gzip" {
		z, err := gzip.NewReader(strings.NewReader(text))
		ok(t, err)
		plain, err := io.ReadAll(z)
		ok(t, err)
		text = string(plain)
	}
	return resp.Header, text
}

// TestNoCredentialOfAClientGoesUpstream sends a client's keys in each place that can carry one. Where the operator's key replaces them, upstream
// sees none of them, and its cookies do not reach the client. What is no key passes.
func TestNoCredentialOfAClientGoesUpstream(t *testing.T) {
	t.Parallel()
	const secret = "the-secret-of-a-client"
	seen := make(chan *http.Request, 1)
	p := withOperatorKey(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		seen <- r
		w.Header().Set("Set-Cookie", "session="+secret)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	for _, name := range []string{
		"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Ocp-Apim-Subscription-Key", "Subscription-Key", "Apikey", "X-Auth-Token",
		"X-Access-Token", "Cookie", "X_Api_Key", "X-Litellm-Api-Key", "Helicone-Auth", "Cf-Aig-Authorization", "X-Portkey-Api-Key",
	} {
		checkNoCredential(t, p, seen, "", http.Header{name: {secret}}, secret)
	}
	for _, name := range []string{
		"key", "api_key", "api-key", "apikey", "access_token", "subscription-key", "Subscription-Key", "%61ccess_token", "token", "auth_token",
	} {
		checkNoCredential(t, p, seen, name+"="+secret, nil, secret)
	}
}

func checkNoCredential(t *testing.T, p *process, seen <-chan *http.Request, query string, header http.Header, secret string) {
	t.Helper()
	for path, body := range served {
		sent := http.Header{"Idempotency-Key": {"once"}, "Openai-Organization": {"org"}}
		maps.Copy(sent, header)
		roundTrip(t, p, path+"?a=1&"+query+"&max_tokens=2", body, sent)
		r := <-seen
		if all := fmt.Sprint(r.URL, r.Header); strings.Contains(all, secret) {
			t.Errorf("%s with %s%v: upstream sees the client's key: %s", path, query, header, all)
		}
		if r.Header.Get("Idempotency-Key") != "once" || r.Header.Get("Openai-Organization") != "org" || r.URL.Query().Get("a") != "1" ||
			r.URL.Query().Get("max_tokens") != "2" {
			t.Errorf("%s with %s%v: what is no key did not pass: %s %v", path, query, header, r.URL, r.Header)
		}
		if !strings.Contains(fmt.Sprint(r.Header), operatorKey) {
			t.Errorf("%s: upstream did not get the operator's key: %v", path, r.Header)
		}
	}
}

// TestCookiesOfTheOperatorStay checks that what upstream remembers of the operator's account reaches no client, and that a client with a key
// of its own keeps its cookies.
func TestCookiesOfTheOperatorStay(t *testing.T) {
	t.Parallel()
	upstream := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}
	front := httptest.NewServer(http.HandlerFunc(upstream))
	t.Cleanup(front.Close)
	own := proxyTo(t, front.URL+"/v1", embedded(newStore(t)), "")
	for p, want := range map[*process]string{withOperatorKey(t, upstream): "", own: "session=1"} {
		for path, body := range served {
			header, _ := roundTrip(t, p, path, body, nil)
			if got := header.Get("Set-Cookie"); got != want {
				t.Errorf("%s: the client gets the cookie %q, want %q", path, got, want)
			}
		}
	}
}
