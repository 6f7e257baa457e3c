package dialect_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// BenchmarkSplit splits a history of about 1 MB in each protocol, both unknown and one step longer than a remembered one.
func BenchmarkSplit(b *testing.B) {
	const remember = 64 << 20
	result := strings.Repeat("a line of what was printed\\n", 80)
	for name, p := range map[string]struct {
		dialect   func(remember int) dialect.Dialect
		head, end string
		step      string // format of a step; takes a number three times, and a result
	}{
		"chat": {
			func(n int) dialect.Dialect { return chat.New(chat.Options{Remember: n}) },
			`{"model":"m","messages":[{"role":"user","content":"go"}`, `]}`,
			`,{"role":"assistant","content":"Step %d.","tool_calls":[{"id":"call_%d","type":"function","function":{"name":"run","arguments":"{\"command\":\"ls\"}"}}]},` +
				`{"role":"tool","tool_call_id":"call_%d","content":"%s"}`,
		},
		"messages": {
			func(n int) dialect.Dialect { return messages.New(split.Options{Remember: n}) },
			`{"model":"m","messages":[{"role":"user","content":"go"}`, `]}`,
			`,{"role":"assistant","content":[{"type":"text","text":"Step %d."},{"type":"tool_use","id":"call_%d","name":"run","input":{"command":"ls"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_%d","content":"%s"}]}`,
		},
		"responses": {
			func(n int) dialect.Dialect { return responses.New(split.Options{Remember: n}) },
			`{"model":"m","input":[{"type":"message","role":"user","content":"go"}`, `]}`,
			`,{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Step %d."}]},` +
				`{"type":"function_call","call_id":"call_%d","name":"run","arguments":"{\"command\":\"ls\"}"},{"type":"function_call_output","call_id":"call_%d","output":"%s"}`,
		},
		"gemini": {
			func(n int) dialect.Dialect { return gemini.New(split.Options{Remember: n}) },
			`{"contents":[{"role":"user","parts":[{"text":"go"}]}`, `]}`,
			`,{"role":"model","parts":[{"text":"Step %d."},{"functionCall":{"id":"call_%d","name":"run","args":{"command":"ls"}},"thoughtSignature":"c2lnbmVk"}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"call_%d","name":"run","response":{"output":"%s"}}}]}`,
		},
	} {
		body := func(steps int) []byte {
			var text strings.Builder
			text.WriteString(p.head)
			for n := range steps {
				fmt.Fprintf(&text, p.step, n, n, n, result)
			}
			return []byte(text.String() + p.end)
		}
		const steps = 430
		first, next := body(steps), body(steps+1)
		read := func(b *testing.B, d dialect.Dialect, text []byte) {
			if _, err := d.Split("", text); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(name+"/first", func(b *testing.B) {
			d := p.dialect(0)
			b.SetBytes(int64(len(first)))
			for b.Loop() {
				read(b, d, first)
			}
		})
		b.Run(name+"/known", func(b *testing.B) {
			d := p.dialect(remember)
			read(b, d, first)
			b.SetBytes(int64(len(next)))
			for b.Loop() {
				read(b, d, next)
			}
		})
	}
}
