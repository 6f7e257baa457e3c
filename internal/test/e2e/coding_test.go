package e2e

import (
	"compress/gzip"
	"compress/zlib"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// packing writes an answer in a coding.
type packing struct {
	http.ResponseWriter
	coding string
	to     interface {
		io.WriteCloser
		Flush() error
	}
}

func (p packing) WriteHeader(status int) {
	p.Header().Set("Content-Encoding", p.coding)
	p.Header().Del("Content-Length")
	p.ResponseWriter.WriteHeader(status)
}

func (p packing) Write(text []byte) (int, error) { return p.to.Write(text) }

// Flush implements http.Flusher.
func (p packing) Flush() {
	_ = p.to.Flush()
	p.ResponseWriter.(http.Flusher).Flush()
}

// pack returns a writer whose answer is in a coding.
func pack(t testing.TB, w http.ResponseWriter, coding string) packing {
	p := packing{w, coding, nil}
	switch coding {
	case "gzip":
		p.to = gzip.NewWriter(w)
	case "deflate":
		p.to = zlib.NewWriter(w)
	case "br":
		p.to = brotli.NewWriter(w)
	default:
		z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
		ok(t, err)
		p.to = z
	}
	return p
}

// compress makes the setting's upstream compress every answer, whether or not it is asked to.
func (s *setting) compress(t testing.TB, coding string) {
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		packed := pack(t, w, coding)
		s.forward(packed, r)
		_ = packed.to.Close() // it fails if the client has left
	}))
	t.Cleanup(front.Close)
	s.url = front.URL + "/v1"
}

// TestUpstreamThatCompresses: some upstreams and gateways compress although they are asked not to. The proxy reads their answers in every
// protocol: it recovers from a refusal, counts the usage, and the client gets an answer that is not compressed.
func TestUpstreamThatCompresses(t *testing.T) {
	t.Parallel()
	for _, coding := range []string{"gzip", "deflate", "br", "zstd"} {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprint(coding, ", streamed ", stream), func(t *testing.T) {
				t.Parallel()
				readsCompressed(t, coding, stream)
			})
		}
	}
}

func readsCompressed(t *testing.T, coding string, stream bool) {
	s := newSetting(t, fakeupstream.Options{ContextWindow: 3000})
	s.compress(t, coding)
	p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
	history := make([]json.RawMessage, 41)
	for i := range history {
		history[i] = encode(map[string]string{"role": []string{"user", "assistant"}[i%2], "content": fmt.Sprintf("part %d %s", i, strings.Repeat("more of it ", 40))})
	}
	for _, c := range []struct{ path, list, end string }{
		{"/chat/completions", "messages", "[DONE]"}, {"/messages", "messages", "message_stop"}, {"/responses", "input", "response.completed"},
	} {
		request := map[string]any{"model": "model-of" + c.path, c.list: history, "stream": stream}
		switch {
		case c.path == "/messages":
			request["max_tokens"] = 400
		case c.path == "/chat/completions" && stream:
			request["stream_options"] = map[string]bool{"include_usage": true}
		}
		a := sendTo(t, p, c.path, encode(request), http.Header{"Accept-Encoding": {"gzip, deflate, br, zstd"}})
		answer, err := io.ReadAll(a.Body)
		ok(t, err)
		whole := json.Valid(answer)
		if stream {
			whole = strings.Contains(string(answer), c.end)
		}
		if !strings.HasPrefix(a.Header.Get("X-Dewpoint-Condensed"), "overflow") || a.Header.Get("Content-Encoding") != "" || !whole {
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

// TestHiddenCallsInCompressedAnswers: the client does not see calls of the proxy's own tools in compressed answers either.
func TestHiddenCallsInCompressedAnswers(t *testing.T) {
	t.Parallel()
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprint("streamed ", stream), func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			s.compress(t, "gzip")
			s.Upstream.Script(
				fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "call_1", Name: "recall", Arguments: `{"query":"the port"}`}}},
				fakeupstream.Answer{Content: "It is 8443."},
			)
			p := serve(t, "--config", s.write(t, embedded(newStore(t)), "llm_config: cheap, max_size: 60, recall: true", "{delay: 0s, timeout: 1m}"))
			request := map[string]any{
				"model": "gpt-x", "stream": stream, "messages": []any{map[string]string{"role": "user", "content": "Which port is it?"}},
				"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "run", "parameters": map[string]any{"type": "object"}}}},
			}
			answer, err := sendTo(t, p, "/chat/completions", encode(request)).rest()
			ok(t, err)
			if strings.Contains(answer, "recall") || s.Upstream.Unplayed() != 0 {
				t.Errorf("%d answers were not asked for. The client got %s", s.Upstream.Unplayed(), answer)
			}
		})
	}
}
