package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// heldAtMost is how long the end of an answer may wait for the log, in milliseconds.
const heldAtMost = 250

// split is a request that follows a known conversation, and the expected explanation.
type split struct {
	name     string
	change   func(messages []json.RawMessage) []json.RawMessage // how the client changes the conversation
	key      string                                             // the client's session key afterwards; empty: unchanged
	relation string
	cause    string
	forkAt   int    // of a fork: where it begins
	message  int    // index of the first message that differs
	here     string // its text in the request
	there    string // its text in the known conversation
	system   bool   // the system messages differ
	keyless  bool   // the known conversation had no key
}

// told returns a conversation with one call, whose id identifies the conversation.
func told(topic string) []json.RawMessage {
	message := func(role, text string) json.RawMessage {
		return encode(map[string]string{"role": role, "content": topic + ": " + text})
	}
	id := "call_" + strings.Repeat(topic, 4) + "_0123456789abcdef"
	return []json.RawMessage{
		message("system", "be brief"),
		message("user", "what is in the file"),
		json.RawMessage(fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"read","arguments":"{}"}}]}`, id)),
		json.RawMessage(fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"%s: a list of parcels"}`, id, topic)),
		message("assistant", "parcels, as it seems"),
		message("user", "and which are late"),
	}
}

// with returns a conversation with one message replaced, and more after it.
func with(i int, m json.RawMessage) func([]json.RawMessage) []json.RawMessage {
	return func(all []json.RawMessage) []json.RawMessage {
		if m != nil {
			all[i] = m
		}
		return append(all, json.RawMessage(`{"role":"assistant","content":"two of them"}`), json.RawMessage(`{"role":"user","content":"which"}`))
	}
}

var splits = []split{
	{name: "goes on", change: with(0, nil), relation: "continuation"},
	{name: "system", change: with(0, json.RawMessage(`{"role":"system","content":"be long"}`)), relation: "continuation", system: true},
	{name: "again", change: func(all []json.RawMessage) []json.RawMessage { return all[:4] }, relation: "replay"},
	{
		name: "user", change: with(5, json.RawMessage(`{"role":"user","content":"which are gone"}`)), relation: "fork", cause: "user_changed",
		forkAt: 4, message: 5, here: "are gone", there: "are late",
	},
	{
		name: "answer", change: with(4, json.RawMessage(`{"role":"assistant","content":"only names"}`)), relation: "fork", cause: "answer_changed",
		forkAt: 3, message: 4, here: "only names", there: "as it seems",
	},
	{
		name: "result", change: func(all []json.RawMessage) []json.RawMessage {
			all[3] = json.RawMessage(strings.Replace(string(all[3]), "a list", "LIST", 1))
			return with(0, nil)(all)
		}, relation: "fork", cause: "result_changed", forkAt: 2, message: 3, here: "LIST", there: "a list",
	},
	{
		name: "fewer", change: func(all []json.RawMessage) []json.RawMessage { return with(0, nil)(slices.Delete(all, 2, 4)) },
		relation: "fork", cause: "left_out", forkAt: 1, message: 2, here: "as it seems", there: "tool_calls",
	},
	{
		name: "more", change: func(all []json.RawMessage) []json.RawMessage {
			return with(0, nil)(slices.Insert(all, 5, json.RawMessage(`{"role":"user","content":"by the way"}`)))
		}, relation: "fork", cause: "inserted", forkAt: 4, message: 5, here: "by the way", there: "are late",
	},
	{
		name: "first", change: with(1, json.RawMessage(`{"role":"user","content":"what was in the file"}`)), relation: "link", cause: "user_changed",
		message: 1, here: "was in", there: "is in",
	},
	{name: "other key", change: with(0, nil), key: "another", relation: "new", cause: "unknown_history", message: 1},
	{name: "key at last", change: with(0, nil), key: "at-last", relation: "new", cause: "unknown_history", message: 1, keyless: true},
}

// explained is the explanation for a request's thread.
type explained struct {
	Relation, Cause, Meaning, Session, Thread, Parent string

	Known         int
	SystemChanged bool `json:"system_changed"`
	Differs       *struct {
		Message, Position int
		Here, There       string
	}
	WithoutKey *struct{ Session, Thread string } `json:"without_key"`
}

