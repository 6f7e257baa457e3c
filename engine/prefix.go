package engine

import (
	"hash/maphash"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
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
	last, _ := t.engine.memory.usages.Get(t.place.Thread.ID)
	if last.cachedBy != t.counter.cachedBy {
		return 0
	}
	return last.cached
}

// cachedBy names the upstream, key and model of a request, and the tools and the system prompt that it begins with: a cache that was reported
// for others has nothing of it.
func (t *Turn) cachedBy() uint64 {
	var h maphash.Hash
	h.SetSeed(t.engine.counts.first)
	for _, text := range [...]string{t.in.Upstream.BaseURL, t.in.Upstream.APIKey, t.in.Split.Model} {
		_, _ = h.WriteString(text)
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(t.in.Split.Tools)
	for i := range t.in.Split.Messages {
		m := &t.in.Split.Messages[i]
		if m.Kind != session.System {
			break
		}
		_, _ = h.Write(m.Digest[:])
	}
	return h.Sum64()
}

// largestReused is the largest body that is copied to be asked once more, in bytes: copies are not a part of the bytes in flight.
const largestReused = 4 << 20

// Ask implements condense.Prefix.
func (t *Turn) Ask(question string, output int) []byte {
	if most := t.in.Split.MaxOutput; most > 0 && most < output || len(t.in.Split.Body) > largestReused {
		return nil
	}
	return t.in.Dialect.Reuse(slices.Concat(t.joined(append(t.messages(), t.in.Dialect.Note(question)))...), output)
}
