package boltstore

import (
	"fmt"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// inspection checks everything in the file for completeness.
type inspection struct {
	t       testing.TB
	tx      *bolt.Tx
	records map[session.ThreadID]record
	want    map[string]bool // log entries and summaries, by bucket and key
}

// whole checks what an eviction must never break: each thread has its complete log and all its summaries, a fork has the
// threads that it shares, nothing belongs to a thread that is gone, and the recorded size is right.
func whole(t testing.TB, s *Store) {
	t.Helper()
	must(t, s.db.View(func(tx *bolt.Tx) error {
		in := &inspection{t: t, tx: tx, records: map[session.ThreadID]record{}, want: map[string]bool{}}
		in.threads()
		in.entries()
		in.indexes()
		in.sizes()
		return nil
	}))
}

func (in *inspection) each(b bucket, f func(key string, value []byte)) {
	in.t.Helper()
	must(in.t, in.tx.Bucket(b.name()).ForEach(func(name, value []byte) error {
		f(b.key(string(name)), value)
		return nil
	}))
}

func (in *inspection) threads() {
	in.t.Helper()
	in.each(threads, func(_ string, value []byte) {
		rec, err := parseRecord(value)
		must(in.t, err)
		in.records[rec.thread.ID] = rec
		for seq := uint64(1); seq <= rec.thread.Seq; seq++ {
			in.want[events.entry(rec.thread.ID, seq)] = true
		}
		list, err := codec.ParseList(rec.list)
		must(in.t, err)
		for _, c := range list {
			in.want[summaries.entry(c.ID.Thread, c.ID.Seq)] = true
		}
	})
	for id, rec := range in.records {
		needs, err := rec.needs()
		must(in.t, err)
		for _, need := range needs {
			if _, ok := in.records[need]; !ok {
				in.t.Errorf("thread %s is there, but not %s, which it needs", id, need)
			}
		}
	}
}

// entries checks that the summaries of all listed condensations exist, and the events of the threads that made them.
func (in *inspection) entries() {
	in.t.Helper()
	for _, b := range [...]bucket{events, summaries} {
		in.each(b, func(key string, _ []byte) {
			if !in.want[key] {
				in.t.Errorf("%q belongs to no thread", key)
			}
			delete(in.want, key)
		})
	}
	for key := range in.want {
		in.t.Errorf("%q is missing", key)
	}
}

func (in *inspection) indexes() {
	in.t.Helper()
	for _, b := range [...]bucket{places, traces} {
		in.each(b, func(_ string, value []byte) {
			p, err := codec.ParsePlace(value, session.Place{})
			must(in.t, err)
			if _, ok := in.records[p.Thread]; !ok {
				in.t.Errorf("a place in thread %s is left, which is gone", p.Thread)
			}
		})
	}
	in.each(sessions, func(key string, value []byte) {
		ses, err := codec.ParseSession(value)
		must(in.t, err)
		for _, id := range ses.Threads {
			if _, ok := in.records[id]; !ok {
				in.t.Errorf("session %q lists thread %s, which is gone", key, id)
			}
		}
	})
}

func (in *inspection) sizes() {
	in.t.Helper()
	if saved := savedSize(in.tx); saved != in.bytes() {
		in.t.Errorf("the size is %d, but the records take %d", saved, in.bytes())
	}
}

// bytes computes the size of all records without the code under test.
func (in *inspection) bytes() (n int64) {
	for _, b := range buckets {
		if b != meta {
			in.each(b, func(key string, value []byte) { n += 2 * int64(len(key)-1+len(value)+16) })
		}
	}
	return n
}

// living lists those of the threads that the store still has.
func living(t testing.TB, s *Store, ids ...session.ThreadID) string {
	t.Helper()
	var all []session.ThreadID
	for _, id := range ids {
		if _, err := s.Thread(t.Context(), id); err == nil {
			all = append(all, id)
		} else {
			missing(t, err)
		}
	}
	return fmt.Sprint(all)
}
