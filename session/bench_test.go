package session_test

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// lengths are the lengths of the histories, in messages.
func lengths(b *testing.B, run func(b *testing.B, n int)) {
	for _, n := range []int{20, 200, 5000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { run(b, n) })
	}
}

// chat returns a history of n messages.
func chat(n int) []session.Message {
	messages := make([]session.Message, n)
	for i := range messages {
		messages[i] = session.Message{Raw: []byte(`{"role":"user"}`), Kind: session.User}
		binary.BigEndian.PutUint64(messages[i].Digest[:], uint64(i))
	}
	return messages
}

// BenchmarkHistory computes the chain of a history.
func BenchmarkHistory(b *testing.B) {
	lengths(b, func(b *testing.B, n int) {
		messages := chat(n)
		b.ReportAllocs()
		for b.Loop() {
			if session.NewHistory(session.Hash{}, messages).Len() != n {
				b.Fatal("a message is missing")
			}
		}
	})
}

// BenchmarkResolve recognises a known session with two new messages, over the embedded store.
func BenchmarkResolve(b *testing.B) {
	lengths(b, func(b *testing.B, n int) {
		store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(b.TempDir(), "bench.db")})
		if err != nil {
			b.Fatal(err)
		}
		defer store.Close()
		registry := session.NewRegistry(store, secret)
		messages := chat(n + 2)
		known, grown := session.Query{History: session.NewHistory(session.Hash{1}, messages[:n])}, session.Query{History: session.NewHistory(session.Hash{1}, messages)}
		res, err := registry.Resolve(b.Context(), known)
		if err != nil {
			b.Fatal(err)
		}
		if err := registry.Append(b.Context(), &res, tally(&res, known)); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if res, err := registry.Resolve(b.Context(), grown); err != nil || res.Match != session.MatchEnd {
				b.Fatal(res, err)
			}
		}
	})
}

// BenchmarkProject projects a history whose middle was condensed.
func BenchmarkProject(b *testing.B) {
	lengths(b, func(b *testing.B, n int) {
		h := session.NewHistory(session.Hash{}, chat(n))
		c := []session.Condensation{{
			ID: session.CondensationID{Thread: "t", Seq: 1}, Prefix: n / 2, Hash: h.Chain[n/2],
			Forgotten: []session.Range{{From: 3, To: n/2 + 1}}, Summary: "what was said before", Offset: 3,
		}}
		b.ReportAllocs()
		for b.Loop() {
			if v := session.Project(h, c); v.Identity() || len(v.Items) != n-(n/2-2)+1 {
				b.Fatalf("%d items", len(v.Items))
			}
		}
	})
}