// TestForksAreExplained: the admin API reports in advance which thread a request belongs to and what differs. The log and the metrics report the same
// afterwards.
func TestForksAreExplained(t *testing.T) {
	t.Parallel()
	s := newLenient(t, fakeupstream.Options{})
	p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 100))
	wanted, threads := map[string]func(line map[string]any){}, 0
	for i, c := range splits {
		topic := fmt.Sprintf("topic%d", i)
		header := http.Header{"X-Dewpoint-Session": {topic}}
		if c.keyless {
			header = http.Header{}
		}
		first := send(t, p, body(told(topic)), header)
		ok(t, first.finish())
		session, thread := first.Header.Get("X-Dewpoint-Session"), first.Header.Get("X-Dewpoint-Thread")
		if c.key != "" {
			header = http.Header{"X-Dewpoint-Session": {c.key}}
		}
		next := body(c.change(told(topic)))
		question := encode(map[string]any{"headers": map[string]string{"X-Dewpoint-Session": header.Get("X-Dewpoint-Session")}, "body": json.RawMessage(next)})
		for range 2 { // asking changes nothing
			var x explained
			ok(t, json.Unmarshal(p.administerWith(question, http.MethodPost, "/explain", http.StatusOK), &x))
			c.check(t, x, session, thread)
		}
		id := fmt.Sprintf("split-%d", i)
		header.Set("X-Request-Id", id)
		ok(t, send(t, p, next, header).finish())
		if threads++; c.cause != "" {
			threads++
		}
		wanted[id] = func(line map[string]any) { c.checkLine(t, line, thread) }
	}
	metrics := p.threadsBegun(threads)
	p.terminate()
	p.wait()
	begun := map[string]int{}
	for text := range strings.Lines(fmt.Sprint(p.log)) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) != nil || line["msg"] != "request" {
			continue
		}
		if cause, _ := line["cause"].(string); cause != "" {
			begun[fmt.Sprintf(`dewpoint_threads_begun_total{cause=%q,kind=%q,tenant="default"}`, cause, line["relation"])]++
		}
		id, _ := line["request_id"].(string)
		if check := wanted[id]; check != nil {
			check(line)
			delete(wanted, id)
		}
	}
	if len(wanted) > 0 {
		t.Errorf("%d requests have no line", len(wanted))
	}
	for name, n := range begun {
		if !slices.Contains(metrics, fmt.Sprintf("%s %d", name, n)) {
			t.Errorf("no metric %s %d", name, n)
		}
	}
}

// threadsBegun returns the metric of threads after waiting for a total: a request is counted after its end, which its client does
// not see.
func (p *process) threadsBegun(want int) (series []string) {
	p.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); {
		sum := 0
		series = p.metrics()
		for _, line := range series {
			if _, value, found := strings.Cut(line, "} "); found && strings.HasPrefix(line, "dewpoint_threads_begun_total{") {
				n, err := strconv.Atoi(value)
				ok(p.t, err)
				sum += n
			}
		}
		if sum == want {
			return series
		}
	}
	p.t.Fatalf("not %d threads were counted", want)
	return nil
}

func (c split) check(t *testing.T, x explained, session, thread string) {
	t.Helper()
	if x.Relation != c.relation || x.Cause != c.cause || x.SystemChanged != c.system || x.Meaning == "" {
		t.Errorf("%s: explained as %+v", c.name, x)
	}
	begins := c.relation == "new"
	if continues := c.relation == "continuation" || c.relation == "replay"; continues != (x.Thread == thread) || begins != (x.Session == "") || !begins && x.Session != session {
		t.Errorf("%s: belongs to %q of %q, want %q of %q", c.name, x.Thread, x.Session, thread, session)
	}
	if splits := c.relation == "fork" || c.relation == "link"; splits != (x.Parent == thread) {
		t.Errorf("%s: parent %q, want %q", c.name, x.Parent, thread)
	}
	if c.relation == "fork" && x.Known != c.forkAt {
		t.Errorf("%s: %d messages known, want %d", c.name, x.Known, c.forkAt)
	}
	if (x.WithoutKey != nil) != c.keyless || c.keyless && x.WithoutKey.Thread != thread {
		t.Errorf("%s: without its key %+v", c.name, x.WithoutKey)
	}
	switch d := x.Differs; {
	case c.message == 0 && d == nil:
	case d == nil || d.Message != c.message || d.Position != c.message || !strings.Contains(d.Here, c.here) || !strings.Contains(d.There, c.there):
		t.Errorf("%s: differs in %+v", c.name, d)
	}
}

func (c split) checkLine(t *testing.T, line map[string]any, thread string) {
	t.Helper()
	cause, _ := line["cause"].(string)
	parent, _ := line["parent"].(string)
	forkAt, _ := line["fork_at"].(float64)
	system, _ := line["system_changed"].(bool)
	if ms, _ := line["ms"].(float64); cause == "unread" && ms >= heldAtMost {
		cause = c.cause // the store was too slow to report it
	}
	if line["relation"] != c.relation || cause != c.cause || int(forkAt) != c.forkAt || system != c.system {
		t.Errorf("%s: the log has %v", c.name, line)
	}
	if splits := c.relation == "fork" || c.relation == "link"; splits != (parent == thread) {
		t.Errorf("%s: the log has parent %q, want %q", c.name, parent, thread)
	}
}
