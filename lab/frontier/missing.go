package frontier

import (
	"maps"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/replay/missing"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// rereadEvery is the number of steps in which a message is read again once.
const rereadEvery = 20

// memory counts what actions name and cannot see.
type memory struct {
	named, missed int
	rereadPrice   float64
	last          map[int]int // by message: the step at which it was last read again
	record        []byte
	recordLines   []string
}

// look counts what a step's action names that nothing in the view shows: not an original message, nor a line of the record that has at
// least half of the words of a line in which it was named last.
func (m *memory) look(r *Run, k int, v *session.View, b bill, p Prices) {
	s := r.steps[k]
	var shown []int
	for i := range v.Items {
		switch item := &v.Items[i]; {
		case item.Index < 0:
			if raw := r.raw(item); string(raw) != string(m.record) {
				m.record, m.recordLines = raw, missing.Lines(string(raw))
			}
		case v.Verbatim(item):
			shown = append(shown, item.Index)
		}
	}
	hidden := map[int]bool{}
	for t, at := range s.named {
		m.named++
		if r.shows(shown, t) || missing.Retold(t, m.recordLines, string(r.messages[at].Raw)) {
			continue
		}
		m.missed++
		hidden[at] = true
	}
	if m.last == nil {
		m.last = map[int]int{}
	}
	n := 0
	for _, at := range slices.Sorted(maps.Keys(hidden)) { // in order, so that the first two are always the same
		if last, again := m.last[at]; n == 2 || again && k-last < rereadEvery {
			continue
		}
		m.last[at] = k
		n++
		size := len(r.messages[at].Raw) / bytesPerToken
		m.rereadPrice += p.of(bill{total: b.total + size, cached: b.total}) + 80*p.Output
	}
}

// shows reports whether one of the shown messages names a term.
func (r *Run) shows(shown []int, term string) bool {
	for _, i := range shown {
		if r.terms[i][term] {
			return true
		}
	}
	return false
}
