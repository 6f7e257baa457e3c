package proxy_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// panicking makes parts of a server that panic.
type panicking struct{ quarters }

func (panicking) Registry(context.Context) (*session.Registry, session.Store, session.Secret, error) {
	panic("registry")
}
func (panicking) Counter(string) engine.Counter             { panic("counter") }
func (panicking) Name() string                              { return "panicking" }
func (panicking) Condense(condense.Input) condense.Decision { panic("condenser") }
func (panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	r.Body.Close() // as every transport must
	panic("transport")
}

type panickingStore struct{ session.Store }

func (panickingStore) Append(context.Context, session.Batch) error { panic("append") }

// TestPanicForwardsTheRequestUnchanged: if nothing was sent yet, the request is forwarded unchanged.
func TestPanicForwardsTheRequestUnchanged(t *testing.T) {
	for name, s := range map[string]setup{
		"sessions":  {sessions: panicking{}},
		"tokens":    {tokens: panicking{}},
		"condenser": {condenser: panicking{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, s)
			r.atEnd("dewpoint_panics_total", 2)
			for range 2 {
				r.wantUnchanged(hello)
			}
		})
	}
}

func TestPanicOnTheWayUpstream(t *testing.T) {
	r := newRig(t, setup{transport: panicking{}})
	r.atEnd("dewpoint_panics_total", 2)
	for range 2 {
		w := r.dial()
		w.post(hello)
		resp, body := w.answer(http.MethodPost)
		wantError(t, resp, body, 500, "internal_error")
		w.wantEnd()
	}
}

// panicsInNeed is a condenser that panics when a request has to become smaller.
type panicsInNeed struct{ condense.Condenser }

func (p panicsInNeed) Condense(in condense.Input) condense.Decision {
	if in.Need != (condense.Need{}) {
		panic("condenser: in need")
	}
	return p.Condenser.Condense(in)
}

// TestPanicWhileShrinkingRelaysUpstreamsError: the client gets upstream's own error if making the request smaller panics.
func TestPanicWhileShrinkingRelaysUpstreamsError(t *testing.T) {
	r := condensing(t, setup{upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 2000}}, condenser: panicsInNeed{onRequest()}})
	r.atEnd("dewpoint_panics_total", 1)
	resp, body := r.ask(messages(turns("tea", 31)...))
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(body, "context_length_exceeded") {
		t.Errorf("status %d, %s", resp.StatusCode, body)
	}
}

// TestStoreThatPanics has each method of a store panic, guarded as in the process. Every request is answered, forwarded unchanged or
// condensed, and nothing counts as a panic of the proxy.
func TestStoreThatPanics(t *testing.T) {
	for _, method := range []string{
		sessiontest.AllMethods, "Find", "Thread", "Append", "Condense", "Summary", "Events", "Trace", "Mark", "Session", "Lock", "unlock",
		"Prepare", "Prepared",
	} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var store *sessiontest.Panicking
			r := condensing(t, setup{
				store: func(s session.Store) session.Store {
					store = sessiontest.NewPanicking(s.(session.Backend))
					return session.Guard(store, nil)
				},
				tenants: one(func(t *proxy.Tenant) {
					t.Condenser, t.Never, t.Ahead = llm(0, "", patience), method == "Prepare" || method == "Prepared", true
				}),
			})
			r.wantUnchanged(messages(turns("ships", 5)...))
			store.Panic(method)
			for _, n := range []int{7, 9, 13, 15, 21} { // the last are above the limit
				body := messages(turns("ships", n)...)
				if method == sessiontest.AllMethods || method == "Find" {
					r.wantUnchanged(body)
				} else if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK {
					t.Errorf("%d turns: status %d, %s", n, resp.StatusCode, answer)
				}
			}
			if slices.Contains([]string{sessiontest.AllMethods, "Find", "Append", "Condense", "Mark", "Lock", "unlock", "Prepare", "Prepared"}, method) {
				eventually(t, "it is called", func() bool { return store.Count() > 0 })
			}
			store.Panic("")
			r.wantCondensed(messages(turns("ships", 23)...))
		})
	}
}

// TestPanicInBackgroundWorkDoesNotEndTheProcess: a panic in background work during a request does not end the process.
func TestPanicInBackgroundWorkDoesNotEndTheProcess(t *testing.T) {
	r := newRig(t, setup{store: func(s session.Store) session.Store { return panickingStore{s} }})
	r.atEnd("dewpoint_panics_total", 2)
	for range 2 {
		r.wantUnchanged(hello)
	}
}

// panickingDialect has a tee that panics in Write or Answer.
type panickingDialect struct {
	dialect.Dialect
	at string
}

func (d panickingDialect) Tee(streamed bool) dialect.Tee {
	return panickingTee{d.Dialect.Tee(streamed), d.at}
}

type panickingTee struct {
	dialect.Tee
	at string
}

func (t panickingTee) Write(p []byte) {
	if t.at == "write" {
		panic("tee: write")
	}
	t.Tee.Write(p)
}

func (t panickingTee) Answer() dialect.Answer {
	if t.at == "answer" {
		panic("tee: answer")
	}
	return t.Tee.Answer()
}

// TestPanicOfTheTeeDoesNotCutTheAnswer: a panic of the tee is counted, and the client gets its whole answer.
func TestPanicOfTheTeeDoesNotCutTheAnswer(t *testing.T) {
	for _, at := range []string{"write", "answer"} {
		for _, body := range []string{hello, helloing} {
			t.Run(at, func(t *testing.T) {
				r := newRig(t, setup{
					dialect: panickingDialect{chat.New(chat.Options{}), at}, tenants: bounded(limit.Tenant{Concurrent: 1}),
				})
				r.final["dewpoint_panics_total"] = 2
				for range 2 {
					resp, answer := r.ask(body, "Authorization", "Bearer "+keyA)
					if resp.StatusCode != http.StatusOK || !strings.Contains(answer, "Unders") || body == helloing && !strings.HasSuffix(answer, "data: [DONE]\n\n") {
						t.Errorf("%s, %s", resp.Status, answer)
					}
					eventually(t, "the place is free", func() bool { return r.server.Busy("a") == 0 })
				}
			})
		}
	}
}

// TestShutdown shuts down while requests are under way: it waits for them, and they are cut off when that takes too long.
func TestShutdown(t *testing.T) {
	hold := make(chan struct{})
	r := newRig(t, setup{upstream: fakeupstream.Options{Reply: func(req *fakeupstream.Request) fakeupstream.Answer {
		if req.Text() == "hi" {
			return fakeupstream.Answer{Content: "waited for", Fault: fakeupstream.Fault{HoldHeaders: hold}}
		}
		return fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}}
	}}})
	first, second := r.dial(), r.dial()
	first.post(hello)
	_, err := r.up.Wait(guard(t), 1)
	must(t, err)
	second.post(messages(say("user", "not waited for")))
	_, err = r.up.Wait(guard(t), 2)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.server.Shutdown(ctx) }()
	close(hold)
	if resp, body := first.answer(http.MethodPost); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d, %s", resp.StatusCode, body)
	}
	cancel()
	resp, body := second.answer(http.MethodPost)
	wantError(t, resp, body, 503, "shutting_down")
	if err := <-ended; err == nil {
		t.Error("Shutdown does not tell that it gave up")
	}
}
