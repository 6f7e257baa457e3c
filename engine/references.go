package engine

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Some clients send the ids of the model's items, which upstream keeps, instead of their text. The process that relayed an answer
// remembers its items for the client's next request, whose log entry then holds them. Since another process may serve that request, the items
// are also logged at once, if the client refers to items or this is the conversation's first answer.
const (
	itemsKept     = 2048
	maxItemKept   = 16 << 10  // bytes
	maxReferences = 16 << 10  // in a request; if there are more, none is resolved
	maxReferred   = 4 << 20   // bytes of items that one request refers to
	maxResolved   = 256 << 10 // bytes of items that one request's log entries hold
)

// rememberItems remembers the items of an answer to which a later request may refer. It returns those to log.
func (t *Turn) rememberItems(answer dialect.Answer) []byte {
	if !t.in.Split.Stores {
		return nil
	}
	if d, refers := t.in.Dialect.(dialect.Referrer); refers {
		for id, item := range d.Items(answer.Said) {
			t.engine.memory.rememberItem(session.KeptTrace(t.history.Chain[0], id), item)
		}
	}
	if t.in.items == nil || len(answer.Said) > maxResolved {
		return nil
	}
	return answer.Said
}

// rememberItem remembers an item under the trace of its id, unless it is too large. If two items have the same id, it identifies neither of
// them: some servers count from 0 in each answer.
func (m *memory) rememberItem(trace session.Hash, item []byte) {
	if len(item) > maxItemKept {
		item = nil
	}
	if known, present, _ := m.items.PeekOrAdd(trace, bytes.Clone(item)); present && !bytes.Equal(known, item) {
		m.items.Add(trace, nil)
	}
}

// recallItems makes the items known that the request refers to and this process remembers. The turn must have its own copy of Split.
func (t *Turn) recallItems(seed session.Hash) {
	t.learnItems(func(id string) []byte {
		item, _ := t.engine.memory.items.Get(session.KeptTrace(seed, id))
		return item
	})
	byModel := func(m session.Message) bool { return m.Kind.ByModel() }
	if t.in.Split.Stores && t.in.items == nil && !slices.ContainsFunc(t.in.Split.Messages, byModel) {
		t.in.items = map[string][]byte{} // the client may refer to the first answer
	}
	if t.in.items != nil {
		t.in.Split.Messages = slices.Clone(t.in.Split.Messages) // the dialect shares them between requests
	}
}

// resolveNew resolves the messages that are not logged yet, newest first, so that the log holds what they refer to.
func (t *Turn) resolveNew(ctx context.Context) {
	if t.in.items == nil {
		return
	}
	place, size := &t.place, 0
	if place.Base != nil {
		place = place.Base
	}
	read := place.New
	for p := t.history.Len(); p > place.Logged; p-- {
		m := t.history.Message(p)
		if !read && !t.knows(m) { // another process relayed the answer
			t.learnFrom(t.registry.NewestItems(ctx, place))
			read = true
		}
		for _, id := range m.Refers {
			size += len(t.in.items[id])
		}
		if d, refers := t.in.Dialect.(dialect.Referrer); refers && len(m.Refers) > 0 && size <= maxResolved {
			m.Resolved = d.Resolve(m.Raw)
		}
	}
}

// learnFrom makes the items in what was read from the log known, unless it could not be read.
func (t *Turn) learnFrom(payloads [][]byte, err error) {
	d, refers := t.in.Dialect.(dialect.Referrer)
	if err != nil || !refers {
		return
	}
	logged := map[string][]byte{}
	for _, payload := range payloads {
		maps.Copy(logged, d.Items(payload))
	}
	t.learnItems(func(id string) []byte { return logged[id] })
}

// resolved returns the form whose turn also knows the items that only the log has.
func (f *Form) resolved(ctx context.Context) *Form {
	if !slices.ContainsFunc(f.turn.history.Messages, func(m session.Message) bool { return !f.turn.knows(&m) }) {
		return f
	}
	own := *f.turn
	own.resolveLogged(ctx, f.at())
	return f.with(func(next *Form) { next.turn = &own })
}

// resolveLogged makes the items known that only the log has. The counts of messages with items that it does not have, either, are kept as they
// are. It changes the turn, which nothing else may use yet.
func (t *Turn) resolveLogged(ctx context.Context, place *session.Resolution) {
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	payloads, err := t.registry.References(ctx, place)
	if t.learnFrom(payloads, err); err != nil {
		return
	}
	for p := 1; p <= min(place.Logged, t.history.Len()); p++ {
		if m := t.history.Message(p); !t.knows(m) {
			t.engine.counts.byKey.Add(t.engine.counts.messageKey(t.counter.Encoding(), m), t.read(m))
		}
	}
}

// learnItems looks up the items that the request refers to and that are not known. An id that it gives twice is not looked up: no client does
// that, and it would multiply the size of the request.
func (t *Turn) learnItems(lookUp func(id string) []byte) {
	d, refers := t.in.Dialect.(dialect.Referrer)
	times, ids := map[string]int{}, []string(nil)
	for i := range t.in.Split.Messages {
		for _, id := range t.in.Split.Messages[i].Refers {
			ids = append(ids, id)
			times[id]++
		}
	}
	if !refers || len(ids) == 0 || len(ids) > maxReferences {
		return
	}
	items, size := map[string][]byte{}, 0
	for _, id := range slices.Backward(ids) { // the newest first
		item := t.in.items[id]
		if item == nil && times[id] == 1 {
			item = lookUp(id)
		}
		if size += len(item); item != nil && size <= maxReferred {
			items[id] = item
		}
	}
	t.in.items, t.in.Dialect = items, d.WithItems(items)
}

// knows reports whether all items that a message refers to are known.
func (t *Turn) knows(m *session.Message) bool {
	return !slices.ContainsFunc(m.Refers, func(id string) bool { return t.in.items[id] == nil })
}

// countsUnknown reports whether the view is counted message by message, and a logged one refers to items that were not known when it was
// counted.
func (f *Form) countsUnknown() bool {
	if f.shown.view.Identity() {
		return false
	}
	for p := 1; p <= min(f.place.Logged, f.turn.history.Len()); p++ {
		m := f.turn.history.Message(p)
		if !f.turn.knows(m) && !f.turn.engine.counts.byKey.Contains(f.turn.engine.counts.messageKey(f.turn.counter.Encoding(), m)) {
			return true
		}
	}
	return false
}
