package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// neighbour sends a request as another client with its own key, and returns the header of the answer, which must be a success.
func neighbour(t *testing.T, p *process, path string, text []byte, headers ...string) http.Header {
	t.Helper()
	req, a := post(t, p, text)
	req.URL.Path, req.URL.RawPath, _ = strings.Cut(path, " ")
	req.Header.Set("Authorization", "Bearer sk-good")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.client.RoundTrip(req)
	ok(t, err)
	got, err := io.ReadAll(resp.Body)
	ok(t, err)
	ok(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK {
		t.Errorf("%s: %s, %s", path, resp.Status, got)
	}
	return resp.Header
}

const edgeConfig = `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: {type: embedded, path: %q, timeout: 1m}
limits: {max_body: 4MiB, bytes_in_flight: 16MiB}
`

// TestEverySpellingIsRecognised sends the same request in different spellings: each is recognised.
func TestEverySpellingIsRecognised(t *testing.T) {
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(edgeConfig, refusing(t, "sk-good"), newStore(t))))
	plain := body([]json.RawMessage{spoken(0)})
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(plain)
	ok(t, err)
	ok(t, z.Close())
	for _, path := range []string{
		"/v1/chat/completions", "/chat/completions", "/v1/v1/chat/completions", "/v1/chat//completions", "/v1/chat/completions /v1/chat/%63ompletions",
	} {
		for _, c := range []struct {
			text    []byte
			headers []string
		}{{plain, nil}, {plain, []string{"Content-Encoding", "identity"}}, {packed.Bytes(), []string{"Content-Encoding", "gzip"}}} {
			if h := neighbour(t, p, path, c.text, c.headers...); h.Get("X-Dewpoint-Session") == "" {
				t.Errorf("%s %v passed unread", path, c.headers)
			}
		}
	}
	if h := neighbour(t, p, "/v1/chat/completions", plain, "Content-Encoding", "br"); h.Get("X-Dewpoint-Unread") != "encoding" {
		t.Errorf("%v", h)
	}
}

// TestSlowClientsDoNotStarveOthers: one client sends ten bodies that never end, and requests ten answers that it does not read. Another client is
// still served.
func TestSlowClientsDoNotStarveOthers(t *testing.T) {
	up := stub(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-good" {
			_, _ = w.Write(bytes.Repeat([]byte(" "), 8<<20)) // more than a connection buffers
		}
		_, _ = io.WriteString(w, `{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"fine"}}]}`)
	})
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(edgeConfig, up, newStore(t))))
	large := body([]json.RawMessage{encode(map[string]string{"role": "user", "content": strings.Repeat("x", 3<<20)})})
	for n := range 20 {
		conn, err := net.Dial("tcp", p.Addr)
		ok(t, err)
		t.Cleanup(func() { conn.Close() })
		ok(t, conn.SetWriteDeadline(time.Now().Add(patience)))
		sent := large
		if n%2 == 0 {
			sent = large[:len(large)-1] // it never ends
		}
		_, _ = fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer sk-slow\r\nContent-Length: %d\r\n\r\n%s",
			len(large), sent)
	}
	small := body([]json.RawMessage{encode(map[string]string{"role": "user", "content": strings.Repeat("y", 200<<10)})})
	for range 5 {
		neighbour(t, p, "/v1/chat/completions", small)
	}
}
