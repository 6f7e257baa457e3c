package e2e

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// zipping writes an answer in gzip.
type zipping struct {
	http.ResponseWriter
	to *gzip.Writer
}

func (z zipping) WriteHeader(status int) {
	z.Header().Set("Content-Encoding", "gzip")
	z.Header().Del("Content-Length")
	z.ResponseWriter.WriteHeader(status)
}

func (z zipping) Write(p []byte) (int, error) { return z.to.Write(p) }

// TestUpstreamThatCompresses: agents accept compressed answers. The proxy can still read an upstream that compresses for such clients, in every
// protocol: it recovers from a refusal and counts the usage.
func TestUpstreamThatCompresses(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{ContextWindow: 3000})
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			z := zipping{w, gzip.NewWriter(w)}
			defer z.to.Close()
			w = z
		}
		s.forward(w, r)
	}))
	t.Cleanup(front.Close)
	s.url = front.URL + "/v1"
	p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
	history := make([]json.RawMessage, 41)
	for i := range history {
		history[i] = encode(map[string]string{"role": []string{"user", "assistant"}[i%2], "content": fmt.Sprintf("part %d %s", i, strings.Repeat("more of it ", 40))})
	}
	for _, c := range []struct{ path, list string }{{"/chat/completions", "messages"}, {"/messages", "messages"}, {"/responses", "input"}} {
		request := map[string]any{"model": "model-of" + c.path, c.list: history}
		if c.path == "/messages" {
			request["max_tokens"] = 400
		}
		a := sendTo(t, p, c.path, encode(request), http.Header{"Accept-Encoding": {"gzip, deflate, br, zstd"}})
		answer, err := io.ReadAll(a.Body)
		ok(t, err)
		if !strings.HasPrefix(a.Header.Get("X-Dewpoint-Condensed"), "overflow") || a.Header.Get("Content-Encoding") != "" || !json.Valid(answer) {
			t.Errorf("%s: condensed %q: %.300q", c.path, a.Header.Get("X-Dewpoint-Condensed"), answer)
		}
	}
	sessiontest.Eventually(t, "the usage of all three is counted", func() error {
		if metered := (operator{p: p}).where("prompt_tokens"); len(metered) != 3 {
			return fmt.Errorf("that of %v is", metered)
		}
		return nil
	})
}
