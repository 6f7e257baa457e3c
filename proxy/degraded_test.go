package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	messagesapi "github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// flaky is a store some of whose operations fail.
type flaky struct {
	session.Store
	mu   sync.Mutex
	done chan struct{} // gets one for each append
	ops  []string      // that fail
	hang bool          // until the context ends, rather than at once
}

func (f *flaky) fail(hang bool, ops ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ops, f.hang = ops, hang
}

// all lists the operations of a store that requests use.
func all() []string {
	return []string{"find", "thread", "append", "condense", "summary", "trace", "mark", "lock"}
}

func (f *flaky) check(ctx context.Context, op string) error {
	f.mu.Lock()
	fails, hang := slices.Contains(f.ops, op), f.hang
	f.mu.Unlock()
	if !fails {
		return nil
	}
	if hang {
		<-ctx.Done()
	}
	return fmt.Errorf("%s: %w", op, session.ErrUnavailable)
}

func (f *flaky) Find(ctx context.Context, hashes []session.Hash, hint session.ThreadID, traces ...session.Hash) (session.Found, error) {
	if err := f.check(ctx, "find"); err != nil {
		return session.Found{}, err
	}
	return f.Store.Find(ctx, hashes, hint, traces...)
}

func (f *flaky) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	if err := f.check(ctx, "thread"); err != nil {
		return session.Thread{}, err
	}
	return f.Store.Thread(ctx, id)
}

func (f *flaky) Append(ctx context.Context, b session.Batch) error {
	if err := f.check(ctx, "append"); err != nil {
		return err
	}
	err := f.Store.Append(ctx, b)
	f.done <- struct{}{}
	return err
}

func (f *flaky) Condense(ctx context.Context, id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	if err := f.check(ctx, "condense"); err != nil {
		return c, err
	}
	return f.Store.Condense(ctx, id, c)
}

func (f *flaky) Summary(ctx context.Context, id session.CondensationID) (string, error) {
	if err := f.check(ctx, "summary"); err != nil {
		return "", err
	}
	return f.Store.Summary(ctx, id)
}

func (f *flaky) Trace(ctx context.Context, traces []session.Hash) ([]session.Place, error) {
	if err := f.check(ctx, "trace"); err != nil {
		return nil, err
	}
	return f.Store.Trace(ctx, traces)
}

func (f *flaky) Mark(ctx context.Context, at session.Place, traces session.Traces) error {
	if err := f.check(ctx, "mark"); err != nil {
		return err
	}
	return f.Store.Mark(ctx, at, traces)
}

func (f *flaky) Lock(ctx context.Context, id session.ThreadID, ttl time.Duration) (session.Lease, error) {
	if err := f.check(ctx, "lock"); err != nil {
		return session.Lease{}, err
	}
	return f.Store.Lock(ctx, id, ttl)
}

// unreliable is a rig whose store can be made to fail. If it will hang, requests do not wait for it as long as on a busy machine.
func unreliable(t *testing.T, hangs bool) (*rig, *flaky) {
	t.Helper()
	store := &flaky{done: make(chan struct{}, 16)}
	r := condensing(t, setup{
		store: func(s session.Store) session.Store { store.Store = s; return store },
		turns: func(l *engine.Limits) {
			if hangs {
				l.Store = 2 * time.Second
			}
		},
	})
	return r, store
}

func (r *rig) countLogs(message string) int {
	return r.logs.Filter(func(e loggedEntry) bool { return strings.HasPrefix(e.Message, message) && e.Level > zap.DebugLevel }).Len()
}

// wantLogged checks that a thread's log holds exactly these messages, in order.
func (r *rig) wantLogged(thread string, want []string) {
	r.t.Helper()
	events, err := r.store.Events(guard(r.t), session.ThreadID(thread), 1, 1000)
	must(r.t, err)
	var got []string
	for _, e := range events {
		if len(e.Payload) > 0 {
			got = append(got, string(e.Payload))
		}
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("the log holds %d messages, want %d:\n%.500q\n%.500q", len(got), len(want), got, want)
	}
}

