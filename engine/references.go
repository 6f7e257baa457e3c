package engine

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Some clients send the ids of the model's messages, which upstream keeps, instead of their text. The process that relayed an answer
// remembers its items for the client's next request, whose log entry then holds them.
const (
	itemsKept    = 2048
	maxItemKept  = 16 << 10 // bytes
	maxResolved  = 4 << 20  // bytes of items that are resolved at once
	newestReread = 16       // messages at the end of a history whose references are resolved at once, to be logged and counted
)

// rememberItems remembers the items of an answer to which a later request may refer.
func (t *Turn) rememberItems(answer dialect.Answer) {
	d, refers := t.in.Dialect.(dialect.Referrer)
	if !refers || !t.in.Split.Stores {
		return
	}
	for id, item := range d.Items(answer.Said) {
		if len(item) <= maxItemKept {
			t.engine.memory.items.Add(session.KeptTrace(t.history.Chain[0], id), bytes.Clone(item))
		}
	}
}

// resolveNewest resolves the references in the newest messages.
func (t *Turn) resolveNewest(seed session.Hash) {
	all := t.in.Split.Messages
	if !slices.ContainsFunc(all, func(m session.Message) bool { return m.Refers }) {
		return
	}
	first := max(len(all)-newestReread, 0)
	d := t.withItems(t.remembered(t.references(all[first:]), seed))
	if d == nil {
		return
	}
	request := *t.in.Split
	request.Messages = slices.Clone(all) // the dialect shares them between requests
	for i := range request.Messages[first:] {
		if m := &request.Messages[first+i]; m.Refers {
			m.Resolved = d.Resolve(m.Raw)
		}
	}
	t.in.Split = &request
}

// resolveAll makes the content of all references known that this process or the log has. If the log cannot be read, some stay unknown.
// It changes the turn, which must not be in use by another goroutine.
func (t *Turn) resolveAll(ctx context.Context) {
	unknown := t.references(t.history.Messages)
	if len(unknown) == 0 {
		return
	}
	t.withItems(t.remembered(unknown, t.history.Chain[0]))
	if unknown = t.references(t.history.Messages); len(unknown) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	payloads, _ := t.registry.References(ctx, &t.place)
	d, _ := t.in.Dialect.(dialect.Referrer) // it is one, since there are references
	all, logged := map[string][]byte{}, map[string][]byte{}
	for _, payload := range payloads {
		maps.Copy(all, d.Items(payload))
	}
	for _, id := range unknown {
		if item, ok := all[id]; ok {
			logged[id] = item
		}
	}
	t.withItems(logged)
}

// references returns the ids in references to items that are not known. An id that is given twice is not among them: no client does that,
// and resolving it would multiply the size of a request.
func (t *Turn) references(messages []session.Message) (ids []string) {
	d, refers := t.in.Dialect.(dialect.Referrer)
	if !refers {
		return nil
	}
	times := map[string]int{}
	for i := range messages {
		if m := &messages[i]; m.Refers {
			for _, id := range d.References(m.Raw) {
				ids = append(ids, id)
				times[id]++
			}
		}
	}
	return slices.DeleteFunc(ids, func(id string) bool { return times[id] > 1 })
}

// remembered returns the items of these ids that the process remembers.
func (t *Turn) remembered(ids []string, seed session.Hash) map[string][]byte {
	known := map[string][]byte{}
	for _, id := range ids {
		if item, ok := t.engine.memory.items.Get(session.KeptTrace(seed, id)); ok {
			known[id] = item
		}
	}
	return known
}

// withItems makes items known to the turn's dialect, which it returns, unless there are none or too many.
func (t *Turn) withItems(items map[string][]byte) dialect.Referrer {
	size := 0
	for _, item := range items {
		size += len(item)
	}
	if len(items) == 0 || size > maxResolved {
		return nil
	}
	d, _ := t.in.Dialect.(dialect.Referrer)
	t.in.Dialect = d.WithItems(items)
	d, _ = t.in.Dialect.(dialect.Referrer)
	return d
}
