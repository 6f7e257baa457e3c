package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestCompactionKeepsSession: a client without a session key stays in its session after a compaction, made upstream or by the proxy.
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
				continue // then there is no block
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

// TestCompactionKeepsStreamAlive: a stream that waits for our record is kept alive with comments.
func TestCompactionKeepsStreamAlive(t *testing.T) {
	t.Parallel()
	for path, body := range map[string]string{
		"/responses": `{"model":"gpt-x","stream":true,"input":[{"role":"user","content":"Repair the build."},{"type":"compaction_trigger"}]}`,
		"/messages":  `{"model":"claude-x","max_tokens":99,"stream":true,"compaction":{"type":"summarize"},"messages":[{"role":"user","content":"Repair the build."}]}`,
	} {
		hold := make(chan struct{})
		s := newSetting(t, fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: "CURRENT_STATE: stage 7 fails.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
		}})
		s.Upstream.RefuseCompaction()
		a := sendTo(t, serve(t, "--config", s.config(t, embedded(newStore(t))+"\nlimits: {stream_keep_alive: 10ms}")), path, []byte(body))
		begun := make([]byte, len(": condensing\n\n: condensing\n\n"))
		_, err := io.ReadFull(a.Body, begun)
		ok(t, err)
		close(hold)
		text, err := a.rest()
		ok(t, err)
		if a.Header.Get("X-Accel-Buffering") != "no" {
			t.Errorf("%s: nginx may collect the comments", path)
		}
		if string(begun) != ": condensing\n\n: condensing\n\n" || sealedIn.FindString(text) == "" || !strings.Contains(text, ": X-Dewpoint-Session: ") {
			t.Errorf("%s: %s%s", path, begun, text)
		}
	}
}

// TestCompactionIsAccountedFor: the metrics count our compactions by outcome, and an operator can read the record in a client's
// item.
func TestCompactionIsAccountedFor(t *testing.T) {
	t.Parallel()
	s := newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7.")
	p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
	w := newWorker(t, p)
	w.work(0, 5)
	sealed := sealedIn.FindString(w.compact(true))
	unseal := func(sealed string, status int) string {
		return string(p.administerWith([]byte(`{"sealed":"`+sealed+`"}`), http.MethodPost, "/unseal", status))
	}
	if text := unseal(sealed, http.StatusOK); !strings.Contains(text, "fails in stage 7") || !strings.Contains(text, "Repair the build of the parcel service.") {
		t.Errorf("the operator reads %s", text)
	}
	unseal(sealed[:len(sealed)-1], http.StatusBadRequest)
	for _, c := range []struct {
		body   string
		status int
	}{
		{`{"model":"gpt-x","input":[{"role":"user","content":"a"},{"type":"compaction","encrypted_content":"dewpoint.1.made-up"}]}`, http.StatusBadRequest},
		{`{"model":"gpt-x","input":[{"role":"user","content":"b"},{"type":"compaction_trigger"}]}`, http.StatusOK},
		{`{"model":"gpt-x","input":[{"type":"compaction_trigger"}]}`, http.StatusBadGateway},
	} {
		s.Upstream.Script(fakeupstream.Answer{Content: "I cannot help with that."})
		req, a := post(t, p, []byte(c.body))
		req.URL.Path = "/v1/responses"
		resp, err := a.client.RoundTrip(req)
		ok(t, err)
		if a.Response = resp; resp.StatusCode != c.status {
			t.Errorf("%s: %s", c.body, resp.Status)
		}
		_, _ = a.rest()
	}
	for _, outcome := range []string{"made", "refused", "excerpts", "failed"} {
		p.counted(`dewpoint_compactions_total{outcome="` + outcome + `",tenant="default"} 1`)
	}
}

// counted waits until a metric appears: a request is counted after its end, which its client does not see.
func (p *process) counted(line string) {
	p.t.Helper()
	for end := time.Now().Add(patience); !slices.Contains(p.metrics(), line); {
		if time.Now().After(end) {
			p.t.Fatalf("never counted: %s", line)
		}
	}
}

