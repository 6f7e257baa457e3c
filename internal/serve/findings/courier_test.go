package findings_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/findings"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// sink is a Sink controlled by a test. It records the first finding of each message it accepts.
type sink struct {
	mu    sync.Mutex
	fails map[session.ThreadID]error // "": Open fails
	tried int
	took  []string
}

func (s *sink) Open(context.Context) (findings.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.fails[""]; err != nil {
		s.tried++
		return nil, err
	}
	return s, nil
}

func (s *sink) Send(_ context.Context, m *findings.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tried++
	if err := s.fails[m.Thread]; err != nil {
		return err
	}
	s.took = append(s.took, fmt.Sprintf("%s: %s", m.Thread, m.Findings[0].Text))
	return nil
}

func (s *sink) Close() {}

// tries returns how many messages were sent to the sink, including those that it did not accept.
func (s *sink) tries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tried
}

// set makes the sink fail with err from now on for the given threads, and for no others.
func (s *sink) set(err error, threads ...session.ThreadID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = map[session.ThreadID]error{}
	for _, t := range threads {
		s.fails[t] = err
	}
}

func (s *sink) taken() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.took)
}

// watch is an Observer that records what it is notified of.
type watch struct {
	mu    sync.Mutex
	count map[findings.Outcome]int
	sinks []error
	torn  error
}

func (w *watch) Findings(_ string, o findings.Outcome) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count[o]++
}

func (w *watch) Sink(_ string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sinks = append(w.sinks, err)
}

func (w *watch) Unread(_ string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.torn = err
}

func (w *watch) said() (sinks []error, torn error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.sinks), w.torn
}

// rig is a store with a courier, in a synctest bubble.
type rig struct {
	t     *testing.T
	store *boltstore.Store
	*findings.Courier
	watch watch
	sink  sink
}

// inBubble runs a test in a synctest bubble. The store is opened inside it, so all its goroutines belong to the bubble.
func inBubble(t *testing.T, test func(r *rig)) {
	synctest.Test(t, func(t *testing.T) {
		store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "store.db"), Content: true})
		must(t, err)
		r := &rig{t: t, store: store, watch: watch{count: map[findings.Outcome]int{}}}
		r.start()
		test(r)
		must(r.t, r.Close(r.t.Context()))
		must(t, store.Close())
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a courier on the store, which may have been used before.
func (r *rig) start() {
	r.Courier = findings.New(r.store, &r.watch)
	r.route(3)
}

func (r *rig) route(most int) {
	r.Swap(map[string]findings.Route{"acme": {Sink: &r.sink, MaxPending: most, MaxAge: 24 * time.Hour}})
}

// promised promises a condensation of a thread.
func (r *rig) promised(thread session.ThreadID, text string) (c session.Condensation, logged func()) {
	r.t.Helper()
	c = session.Condensation{Model: "m", Reason: session.ReasonTokens, Time: time.Now(), Summary: record.Summary{Record: text}.String()}
	return c, r.Promise(r.t.Context(), "acme", thread, &c)
}

// condensed promises a condensation of each thread, and logs it.
func (r *rig) condensed(threads ...session.ThreadID) {
	r.t.Helper()
	for _, thread := range threads {
		c, logged := r.promised(thread, "FACTS: of "+string(thread))
		r.log(thread, c)
		logged()
		time.Sleep(time.Millisecond) // so that their order is defined
	}
}

func (r *rig) log(thread session.ThreadID, c session.Condensation) {
	r.t.Helper()
	batch := session.Batch{Thread: session.Thread{ID: thread, Session: "s-" + session.SessionID(thread), Tenant: "acme", Len: 1, Created: time.Now()}}
	batch.Events = []session.Event{{Pos: 1, Kind: session.User, Payload: []byte("{}")}}
	must(r.t, r.store.Append(r.t.Context(), batch))
	_, err := r.store.Condense(r.t.Context(), thread, c)
	must(r.t, err)
}

// want waits, and then compares what the sink has accepted.
func (r *rig) want(wait time.Duration, took ...string) {
	r.t.Helper()
	time.Sleep(wait)
	synctest.Wait()
	if got := r.sink.taken(); !slices.Equal(got, took) {
		r.t.Errorf("took %q, want %q", got, took)
	}
}

func (r *rig) counted(o findings.Outcome, want int) {
	r.t.Helper()
	r.watch.mu.Lock()
	defer r.watch.mu.Unlock()
	if got := r.watch.count[o]; got != want {
		r.t.Errorf("%s: %d, want %d", o, got, want)
	}
}

func (r *rig) waiting(want int) {
	r.t.Helper()
	for _, n := range r.Pending {
		if n != want {
			r.t.Errorf("%d wait, want %d", n, want)
		}
		return
	}
	r.t.Error("no tenant")
}

const soon = time.Second

var errDown = errors.New("down")

