// Package lessons remembers what upstreams have shown in answers to requests. What one client was shown holds for that client: its requests
// may have been the reason. It holds for all clients once a second one was shown the same. Two requests are of two
// clients only if they have no key in common, since a client may send more keys than the one that upstream checks.
package lessons

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

// Source is a hash that identifies whose requests to which upstream are meant. Clients choose parts of it, so a Book is bounded.
type Source [sha256.Size]byte

// SourceOf returns the source with the given parts.
func SourceOf(parts ...string) Source {
	text := make([]byte, 0, 256)
	for _, part := range parts { // each with its length, so that no two lists of parts give the same text
		text = append(binary.AppendUvarint(text, uint64(len(part))), part...)
	}
	return sha256.Sum256(text)
}

// PlaceOf returns the place for what a client of a tenant is shown of a model behind a base URL: a gateway has several upstreams behind one.
func PlaceOf(tenant, credential, baseURL, model string, keys []string) Place {
	of := func(client string) Source { return SourceOf(tenant, client, baseURL, model) }
	return Place{Own: of("client " + credential), All: of("all"), Keys: keys}
}

// Place says for whom a lesson holds: for one client at first, and then for all. Without All, it never holds for others.
type Place struct {
	Own, All Source
	Keys     []string // the keys that the client sent. Only their hashes are kept
}

// clients returns what no other client has: hashes of the keys, or Own if there are none.
func (p *Place) clients() []Source {
	if len(p.Keys) == 0 {
		return []Source{p.Own}
	}
	all := make([]Source, len(p.Keys))
	for i, key := range p.Keys {
		all[i] = SourceOf("key", key)
	}
	return all
}

// Terms are those of a kind of lesson.
type Terms[V any] struct {
	Own    time.Duration // how long a lesson holds for the client
	Shared time.Duration // how long a confirmed lesson holds for all clients, and one that is not confirmed waits for that
	// Same returns what two clients were both shown, and whether they were shown the same.
	Same func(a, b V) (V, bool)
}

// Equal is Same for values that are the same only if they are equal.
func Equal[V comparable](a, b V) (V, bool) { return a, a == b }

// Book holds the lessons of one kind. It may be used concurrently.
type Book[V any] struct {
	terms Terms[V]
	kept  lru.Cache[Source, entry[V]]
}

type entry[V any] struct {
	value  V
	at     time.Time
	by     []Source // the client that was shown it last, see Place.clients
	shared bool     // a second client has confirmed it
}

// NewBook returns an empty book for size clients and upstreams.
func NewBook[V any](size int, terms Terms[V]) *Book[V] {
	return &Book[V]{terms, lru.New[Source, entry[V]](size)}
}

// Learn records what a client has just been shown.
func (b *Book[V]) Learn(p Place, value V, now time.Time) {
	e := entry[V]{value: value, at: now}
	b.kept.Add(p.Own, e)
	if p.All == (Source{}) {
		return
	}
	e.by = p.clients()
	if last, known := b.kept.Get(p.All); known && now.Sub(last.at) < b.terms.Shared {
		same, confirmed := b.terms.Same(last.value, value)
		isKnown := func(client Source) bool { return slices.Contains(last.by, client) }
		switch {
		case confirmed && !slices.ContainsFunc(e.by, isKnown):
			e.value, e.shared = same, true
		case last.shared:
			return // one client takes nothing from the others
		}
	}
	b.kept.Add(p.All, e)
}

// Own returns what the client itself was shown, if that still holds.
func (b *Book[V]) Own(p Place, now time.Time) (value V, ok bool) {
	if e, known := b.kept.Get(p.Own); known && now.Sub(e.at) < b.terms.Own {
		return e.value, true
	}
	return value, false
}

// Shared returns what holds for all clients.
func (b *Book[V]) Shared(p Place, now time.Time) (value V, ok bool) {
	if e, known := b.kept.Get(p.All); known && e.shared && now.Sub(e.at) < b.terms.Shared {
		return e.value, true
	}
	return value, false
}

// Known returns what the client itself was shown, or else what holds for all clients.
func (b *Book[V]) Known(p Place, now time.Time) (value V, ok bool) {
	if value, ok = b.Own(p, now); ok {
		return value, true
	}
	return b.Shared(p, now)
}

// Forget removes what the client was shown.
func (b *Book[V]) Forget(p Place) { b.kept.Remove(p.Own) }

// Clear removes all lessons, as after upstreams have been reconfigured.
func (b *Book[V]) Clear() { b.kept.Purge() }

// Empty reports whether there are no lessons.
func (b *Book[V]) Empty() bool { return b.kept.Len() == 0 }
