package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// referrer is a client that refers to the model's messages by their ids.
type referrer struct {
	*rig
	items []string
}

func newReferrer(t *testing.T, condenser condense.Condenser) *referrer {
	t.Helper()
	r := &referrer{rig: newRig(t, condenser)}
	r.tenant.Anonymous, r.client = true, "sk-a"
	r.speakResponses()
	return r
}

func (r *referrer) speakResponses() {
	r.settings = r.engine.Swap(engine.Settings{
		Tenants: []*engine.Tenant{&r.tenant}, Dialects: []dialect.Dialect{responses.New(split.Options{})}, Models: r.settings.Models,
	})
}

// send sends a history, which is condensed and logged.
func (r *referrer) send(items ...string) *request {
	r.Helper()
	turn := r.begin(&body{bytes: []byte(`{"model":"m","input":[` + strings.Join(items, ",") + `]}`)}, engine.WishNone)
	turn.Condense(r.Context())
	r.logged(turn)
	return turn
}

// ask asks the n-th question, and adds the answer to the history: its text if inline is set, else its id.
func (r *referrer) ask(n int, inline bool) *request {
	r.Helper()
	r.items = append(r.items, fmt.Sprintf(`{"role":"user","content":"How deep is sea %d?"}`, n))
	turn := r.send(r.items...)
	said := saying(n, 100)
	must(r.T, turn.Answered(dialect.Answer{ID: fmt.Sprint("resp_", n), Said: []byte(said)}, nil)(r.Context()))
	if !inline {
		said = referring(n)
	}
	r.items = append(r.items, said)
	return turn
}

// saying returns the n-th message of the model.
func saying(n, times int) string {
	return fmt.Sprintf(`{"type":"message","id":"msg_%d","role":"assistant","content":[{"type":"output_text","text":"%d. %s"}]}`, n, n, strings.Repeat("It is deep. ", times))
}

func referring(n int) string { return fmt.Sprintf(`{"type":"item_reference","id":"msg_%d"}`, n) }

// messages returns the messages in the log of a turn's thread.
func (r *referrer) messages(t *request) []session.Event {
	r.Helper()
	events, err := r.store.Events(r.Context(), t.Place().Thread.ID, 1, 100)
	must(r.T, err)
	return slices.DeleteFunc(events, func(e session.Event) bool { return e.Kind == session.Answered })
}

// payloads returns what the log of a turn's thread holds for its messages.
func (r *referrer) payloads(t *request) (all [][]byte) {
	r.Helper()
	for _, e := range r.messages(t) {
		all = append(all, e.Payload)
	}
	return all
}

// TestReferences: a message of the model that the client refers to by its id is counted and logged as it is. A reference that is given twice
// is not resolved, so that a small request cannot become a large one; nor is one to an answer for another client.
func TestReferences(t *testing.T) {
	const question = `{"role":"user","content":"And?"}`
	one, said := referring(1), saying(1, 300)
	for name, c := range map[string]struct {
		items    []string
		client   string
		resolved bool
	}{
		"given once":         {[]string{one}, "sk-a", true},
		"given twice":        {[]string{one, question, one}, "sk-a", false},
		"twice in a message": {[]string{one, one}, "sk-a", false},
		"long ago, too":      {[]string{strings.Repeat(one+",", 999) + strings.Repeat(question+",", 40) + one}, "sk-a", false},
		"of another client":  {[]string{one}, "sk-b", false},
	} {
		r := newReferrer(t, condense.Noop{})
		must(t, r.send(question).Answered(dialect.Answer{ID: "resp_1", Said: []byte(said)}, nil)(t.Context()))
		r.client = c.client
		input := question + "," + strings.Join(c.items, ",")
		turn := r.send(input, question)
		if counted := turn.Turn().Before().Tokens > len(said)/4-100; counted != c.resolved {
			t.Errorf("%s: it was counted as %d tokens", name, turn.Turn().Before().Tokens)
		}
		if logged := bytes.Count(bytes.Join(r.payloads(turn), nil), []byte(said)); logged > 0 != c.resolved {
			t.Errorf("%s: it is %d times in the log", name, logged)
		}
		if sent := forwarded(turn); !bytes.Contains(sent, []byte(input)) {
			t.Errorf("%s: forwarded %s", name, sent)
		}
	}
}

// TestReferencesAreCounted: requests are counted and condensed as if the client sent the messages themselves, also by a process that has not
// seen them.
func TestReferencesAreCounted(t *testing.T) {
	sizes := func(inline bool) (sent []int) {
		r := newReferrer(t, condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 30, KeepFirst: 1}})
		for n := range 25 {
			sent = append(sent, r.ask(n, inline).Sent().Tokens)
		}
		r.start()
		r.speakResponses()
		return append(sent, r.ask(25, inline).Sent().Tokens)
	}
	want, got := sizes(true), sizes(false)
	for n := range want {
		if d := got[n] - want[n]; d < -30 || d > 30 {
			t.Errorf("request %d has %d tokens instead of %d", n, got[n], want[n])
		}
	}
}

// TestReferencesAreShown: several messages to which a turn refers are shown as one.
func TestReferencesAreShown(t *testing.T) {
	r := newReferrer(t, condense.Noop{})
	const system, question = `{"role":"system","content":"Be brief."}`, `{"role":"user","content":"And?"}`
	must(t, r.send(system, question).Answered(dialect.Answer{ID: "resp_1", Said: []byte(saying(1, 1) + "," + saying(2, 1))}, nil)(t.Context()))
	turn := r.send(system, question, referring(1), referring(2), question)
	past := engine.Past{Tenant: "a", Dialect: turn.Place().Thread.Dialect}
	for _, e := range r.messages(turn) {
		if past.Messages = append(past.Messages, e.Payload); e.Pos > 0 {
			past.Chain = append(past.Chain, e.Chain)
		}
	}
	shown, err := r.engine.Show(past)
	must(t, err)
	if len(shown.Messages) != 4 || string(shown.Messages[2]) != saying(1, 1)+","+saying(2, 1) {
		t.Errorf("shown %s", shown.Messages)
	}
}

// TestOtherProcessesReadReferences: what another process logs has what the first one relayed, also for threads that share it.
func TestOtherProcessesReadReferences(t *testing.T) {
	r := newReferrer(t, condense.Noop{})
	const messages = 10
	first := r.engine
	for n := range messages {
		r.engine = first
		r.speakResponses()
		r.ask(n, false)
		r.start()
		r.speakResponses()
		r.send(append(r.items[:len(r.items):len(r.items)], `{"role":"user","content":"Go on."}`)...)
	}
	r.engine = first
	r.speakResponses()
	r.items[0] = `{"role":"user","content":"How deep is the sea, now?"}`
	turn := r.send(r.items...)
	log := bytes.Join(r.payloads(turn), nil)
	if found := bytes.Count(log, []byte("output_text")); found != messages {
		t.Errorf("%d of %d messages are in the log: %s", found, messages, log)
	}
}