func TestDelivered(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.condensed("a", "b")
		r.want(soon, "a: of a", "b: of b")
		r.counted(findings.Promised, 2)
		r.counted(findings.Delivered, 2)
		r.waiting(0)
		if sinks, _ := r.watch.said(); sinks != nil {
			r.t.Errorf("reported of the sink: %v", sinks)
		}
	})
}

// TestConditionsForPromises: no findings are promised for a condensation that no model made, a trim of a new message, a replacement, an added text, or
// a record without findings.
func TestConditionsForPromises(t *testing.T) {
	inBubble(t, func(r *rig) {
		text := record.Summary{Record: "FACTS: some"}.String()
		for _, c := range []session.Condensation{
			{Summary: text}, {Model: "m", Reason: session.ReasonArrival, Summary: text}, {Model: "m", Reason: session.ReasonReplacement, Summary: text},
			{Model: "m", Summary: text, Addition: session.Addition{Added: 1}}, {Model: "m", Summary: record.Summary{Record: "TESTS: pass"}.String()},
		} {
			r.Promise(r.t.Context(), "acme", "a", &c)
		}
		r.Promise(r.t.Context(), "globex", "a", &session.Condensation{Model: "m", Summary: text})
		r.counted(findings.Promised, 0)
	})
}

// TestFailingSink: messages that a sink does not accept are sent again later, at growing intervals, and in order.
func TestFailingSink(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.sink.set(errDown, "")
		r.condensed("a", "b")
		r.want(time.Hour)
		r.waiting(2)
		if n := r.sink.tries(); n < 12 || n > 40 {
			t.Errorf("tried %d times in an hour", n)
		}
		tried := r.sink.tries()
		r.condensed("c")
		r.want(time.Millisecond)
		if r.sink.tries() != tried {
			t.Error("new findings ended the pause")
		}
		r.sink.set(nil)
		r.want(10*time.Minute, "a: of a", "b: of b", "c: of c")
		if sinks, _ := r.watch.said(); !slices.Equal(sinks, []error{errDown, nil}) {
			r.t.Errorf("reported of the sink: %v", sinks)
		}
	})
}

// TestRefused: a refused message does not delay others, and is finally dropped.
func TestRefused(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.route(99)
		var all []session.ThreadID
		var took []string
		for i := range 30 {
			all = append(all, session.ThreadID(fmt.Sprintf("r%02d", i)))
		}
		r.sink.set(&findings.RefusedError{Why: "status 422"}, all...)
		r.condensed(all...)
		for i := range 3 {
			id := session.ThreadID(fmt.Sprint("good", i))
			took = append(took, fmt.Sprintf("%s: of %s", id, id))
			r.condensed(id)
		}
		r.want(time.Hour, took...)
		if n := r.sink.tries(); n > 600 {
			t.Errorf("tried %d times in an hour: a round goes on although the sink refuses what it gets", n)
		}
		r.waiting(30)
		r.want(25*time.Hour, took...)
		r.waiting(0)
		r.counted(findings.Expired, 30)
	})
}

// TestExpired: findings that could not be delivered within MaxAge are dropped, all by the first attempt after that.
func TestExpired(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.route(6)
		r.sink.set(errDown, "")
		r.condensed("a", "b", "c", "d", "e", "f")
		r.want(24*time.Hour + 6*time.Minute) // the longest pause is 5 minutes
		r.counted(findings.Expired, 6)
		r.want(time.Hour)
		r.waiting(0)
	})
}

// TestFull: no more than MaxPending notices wait, and further ones are counted as not promised.
func TestFull(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.sink.set(errDown, "")
		r.condensed("a", "b", "c", "d")
		r.counted(findings.Full, 1)
		r.sink.set(nil)
		r.want(10*time.Minute, "a: of a", "b: of b", "c: of c")
	})
}

// TestRestart: promised findings are delivered by the next process, even if the route is another one.
func TestRestart(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.sink.set(errDown, "")
		r.condensed("a")
		r.want(soon)
		must(r.t, r.Close(r.t.Context()))
		r.sink.set(nil)
		r.start()
		r.want(soon, "a: of a")

		r.sink.set(errDown, "")
		r.condensed("b")
		r.want(time.Hour, "a: of a")
		r.Swap(nil)
		r.sink.set(nil)
		r.want(time.Hour, "a: of a")
		r.route(3)
		r.want(soon, "a: of a", "b: of b")
	})
}

// TestNewRouteEndsThePause: a new route ends the pause after a failure: it is tried at once.
func TestNewRouteEndsThePause(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.sink.set(errDown, "")
		r.condensed("a")
		r.want(time.Hour)
		r.sink.set(nil)
		r.route(3)
		r.want(time.Millisecond, "a: of a")
	})
}

