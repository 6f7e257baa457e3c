package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// lookup is a call of an agent that reads files, and its result.
type lookup struct{ id, output string }

// reader writes the requests of an agent that reads files, in one of the protocols.
type reader struct {
	path    string
	request func(messages []any) any
	prompt  any
	step    func(l lookup) []any
}

type object = map[string]any

func readers() map[string]reader {
	const model, task, arguments = "gpt-x", "Find the fault in the parcel service.", `{"command":"cat depot.go"}`
	user := object{"role": "user", "content": task}
	return map[string]reader{
		"chat": {
			"/chat/completions", func(m []any) any { return object{"model": model, "messages": m} }, user,
			func(l lookup) []any {
				call := object{"id": l.id, "type": "function", "function": object{"name": "run", "arguments": arguments}}
				return []any{object{"role": "assistant", "tool_calls": []any{call}}, object{"role": "tool", "tool_call_id": l.id, "content": l.output}}
			},
		},
		"messages": {
			"/messages", func(m []any) any { return object{"model": "claude-x", "max_tokens": 400, "messages": m} }, user,
			func(l lookup) []any {
				call := object{"type": "tool_use", "id": l.id, "name": "run", "input": object{"command": "cat depot.go"}}
				result := object{"type": "tool_result", "tool_use_id": l.id, "content": l.output}
				return []any{object{"role": "assistant", "content": []any{call}}, object{"role": "user", "content": []any{result}}}
			},
		},
		"responses": {
			"/responses", func(m []any) any { return object{"model": model, "store": false, "input": m} }, user,
			func(l lookup) []any {
				return []any{object{"type": "function_call", "call_id": l.id, "name": "run", "arguments": arguments},
					object{"type": "function_call_output", "call_id": l.id, "output": l.output}}
			},
		},
	}
}

// source returns some lines of a file.
func source(from, to int) string {
	var b strings.Builder
	for ; from <= to; from++ {
		fmt.Fprintf(&b, "\tparcel%d := depot.Take(%d) // in the order in which they came\n", from, from)
	}
	return b.String()
}

// TestLosslessTrim: colours are removed, and lines that were read before become a note. The other replica, and a restarted one,
// forward the same bytes. Once the first reading is hidden, no note refers to it.
func TestLosslessTrim(t *testing.T) {
	redis := sessiontest.StartRedis(t)
	for name, r := range readers() {
		t.Run(name, func(t *testing.T) {
			s := newSetting(t, fakeupstream.Options{})
			config := writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: pipeline, condensers: [{type: lossless_trim}, {type: amortized_forgetting, max_size: 16, keep_first: 1, min_tokens: 0}]}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, inRedis(redis.Addr)))
			pair := [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
			history := []any{r.prompt}
			ask := func(p *process) (forwarded []byte) {
				t.Helper()
				if a := sendTo(t, p, r.path, encode(r.request(history)), http.Header{"X-Dewpoint-Session": {name}}); a.StatusCode != http.StatusOK {
					t.Fatalf("status %d", a.StatusCode)
				}
				all := s.Upstream.Requests()
				return all[len(all)-1].Body
			}
			read := func(l lookup) { history = append(history, r.step(l)...) }

			read(lookup{"call_0", "\x1b[32mdepot.go\x1b[0m\n" + source(1, 30)})
			if got := ask(pair[0]); bytes.Contains(got, []byte("[32m")) || !bytes.Contains(got, []byte("parcel30 :=")) {
				t.Errorf("upstream got %s", got)
			}
			read(lookup{"call_1", source(11, 40)})
			first := ask(pair[1])
			if !bytes.Contains(first, []byte("[20 lines left out here")) || !bytes.Contains(first, []byte("result of call_0 above]")) ||
				bytes.Count(first, []byte("parcel20 :=")) != 1 || !bytes.Contains(first, []byte("parcel40 :=")) {
				t.Errorf("upstream got %s", first)
			}
			pair[1].kill()
			pair[1] = serve(t, "--config", config)
			for i, p := range pair {
				if got := ask(p); !bytes.Equal(got, first) {
					t.Errorf("replica %d forwarded %s, and before that %s", i, got, first)
				}
			}
			hidden := false
			for n := 2; n < 12; n++ {
				read(lookup{fmt.Sprint("call_", n), fmt.Sprintf("nothing in part %d", n)})
				got := ask(pair[n%2])
				hidden = hidden || !bytes.Contains(got, []byte("parcel1 :="))
				if note := bytes.Contains(got, []byte("left out here")); note == hidden || bytes.Count(got, []byte("parcel20 :=")) > 1 {
					t.Errorf("step %d: the first reading is hidden: %v, and upstream got %s", n, hidden, got)
				}
			}
			if !hidden {
				t.Error("nothing was hidden")
			}
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					t.Errorf("a request was refused: %v", r.Refused)
				}
			}
		})
	}
}
