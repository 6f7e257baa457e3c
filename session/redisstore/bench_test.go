package redisstore

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func benchmarked(b *testing.B) *Store {
	server := sessiontest.StartRedis(b, "--appendfsync", "everysec")
	return start(b, Options{Addrs: []string{server.Addr}, TTL: time.Hour, Content: true})
}

func BenchmarkPing(b *testing.B) {
	s := benchmarked(b)
	b.ReportAllocs()
	for b.Loop() {
		must(b, s.Ping(b.Context()))
	}
}

func BenchmarkFind(b *testing.B) {
	s := benchmarked(b)
	hashes := make([]session.Hash, 0, 16)
	for at := 0; at < 16; at += 2 {
		batch := twoEvents("t", at)
		must(b, s.Append(b.Context(), batch))
		hashes = append(hashes, batch.Places[0].Hash, batch.Places[1].Hash)
	}
	b.ReportAllocs()
	for b.Loop() {
		found, err := s.Find(b.Context(), hashes, "t")
		if err != nil || found.Hinted == nil || !found.Places[15].Known() {
			b.Fatal(found, err)
		}
	}
}

func BenchmarkAppend(b *testing.B) {
	s, at := benchmarked(b), 0
	b.ReportAllocs()
	for b.Loop() {
		must(b, s.Append(b.Context(), twoEvents("t", at)))
		at += 2
	}
}
