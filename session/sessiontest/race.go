package sessiontest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// RaceOneAppendWins: of concurrent appends at the same position exactly one succeeds, and the log holds what that one wrote.
func (s suite) RaceOneAppendWins(t *testing.T) {
	const writers, rounds = 8, 20
	store, other := s.pair(t)
	for at := range rounds {
		var winner atomic.Int32
		wantWinners(t, writers, 1, func(i int, store session.Backend) (bool, error) {
			b := batch("t", at, 1)
			b.Events[0].Tokens = i + 1
			err := store.Append(ctx(t), b)
			if errors.Is(err, session.ErrStale) {
				return false, nil
			}
			winner.Store(int32(i + 1))
			return true, err
		}, store, other)
		last := must(store.Events(ctx(t), "t", uint64(at+1), 2))(t)
		equal(t, len(last), 1)
		equal(t, last[0].Tokens, int(winner.Load()))
	}
	equal(t, thread(t, store, "t").Seq, rounds)
}

func (s suite) RaceCondenseAndAppend(t *testing.T) {
	const condensations, appends = 20, 20
	store := s.begun(t, 1)
	other := s.replica(t, store)
	var mu sync.Mutex
	made := map[uint64]session.Condensation{}
	together(t, condensations+1, func(i int, store session.Backend) (err error) {
		if i == condensations {
			for at := 1; at <= appends && err == nil; at++ {
				err = other.Append(ctx(t), batch("t", at, 1))
			}
			return err
		}
		c, err := store.Condense(ctx(t), "t", condensation(i+10))
		mu.Lock()
		defer mu.Unlock()
		made[c.ID.Seq] = listed(c)
		return err
	}, store, other)
	got := thread(t, store, "t")
	equal(t, got.Seq, 1+appends+condensations)
	equal(t, len(got.Condensations), condensations)
	for _, c := range got.Condensations {
		equal(t, c, made[c.ID.Seq])
		ok(t, second(other.Summary(ctx(t), c.ID)))
	}
	log := events(t, store, "t")
	log = slices.DeleteFunc(log, func(e session.Event) bool { return (e.Kind == session.Condensed) == (made[e.Seq].Prefix == 0) })
	equal(t, len(log), int(got.Seq))
}

// RaceOneSecret: the first secret stays. An empty one is refused, because anyone could forge a chain keyed with it.
func (s suite) RaceOneSecret(t *testing.T) {
	store, other := s.pair(t)
	if _, err := store.Secret(ctx(t), nil); err == nil {
		t.Error("an empty secret was accepted")
	}
	got := make([]session.Secret, 8)
	together(t, len(got), func(i int, store session.Backend) (err error) {
		got[i], err = store.Secret(ctx(t), session.Secret(fmt.Sprint("\x00secret", i, "\xff")))
		return err
	}, store, other)
	got = append(got, must(store.Secret(ctx(t), session.Secret("later")))(t), must(other.Secret(ctx(t), session.Secret("later")))(t))
	for _, secret := range got {
		equal(t, secret, got[0])
	}
}

func (s suite) RaceOneSession(t *testing.T) {
	const n = 16
	store, other := s.pair(t)
	together(t, n, func(i int, store session.Backend) error {
		b := batch(session.ThreadID(fmt.Sprint("t", i)), 0, 1)
		b.Thread.Session = "ses"
		return store.Append(ctx(t), b)
	}, store, other)
	ses := must(store.Session(ctx(t), "ses"))(t)
	slices.Sort(ses.Threads)
	equal(t, len(slices.Compact(ses.Threads)), n)
}
