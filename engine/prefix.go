package engine

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var _ condense.Prefix = (*Turn)(nil)

// Cached implements condense.Prefix.
func (t *Turn) Cached(v *session.View) int {
	own := t.shown.view.Items
	same := len(own) > 0 && len(own) == len(v.Items) && &own[0] == &v.Items[0]
	r := &t.relief
	if !same || t.unchanged() || t.alternates() || t.remote() || r.tries > 0 || r.refused || r.bared > 0 || r.recalled != nil || len(t.hidden.tail) > 0 {
		return 0
	}
	last, _ := t.engine.usages.threads.Get(t.place.Thread.ID)
	if last.model != t.in.Split.Model {
		return 0
	}
	return last.cached
}

// largestReused is the largest body that is copied to be asked once more, in bytes: copies are not a part of the bytes in flight.
const largestReused = 4 << 20

// Ask implements condense.Prefix.
func (t *Turn) Ask(question string, output int) []byte {
	d, can := t.in.Dialect.(dialect.Reuser)
	if !can || t.in.Split.MaxOutput > 0 && t.in.Split.MaxOutput < output {
		return nil
	}
	if len(t.in.Split.Body) > largestReused {
		return nil
	}
	return d.Reuse(slices.Concat(t.joined(append(t.messages(), t.in.Dialect.Note(question)))...), output)
}
