package redisstore

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func benchmarked(b *testing.B) *sessions {
	server := sessiontest.StartRedis(b, "--appendfsync", "everysec")
	return start(b, Options{Addrs: []string{server.Addr}, TTL: time.Hour})
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

func BenchmarkMark(b *testing.B) {
	s := benchmarked(b)
	must(b, s.Append(b.Context(), twoEvents("t", 0)))
	traces := make([]session.Hash, 8)
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		for i := range traces {
			traces[i] = session.Hash{byte(i), byte(n), byte(n >> 8), byte(n >> 16), 1}
		}
		must(b, s.Mark(b.Context(), session.Place{Thread: "t", Session: "s", Pos: 2}, session.Traces{Lasting: traces}))
	}
}

// BenchmarkResolve resolves a known history of 200 messages with two new ones.
func BenchmarkResolve(b *testing.B) {
	server := sessiontest.StartRedis(b, "--appendfsync", "everysec")
	l := newLine(b, server, "run")
	_, _, _ = l.step(l.query(201, ""))
	q := l.query(203, "")
	b.ReportAllocs()
	for b.Loop() {
		res, err := l.Resolve(b.Context(), q)
		if err != nil || res.Match != session.MatchEnd {
			b.Fatal(res, err)
		}
	}
}

// BenchmarkStep resolves, logs and answers a request. The time to make the messages does not count.
func BenchmarkStep(b *testing.B) {
	server := sessiontest.StartRedis(b, "--appendfsync", "everysec")
	l := newLine(b, server, "run")
	_, _, _ = l.step(l.query(201, ""))
	b.ReportAllocs()
	b.ResetTimer()
	for n := range b.N {
		b.StopTimer()
		q := l.query(201+2*(n%500+1), "")
		if n%500 == 0 && n > 0 { // begin another thread
			l.name += "'"
			q = l.query(203, "")
		}
		b.StartTimer()
		res, err := l.Resolve(b.Context(), q)
		must(b, err)
		must(b, l.Append(b.Context(), &res, tallyOf(&res, q)))
		must(b, l.Answered(b.Context(), &res, "", []string{"call_of_this_step"}, nil))
	}
}
