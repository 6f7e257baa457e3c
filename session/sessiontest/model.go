package sessiontest

import (
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// model implements the contract in its simplest form: for one goroutine, in maps, without expiry.
type model struct {
	threads   map[session.ThreadID]session.Thread
	logs      map[session.ThreadID][]session.Event
	summaries map[session.CondensationID]string
	places    map[session.Hash]session.Place
	traces    map[session.Hash]session.Place
	sessions  map[session.SessionID]session.Session
}

func newModel() *model {
	return &model{
		threads: map[session.ThreadID]session.Thread{}, logs: map[session.ThreadID][]session.Event{},
		summaries: map[session.CondensationID]string{}, sessions: map[session.SessionID]session.Session{},
		places: map[session.Hash]session.Place{}, traces: map[session.Hash]session.Place{},
	}
}

func (m *model) append(b session.Batch) error {
	old, known := m.threads[b.Thread.ID]
	if known && old.Len != b.At || !known && b.At != 0 && b.At != b.Thread.ForkAt {
		return session.ErrStale
	}
	t := b.Thread
	t.Seq, t.Requests = old.Seq+uint64(len(b.Events)), old.Requests+1
	if known {
		t.Condensations = old.Condensations
	}
	m.threads[t.ID] = t
	m.logs[t.ID] = append(m.logs[t.ID], logged(b, old.Seq+1)...)
	last := session.Place{Thread: t.ID, Session: t.Session, Pos: t.Len}
	for _, p := range b.Places {
		m.places[p.Hash], last = p.Place, p.Place
	}
	for _, h := range b.Traces.Lasting {
		m.traces[h] = last
	}
	ses, known := m.sessions[t.Session]
	if !known {
		ses = session.Session{ID: t.Session, Tenant: t.Tenant, Created: t.Created}
	}
	if !slices.Contains(ses.Threads, t.ID) {
		ses.Threads = append(ses.Threads, t.ID)
	}
	ses.AddKey(b.Key)
	ses.Requests, ses.Seen = ses.Requests+1, t.Seen
	m.sessions[t.Session] = ses
	return nil
}

func (m *model) condense(id session.ThreadID, c session.Condensation) (session.Condensation, error) {
	t, known := m.threads[id]
	if !known {
		return session.Condensation{}, session.ErrNotFound
	}
	t.Seq++
	c.ID = session.CondensationID{Thread: id, Seq: t.Seq}
	t.Condensations = append(slices.Clone(t.Condensations), listed(c))
	m.threads[id], m.summaries[c.ID] = t, c.Summary
	m.logs[id] = append(m.logs[id], session.Event{Seq: t.Seq, Kind: session.Condensed, Tokens: c.SummaryTokens, Time: c.Time})
	return c, nil
}

func (m *model) forget(id session.SessionID) error {
	ses, known := m.sessions[id]
	if !known {
		return session.ErrNotFound
	}
	gone := func(p session.Place) bool { return slices.Contains(ses.Threads, p.Thread) }
	for _, id := range ses.Threads {
		delete(m.threads, id)
		delete(m.logs, id)
	}
	delete(m.sessions, ses.ID)
	maps.DeleteFunc(m.places, func(_ session.Hash, p session.Place) bool { return gone(p) })
	maps.DeleteFunc(m.traces, func(_ session.Hash, p session.Place) bool { return gone(p) })
	maps.DeleteFunc(m.summaries, func(c session.CondensationID, _ string) bool { return slices.Contains(ses.Threads, c.Thread) })
	return nil
}

// world is one run of random steps: a store, its model, and IDs that no other run uses.
type world struct {
	store session.Backend
	model *model
	ids   []session.ThreadID
	ses   []session.SessionID
	steps int // each append advances the time
}

func (s suite) ModelRandomSteps(t *testing.T) {
	store := s.fresh(t)
	var runs atomic.Int64
	property.Check(t, func(r *rapid.T) {
		w := &world{store: store, model: newModel()}
		run := runs.Add(1)
		for i := range 3 {
			w.ids = append(w.ids, session.ThreadID(fmt.Sprintf("run-%d-%d", run, i)))
			w.ses = append(w.ses, session.SessionID(fmt.Sprintf("run-%d-%d", run, i%2)))
		}
		r.Repeat(map[string]func(*rapid.T){
			"append": w.append, "condense": w.condense, "mark": w.mark, "forget": w.forget, "": w.check,
		})
	})
}

func (w *world) append(r *rapid.T) {
	i := rapid.IntRange(0, len(w.ids)-1).Draw(r, "thread")
	at := w.model.threads[w.ids[i]].Len
	if rapid.IntRange(0, 4).Draw(r, "wrong") == 0 {
		at = rapid.IntRange(0, 12).Draw(r, "at")
	}
	b := batch(w.ids[i], at, rapid.IntRange(0, 4).Draw(r, "events"))
	b.Thread.Session = w.ses[i]
	b.Thread.Seq = 500 // ignored: the store counts
	w.steps++
	b.Thread.System = hash("system", w.steps)
	b.Thread.Seen = clock.Add(time.Duration(w.steps) * time.Second)
	for j := range b.Places {
		b.Places[j].Place.Session = w.ses[i]
	}
	if parent, known := w.model.threads[w.ids[0]]; known && i > 0 && rapid.Bool().Draw(r, "fork") {
		// If the thread exists, the store ignores these condensations.
		b.Thread.Parent, b.Thread.ForkAt, b.Thread.Condensations = parent.ID, b.At, slices.Clone(parent.Condensations)
	}
	if rapid.Bool().Draw(r, "traces") {
		b.Traces = session.Traces{Lasting: []session.Hash{hash(w.ids[0], "trace", rapid.IntRange(0, 2).Draw(r, "trace"))}}
	}
	is(r, w.store.Append(ctx(r), b), w.model.append(b))
}

func (w *world) condense(r *rapid.T) {
	id := rapid.SampledFrom(w.ids).Draw(r, "thread")
	c := condensation(rapid.IntRange(7, 20).Draw(r, "prefix"))
	got, err := w.store.Condense(ctx(r), id, c)
	want, wantErr := w.model.condense(id, c)
	is(r, err, wantErr)
	equal(r, got, want)
}

func (w *world) mark(r *rapid.T) {
	id := rapid.SampledFrom(w.ids).Draw(r, "thread")
	h, p := hash(w.ids[0], "trace", rapid.IntRange(0, 2).Draw(r, "trace")), place(id, 3)
	err := w.store.Mark(ctx(r), p, session.Traces{Lasting: []session.Hash{h}})
	if _, known := w.model.threads[id]; known {
		ok(r, err)
		w.model.traces[h] = p
		return
	}
	is(r, err, session.ErrNotFound)
	if !must(w.store.Trace(ctx(r), []session.Hash{h}))(r)[0].Known() {
		delete(w.model.traces, h) // the store may overwrite a trace before it finds that the thread is gone
	}
}

// forget deletes a session with all its threads, of which one session has two.
func (w *world) forget(r *rapid.T) {
	id := rapid.SampledFrom(w.ses).Draw(r, "session")
	is(r, w.store.Forget(ctx(r), id), w.model.forget(id))
}

// check compares everything in the store with the model.
func (w *world) check(r *rapid.T) {
	for i, id := range w.ids {
		w.checkThread(r, id)
		ses, err := w.store.Session(ctx(r), w.ses[i])
		if want, known := w.model.sessions[w.ses[i]]; known {
			ok(r, err)
			equal(r, ses, want)
		} else {
			is(r, err, session.ErrNotFound)
		}
	}
	for id, want := range w.model.summaries {
		equal(r, must(w.store.Summary(ctx(r), id))(r), want)
	}
	for i := range 3 {
		h := hash(w.ids[0], "trace", i)
		equal(r, must(w.store.Trace(ctx(r), []session.Hash{h}))(r), []session.Place{w.model.traces[h]})
	}
}

func (w *world) checkThread(r *rapid.T, id session.ThreadID) {
	hashes, want := make([]session.Hash, 20), make([]session.Place, 20)
	for i := range hashes {
		hashes[i] = hash(id, i)
		want[i] = w.model.places[hashes[i]]
	}
	found := lookup(r, w.store, hashes, id)
	equal(r, found.Places, want)
	thread, known := w.model.threads[id]
	if !known {
		equal(r, found.Hinted, nil)
		is(r, second(w.store.Events(ctx(r), id, 1, 1)), session.ErrNotFound)
		return
	}
	equal(r, *found.Hinted, thread)
	equal(r, append([]session.Event{}, events(r, w.store, id)...), append([]session.Event{}, w.model.logs[id]...))
}