func TestStoreAway(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	for name, hang := range map[string]bool{"fails": false, "hangs": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, store := unreliable(t, hang)
			began := r.wantUnchanged(messages(turns("ships", 3)...))
			<-store.done
			store.fail(hang, all()...)
			for _, n := range []int{5, 7, 13, 15} { // the last are above the limit
				resp := r.wantUnchanged(messages(turns("ships", n)...))
				if got := resp.Header.Get("X-Dewpoint-Session"); got != "" {
					t.Errorf("session %q: it cannot be known", got)
				}
			}
			if away, lost := r.metric("dewpoint_store_degraded"), r.metric(`dewpoint_store_losses_total{op="resolve"}`); away != 1 || lost != 4 {
				t.Errorf("degraded %v, losses %v", away, lost)
			}
			if n := r.countLogs("store unavailable"); n != 1 {
				t.Errorf("logged %d times", n)
			}
			store.fail(false)
			back := r.wantUnchanged(messages(turns("ships", 9)...)) // repairs the log
			if thread := began.Header.Get("X-Dewpoint-Thread"); back.Header.Get("X-Dewpoint-Thread") != thread {
				t.Errorf("thread %s, want %s", back.Header.Get("X-Dewpoint-Thread"), thread)
			}
			<-store.done
			r.wantLogged(back.Header.Get("X-Dewpoint-Thread"), turns("ships", 9))
			if away, n := r.metric("dewpoint_store_degraded"), r.countLogs("the store answers again: requests are recognised and condensed"); away != 0 || n != 1 {
				t.Errorf("degraded %v, logged %d times", away, n)
			}
			r.wantCondensed(messages(turns("ships", 17)...))
		})
	}
}

// TestLostWritesAreReported: requests are still recognised, and the server reports that new messages are being lost.
func TestLostWritesAreReported(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	r, store := unreliable(t, false)
	began := r.wantUnchanged(messages(turns("ships", 3)...))
	<-store.done
	store.fail(false, "append", "condense", "mark", "lock")
	for _, n := range []int{5, 7, 13, 15} { // the last are above the limit
		resp := r.wantUnchanged(messages(turns("ships", n)...))
		if got, want := resp.Header.Get("X-Dewpoint-Thread"), began.Header.Get("X-Dewpoint-Thread"); got != want {
			t.Errorf("thread %q, want %q", got, want)
		}
	}
	r.wantUnchanged(messages(turns("ships", 3)...)) // has nothing to write
	if away, n := r.metric("dewpoint_store_degraded"), r.countLogs("store rejects writes"); away != 1 || n != 1 {
		t.Errorf("degraded %v, logged %d times", away, n)
	}
	if n := r.countLogs("store unavailable"); n != 0 {
		t.Errorf("said to be away %d times", n)
	}
	store.fail(false)
	r.wantUnchanged(messages(turns("ships", 9)...))
	<-store.done
	must(t, r.server.Shutdown(guard(t)))
	if away, n := r.metric("dewpoint_store_degraded"), r.countLogs("the store accepts writes again"); away != 0 || n != 1 {
		t.Errorf("degraded %v, logged %d times", away, n)
	}
	r.wantLogged(began.Header.Get("X-Dewpoint-Thread"), turns("ships", 9))
}

// TestCheckStoreFindsTheStoreBack: without requests, CheckStore finds out that the store is back.
func TestCheckStoreFindsTheStoreBack(t *testing.T) {
	t.Parallel()
	var clock stopped
	store := &flaky{done: make(chan struct{}, 100)}
	r := newRig(t, setup{now: clock.now, store: func(s session.Store) session.Store { store.Store = s; return store }})
	want := func(degraded bool) {
		t.Helper()
		r.server.CheckStore(guard(t))
		if away := r.metric("dewpoint_store_degraded") == 1; away != degraded || r.server.Degraded() != degraded {
			t.Errorf("degraded: %v by the metric, %v by the server, want %v", away, r.server.Degraded(), degraded)
		}
	}
	store.fail(false, all()...)
	r.wantUnchanged(hello)
	want(true)
	store.fail(false)
	want(false)
	store.fail(false, "append")
	r.wantUnchanged(hello)
	eventually(t, "the write is lost", func() bool { return r.server.Degraded() })
	want(true)
	store.fail(false)
	clock.pass(4 * time.Minute)
	want(true) // it was not tried
	clock.pass(2 * time.Minute)
	want(false)
}

// TestServesBeforeTheStoreWasEverReached serves before the store was ever reached, and so before there is a secret.
func TestServesBeforeTheStoreWasEverReached(t *testing.T) {
	r := newRig(t, setup{sessions: noSessions{}})
	for range 3 {
		r.wantUnchanged(hello)
	}
	if n := r.countLogs("store unavailable"); n != 1 {
		t.Errorf("logged %d times", n)
	}
}