// TestKeptByUpstream: if upstream stores the history and nothing is due, the request is forwarded unchanged, and the log has the messages and the
// answers, on every replica, after a restart, and without a session key.
func TestKeptByUpstream(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	config := s.configAt(t, embedded(newStore(t)), 1000)
	p := serve(t, "--config", config)
	var session, thread string
	ask := func(streamed bool, call fakeupstream.Answer, format string, values ...any) (id string) {
		t.Helper()
		s.Upstream.Script(call)
		body := fmt.Sprintf(`{"model":"gpt-x","stream":%t,"instructions":"Be brief.",`+format+"}", append([]any{streamed}, values...)...)
		a := sendTo(t, p, "/responses", []byte(body))
		text, err := a.rest()
		ok(t, err)
		if got := string(lastBody(s.Upstream)); got != body {
			t.Errorf("%s\nwas forwarded as %s", body, got)
		}
		session, thread = a.Header.Get("X-Dewpoint-Session"), a.Header.Get("X-Dewpoint-Thread")
		if why := a.Header.Get("X-Dewpoint-Unread"); why != "" || session == "" {
			t.Errorf("%s: unread: %q, in session %q", body, why, session)
		}
		return regexp.MustCompile(`"id":"(resp_\w+)"`).FindStringSubmatch(text)[1]
	}
	said := func(text string) fakeupstream.Answer { return fakeupstream.Answer{Content: text} }
	calls := func(id string) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "Let me look.", ToolCalls: []fakeupstream.ToolCall{{ID: id, Name: "run", Arguments: `{"command":"make"}`}}}
	}
	result := func(n int) string {
		return fmt.Sprintf(`"input":[{"type":"function_call_output","call_id":"call_%d","output":"%s"}]`, n, strings.Repeat("a line of a log ", 150))
	}
	id := ask(false, calls("call_0"), `"input":"Repair the build of the parcel service."`)
	first, main := session, thread
	branch := id
	for n := range 6 {
		if n == 0 || n == 3 { // the log has the answer, not only the process that relayed it
			p.terminate()
			p.wait()
			p = serve(t, "--config", config)
		}
		id = ask(n%2 == 0, calls(fmt.Sprintf("call_%d", n+1)), `"previous_response_id":%q,`+result(n), id)
		if session != first || thread != main {
			t.Errorf("step %d is in thread %s of session %s, not %s of %s", n, thread, session, main, first)
		}
	}
	ask(true, said("It is done."), `"previous_response_id":%q,`+result(6), id)
	want := []string{"system", "user", "answer"}
	for range 7 {
		want = append(want, "action", "observation")
	}
	if got := p.logged(first, main); !slices.Equal(got, append(want, "agent")) {
		t.Errorf("logged %v", got)
	}
	if text := string(p.administer(http.MethodGet, "/sessions/"+first+"/threads/"+main+"/events?content=true", http.StatusOK)); strings.Count(text, "Let me look.") != 8 || !strings.Contains(text, "It is done.") {
		t.Errorf("logged %s", text)
	}
	p.administer(http.MethodGet, "/sessions/"+first+"/threads/"+main+"/view", http.StatusOK)

	ask(false, said("Another try."), `"previous_response_id":%q,`+result(0), branch)
	if session != first || thread == main {
		t.Errorf("a branch is in thread %s of session %s", thread, session)
	}

	ask(false, said("Hello."), `"conversation":"conv_1","input":"Say hello to the crew."`)
	apart, talk := session, thread
	ask(true, said("Goodbye."), `"conversation":"conv_1","input":"And goodbye."`)
	if apart == first || session != apart || thread != talk {
		t.Errorf("a conversation is in thread %s of session %s, then %s of %s", talk, apart, thread, session)
	}
	if got := p.logged(apart, talk); !slices.Equal(got, []string{"system", "user", "agent", "user", "agent"}) {
		t.Errorf("logged %v", got)
	}
	ask(true, said("Farewell."), `"conversation":{"id":"conv_1"},"input":"And farewell."`)
	if session != apart || thread != talk {
		t.Errorf("named by an object, the conversation is in thread %s of session %s", thread, session)
	}
}

// logged returns the kinds of the events in a thread's log.
func (p *process) logged(session, thread string) (kinds []string) {
	p.t.Helper()
	var page struct{ Events []struct{ Kind string } }
	ok(p.t, json.Unmarshal(p.administer(http.MethodGet, "/sessions/"+session+"/threads/"+thread+"/events", http.StatusOK), &page))
	for _, e := range page.Events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// TestCompactionWithoutAPause: if the proxy condenses in upstream's place, the client's instructions for the record are passed to
// the model that writes it, for later records too.
func TestCompactionWithoutAPause(t *testing.T) {
	t.Parallel()
	const wish = `"context_management":{"edits":[{"type":"compact_20260112","instructions":"Name the stage.","trigger":{"type":"input_tokens","value":600}}]},`
	s := newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7.")
	c := newCoder(t, serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000)))
	for n := range 12 {
		c.send(wish)
		c.work(n, 20)
	}
	told := 0
	for _, r := range s.Upstream.Requests() {
		if !r.Summary {
			continue
		}
		if told++; !strings.Contains(string(r.Body), "Name the stage.") {
			t.Errorf("asked %s", r.Body)
		}
	}
	if told < 2 {
		t.Errorf("%d records were written", told)
	}
}

// TestPauseAfterCompaction: if the proxy compacts in upstream's place, a client that wants to pause afterwards gets only a block,
// written by its own instructions, and continues with that.
func TestPauseAfterCompaction(t *testing.T) {
	t.Parallel()
	const wish = `"context_management":{"edits":[{"type":"compact_20260112","pause_after_compaction":true,"instructions":"Name the stage.",
		"trigger":{"type":"input_tokens","value":600}}]},`
	s := newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7.")
	c := newCoder(t, serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000)))
	c.send(wish) // this finds out who manages the history
	paused := 0
	for n := range 12 {
		c.work(n, 20)
		text := c.send(fmt.Sprintf(`"stream":%t,`, n%2 == 0) + wish)
		if !strings.Contains(text, `"stop_reason":"compaction"`) {
			continue
		}
		paused++
		if asked := lastBody(s.Upstream); !asksForRecord(&fakeupstream.Request{Body: asked}) || !strings.Contains(string(asked), "Name the stage.") {
			t.Errorf("step %d: asked %s", n, asked)
		}
		c.elements = append(c.elements, fmt.Sprintf(`{"role":"assistant","content":[{"type":"compaction","content":%q}]}`, sealedIn.FindString(text)),
			`{"role":"user","content":[{"type":"text","text":"Go on with it."}]}`)
		if text := c.send(wish); !strings.Contains(text, `"end_turn"`) || !strings.Contains(string(lastBody(s.Upstream)), "fails in stage 7") {
			t.Errorf("step %d: went on with %s, answered %s", n, lastBody(s.Upstream), text)
		}
	}
	if paused < 2 {
		t.Errorf("paused %d times", paused)
	}
}