// TestNotLogged: the notice of a condensation that is never logged waits for it, and is then dropped.
func TestNotLogged(t *testing.T) {
	inBubble(t, func(r *rig) {
		c, logged := r.promised("late", "FACTS: of late")
		r.promised("never", "FACTS: of never")
		r.log("never", session.Condensation{Model: "m", Time: time.Now().Add(-time.Hour)})
		r.promised("deleted", "FACTS: of deleted")
		r.want(time.Minute)
		r.log("late", c)
		logged()
		r.want(soon, "late: of late")
		r.waiting(2)
		r.want(time.Hour, "late: of late")
		r.waiting(0)
		r.counted(findings.Gone, 1)
	})
}

// TestReplicas: one replica at a time delivers, and another takes over when it dies.
func TestReplicas(t *testing.T) {
	inBubble(t, func(r *rig) {
		lease, err := r.store.Lock(r.t.Context(), "findings/acme", 10*time.Minute)
		must(r.t, err)
		_ = lease // never released: its holder died
		r.condensed("a")
		r.want(9 * time.Minute)
		r.waiting(1)
		r.want(2*time.Minute, "a: of a")
	})
}

// TestUnreadable: findings encrypted with a missing key wait.
func TestUnreadable(t *testing.T) {
	inBubble(t, func(r *rig) {
		must(r.t, r.Close(r.t.Context()))
		lost := lossy{r.store}
		r.Courier = findings.New(lost, &r.watch)
		r.route(3)
		r.condensed("a")
		r.want(time.Hour)
		r.waiting(1)
		must(r.t, r.Close(r.t.Context()))
		r.start()
		r.want(soon, "a: of a")
	})
}

// lossy is a store that lacks the key for summaries.
type lossy struct{ session.Store }

func (lossy) Summary(context.Context, session.CondensationID) (string, error) {
	return "", session.ErrUnreadable
}

// TestUnreadableNoticeIsDropped: an unreadable notice does not delay others, is reported, and is finally dropped.
func TestUnreadableNoticeIsDropped(t *testing.T) {
	inBubble(t, func(r *rig) {
		must(r.t, r.Close(r.t.Context()))
		r.Courier = findings.New(torn{r.store}, &r.watch)
		r.route(99)
		for i := range 20 {
			r.condensed(session.ThreadID(fmt.Sprint("torn", i)))
		}
		r.condensed("a", "b")
		r.want(time.Hour, "a: of a", "b: of b")
		r.waiting(20)
		if sinks, torn := r.watch.said(); !errors.Is(torn, errTorn) || sinks != nil {
			r.t.Errorf("told of %v, sinks %v", torn, sinks)
		}
		r.want(25*time.Hour, "a: of a", "b: of b")
		r.waiting(0)
		r.counted(findings.Expired, 20)
	})
}

var errTorn = errors.New("corrupt record")

// torn is a store in which a thread cannot be read.
type torn struct{ session.Store }

func (s torn) Thread(ctx context.Context, id session.ThreadID) (session.Thread, error) {
	if strings.HasPrefix(string(id), "torn") {
		return session.Thread{}, errTorn
	}
	return s.Store.Thread(ctx, id) // pass the store's error on
}

// stuck is a sink that accepts a message only once it is freed, even if the courier gives up.
type stuck struct{ begun, free chan struct{} }

func (s stuck) Open(context.Context) (findings.Conn, error) { return s, nil }

func (s stuck) Send(context.Context, *findings.Message) error {
	close(s.begun)
	<-s.free
	return nil
}

func (s stuck) Close() {}

// TestCloseWithoutTime: if its context has ended already, Close fails only if a delivery goes on although it was cancelled.
func TestCloseWithoutTime(t *testing.T) {
	for _, busy := range []bool{false, true} {
		inBubble(t, func(r *rig) {
			s := stuck{make(chan struct{}), make(chan struct{})}
			defer close(s.free)
			r.Swap(map[string]findings.Route{"acme": {Sink: s, MaxPending: 3, MaxAge: time.Hour}})
			if busy {
				r.condensed("a")
				<-s.begun
			}
			ctx, cancel := context.WithCancel(r.t.Context())
			cancel()
			if err := r.Close(ctx); errors.Is(err, context.Canceled) != busy {
				r.t.Errorf("busy %t: got %v", busy, err)
			}
		})
	}
}

// TestCloseAfterSwap: Close waits for a delivery in progress, even if its route was removed before.
func TestCloseAfterSwap(t *testing.T) {
	inBubble(t, func(r *rig) {
		s := stuck{make(chan struct{}), make(chan struct{})}
		r.Swap(map[string]findings.Route{"acme": {Sink: s, MaxPending: 3, MaxAge: time.Hour}})
		r.condensed("a")
		<-s.begun
		r.Swap(nil)
		freed := time.AfterFunc(time.Second, func() { close(s.free) })
		must(r.t, r.Close(r.t.Context()))
		if freed.Stop() {
			r.t.Error("closed while a delivery was in progress")
			close(s.free)
		}
	})
}