// TestChangedBodyIsForwardedIfTheStoreFailsMeanwhile: a request whose body was changed after upstream had refused it is forwarded with that body, even if it cannot
// be recognised again.
func TestChangedBodyIsForwardedIfTheStoreFailsMeanwhile(t *testing.T) {
	t.Parallel()
	store, refused := &flaky{done: make(chan struct{}, 8)}, atomic.Int32{}
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte("context_management")) {
			store.fail(false, all()...)
			refused.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"type":"error","error":{"type":"invalid_request_error","message":"context_management: not permitted"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}`)
	}))
	t.Cleanup(up.Close)
	r := newRig(t, setup{
		base:      up.URL + "/v1",
		dialect:   messagesapi.New(split.Options{}),
		condenser: condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}},
		store:     func(s session.Store) session.Store { store.Store = s; return store },
	})
	body := `{"max_tokens":100,"context_management":{"edits":[{"type":"compact_20260112"}]},` + messages(turns("ships", 17)[1:]...)[1:]
	if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d: %s", resp.StatusCode, answer)
	}
	if n := refused.Load(); n != 1 {
		t.Errorf("the first body was sent %d times, want once", n)
	}
}

// TestBrokenStreamIsDetectedWithoutTheStore: a broken stream is detected without the store.
func TestBrokenStreamIsDetectedWithoutTheStore(t *testing.T) {
	stream := "data: " + chunkOne + "\n\n"
	r := newRig(t, setup{sessions: noSessions{}, base: cannedUpstream(t,
		"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"+stream)})
	if got := wantBroken(t, r.post(helloing)); got != stream {
		t.Errorf("got %q", got)
	}
}

type noSessions struct{}

func (noSessions) Registry(context.Context) (*session.Registry, session.Store, session.Secret, error) {
	return nil, nil, nil, session.ErrUnavailable
}

// TestStoreFailsInPart has one operation fail while a condensation is due. No request may fail or wait for long: the summariser's time is
// not the store's.
func TestStoreFailsInPart(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	for _, op := range all() {
		for name, hang := range map[string]bool{"fails": false, "hangs": true} {
			t.Run(op+" "+name, func(t *testing.T) {
				t.Parallel()
				r, store := unreliable(t, hang)
				r.wantUnchanged(messages(turns("ships", 3)...))
				store.fail(hang, op)
				body := messages(turns("ships", 13)...)
				resp, answer := r.ask(body)
				if resp.StatusCode != http.StatusOK {
					t.Errorf("status %d, %s", resp.StatusCode, answer)
				}
				got := string(r.forwarded().Body)
				if condensed := resp.Header.Get("X-Dewpoint-Condensed") != ""; condensed != (got != body) {
					t.Errorf("said to be condensed: %v; %d bytes of %d forwarded", condensed, len(got), len(body))
				}
				store.fail(false)
				back := r.wantCondensed(messages(turns("ships", 15)...))
				must(t, r.server.Shutdown(guard(t)))
				r.wantLoggedAll(back.Header.Get("X-Dewpoint-Thread"), turns("ships", 15))
			})
		}
	}
}

// wantLoggedAll checks that a thread's log holds all of these messages.
func (r *rig) wantLoggedAll(thread string, want []string) {
	r.t.Helper()
	events, err := r.store.Events(guard(r.t), session.ThreadID(thread), 1, 1000)
	must(r.t, err)
	logged := map[string]bool{}
	for _, e := range events {
		logged[string(e.Payload)] = true
	}
	for _, m := range want {
		if !logged[m] {
			r.t.Errorf("the log lacks %.60s", m)
		}
	}
}

// TestStreamEndsAlthoughTheStoreHangs: the client gets its whole answer although nothing can be logged.
func TestStreamEndsAlthoughTheStoreHangs(t *testing.T) {
	quick.Skip(t)
	r, store := unreliable(t, true)
	store.fail(true, "append", "mark")
	r.up.Script(fakeupstream.Answer{Content: "one two three"})
	if _, got := r.ask(helloing); !strings.HasSuffix(got, "data: [DONE]\n\n") {
		t.Errorf("got %q", got)
	}
}
