package boltstore

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// talk is a conversation through a registry over the store.
type talk struct {
	t        *testing.T
	s        *Store
	registry *session.Registry
}

func newTalk(t *testing.T, s *Store) *talk {
	t.Helper()
	r := session.NewRegistry(s, session.Secret("secret"))
	return &talk{t: t, s: s, registry: r}
}

// resolve resolves a history of n messages, which differs from position other on.
func (k *talk) resolve(name string, n, other int) session.Resolution {
	k.t.Helper()
	var messages []session.Message
	for i := 1; i <= n; i++ {
		m := session.Message{Kind: []session.Kind{session.Agent, session.User}[i%2], Raw: payload}
		copy(m.Digest[:], fmt.Sprint(name, i, i >= other))
		messages = append(messages, m)
	}
	h := session.NewHistory(session.Secret("secret").Seed(session.Scope{}), messages)
	res, err := k.registry.Resolve(k.t.Context(), session.Query{Purpose: session.PurposeMain, History: h})
	must(k.t, err)
	return res
}

func (k *talk) append(res session.Resolution, n int) session.Thread {
	k.t.Helper()
	must(k.t, k.registry.Append(k.t.Context(), &res, &session.Tally{Encoding: "o200k_base", Cum: make([]int, n+1)}))
	past(time.Second)
	return res.Thread
}

const never = 1 << 30

// TestEvictedBeginsAnew: a history whose thread was evicted, before or after it was resolved, becomes a new thread that
// holds all of it.
func TestEvictedBeginsAnew(t *testing.T) {
	for _, tt := range []struct {
		name  string
		other int  // position from which the second request differs
		early bool // it is resolved before the eviction
	}{
		{"goes on", never, false},
		{"goes on, resolved before", never, true},
		{"forks", 4, false},
		{"forks, resolved before", 4, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { evictedBeginsAnew(t, tt.other, tt.early) })
		})
	}
}

func evictedBeginsAnew(t *testing.T, other int, early bool) {
	s := start(t, Options{Content: true, MaxSize: 1})
	defer s.Close()
	k := newTalk(t, s)
	old := k.append(k.resolve("a", 6, never), 6)
	c, err := s.Condense(t.Context(), old.ID, session.Condensation{Prefix: 2, Summary: "x"})
	must(t, err)
	past(time.Second)
	late := k.resolve("a", 8, other)
	k.append(k.resolve("b", 2, never), 2)
	missing(t, second(s.Thread(t.Context(), old.ID)))
	missing(t, second(s.Summary(t.Context(), c.ID)))
	if !early {
		late = k.resolve("a", 8, other)
		if !late.New || late.Logged != 0 || late.Thread.Parent != "" {
			t.Errorf("want a new thread, resolved to %+v", late)
		}
	}
	now := k.append(late, 8)
	if now.ForkAt != 0 || now.Len != 8 || len(now.Condensations) > 0 {
		t.Errorf("want a new thread, got %+v", now)
	}
	log, err := s.Events(t.Context(), now.ID, 1, 100)
	must(t, err)
	if len(log) != 8 {
		t.Errorf("%d of 8 messages were logged", len(log))
	}
	if next := k.resolve("a", 9, other); next.Thread.ID != now.ID || next.Match != session.MatchEnd {
		t.Errorf("the next request is not found in %s: %+v", now.ID, next)
	}
	whole(t, s)
}

// TestCondenseEvicted: condensing a thread that was evicted fails.
func TestCondenseEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Content: true, MaxSize: 1})
		defer s.Close()
		write(t, s, "a", 0)
		write(t, s, "b", 0)
		if err := second(s.Condense(t.Context(), "a", session.Condensation{})); !errors.Is(err, session.ErrNotFound) {
			t.Errorf("got %v, want %v", err, session.ErrNotFound)
		}
	})
}
