package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// TestCompactionKeepsSession: a client that gives no session key stays in its session behind a compaction, whoever made that.
func TestCompactionKeepsSession(t *testing.T) {
	t.Parallel()
	byPath := func(w *worker) string {
		text, err := sendTo(t, w.proxy, "/responses/compact", []byte(`{"model":"gpt-x","input":[`+strings.Join(w.items, ",")+`]}`), w.key).rest()
		ok(t, err)
		var r struct{ Output []json.RawMessage }
		ok(t, json.Unmarshal([]byte(text), &r))
		return string(r.Output[0])
	}
	responses := func(compact func(*worker) string) func(*testing.T, *process) {
		return func(t *testing.T, p *process) {
			w := newWorker(t, p)
			for n := range 3 {
				w.work(n, 5)
				w.ask()
			}
			w.items = []string{compact(w), `{"type":"message","role":"user","content":"Go on with it."}`}
			w.ask()
			w.work(3, 5)
			w.ask()
		}
	}
	messages := func(compact func(*coder) string) func(*testing.T, *process) {
		return func(t *testing.T, p *process) {
			c := newCoder(t, p)
			for n := range 3 {
				c.work(n, 5)
				c.send("")
			}
			c.elements = []string{`{"role":"assistant","content":[` + compact(c) + `]}`, `{"role":"user","content":[{"type":"text","text":"Go on with it."}]}`}
			c.send("")
			c.work(3, 5)
			c.send("")
		}
	}
	managed := func(c *coder) string {
		text := c.send(`"context_management":{"edits":[{"type":"compact_20260112","trigger":{"type":"input_tokens","value":1}}]},`)
		var m struct{ Content []json.RawMessage }
		ok(t, json.Unmarshal([]byte(text), &m))
		return string(m.Content[0])
	}
	for name, run := range map[string]func(*testing.T, *process){
		"responses":           responses(func(w *worker) string { return w.compact(false) }),
		"responses, streamed": responses(func(w *worker) string { return w.compact(true) }),
		"responses, by path":  responses(byPath),
		"messages":            messages(func(c *coder) string { return c.compact(false) }),
		"messages, streamed":  messages(func(c *coder) string { return c.compact(true) }),
		"messages, managed":   messages(managed),
	} {
		for _, ours := range []bool{false, true} {
			if ours && name == "messages, managed" {
				continue // there is no block then
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSetting(t, fakeupstream.Options{})
				if ours {
					s = newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7.")
				}
				p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
				run(t, p)
				if sessions := p.listed(); len(sessions) != 1 {
					t.Errorf("compacted by the proxy: %t; it became %d sessions", ours, len(sessions))
				}
			})
		}
	}
}
