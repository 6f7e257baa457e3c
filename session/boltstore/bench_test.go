package boltstore

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

func BenchmarkFind(b *testing.B) {
	s := start(b, Options{Content: true})
	hashes := make([]session.Hash, 0, 16)
	for at := 0; at < 16; at += 2 {
		batch := twoEvents("t", at)
		must(b, s.Append(b.Context(), batch))
		hashes = append(hashes, batch.Places[0].Hash, batch.Places[1].Hash)
	}
	must(b, second(s.Condense(b.Context(), "t", session.Condensation{}))) // everything is on disk
	b.ReportAllocs()
	for b.Loop() {
		found, err := s.Find(b.Context(), hashes, "t")
		if err != nil || found.Hinted == nil || !found.Places[15].Known() {
			b.Fatal(found, err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s, at := start(b, Options{Content: true}), 0
	b.ReportAllocs()
	for b.Loop() {
		must(b, s.Append(b.Context(), twoEvents("t", at)))
		at += 2
	}
}

func BenchmarkCondense(b *testing.B) {
	s := start(b, Options{})
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		if n%64 == 0 { // condensations are rare
			must(b, s.Append(b.Context(), twoEvents(session.ThreadID(rune('a'+n/64)), 0)))
		}
		must(b, second(s.Condense(b.Context(), session.ThreadID(rune('a'+n/64)), session.Condensation{})))
		n++
	}
}
