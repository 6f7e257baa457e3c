package boltstore

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// weigh returns the size of a store that holds one thread with the given number of messages.
func weigh(t *testing.T, messages int) int64 {
	t.Helper()
	s := start(t, Options{Content: true})
	for at := 0; at < messages; at += 2 {
		must(t, s.Append(t.Context(), twoEvents("x", at)))
	}
	must(t, s.Close())
	s = start(t, s.options)
	defer s.Close()
	return total(t, s)
}

func total(t testing.TB, s *Store) int64 {
	t.Helper()
	size, _, err := s.Size()
	must(t, err)
	return size
}

// write appends twenty messages, advances the clock by a second and waits until the sweeper has finished.
func write(t *testing.T, s *Store, id session.ThreadID, at int) {
	t.Helper()
	for end := at + 20; at < end; at += 2 {
		must(t, s.Append(t.Context(), twoEvents(id, at)))
	}
	past(time.Second)
}

func writeFork(t *testing.T, s *Store, id, parent session.ThreadID, inherited ...session.Condensation) {
	t.Helper()
	b := twoEvents2(id, parent, 2)
	b.Thread.Condensations = inherited
	must(t, s.Append(t.Context(), b))
	past(time.Second)
}

func want(t testing.TB, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestCapTakesLeastRecentlySeen: whole threads are deleted, and no more than necessary.
func TestCapTakesLeastRecentlySeen(t *testing.T) {
	limit := 5 * weigh(t, 20)
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{Content: true, MaxSize: limit}), t.Context()
		defer s.Close()
		for _, id := range []session.ThreadID{"a", "b", "c", "d"} {
			write(t, s, id, 0)
		}
		must(t, s.Append(ctx, twoEvents("a", 20)))
		past(time.Second)
		c, err := s.Condense(ctx, "b", session.Condensation{Summary: "x"}) // counts as a write
		must(t, err)
		past(time.Second)
		want(t, living(t, s, "a", "b", "c", "d"), "[a b c d]")
		for i, left := range []string{"[a b d e]", "[a b e f]", "[b e f g]", "[b e f g h]", "[f g h i]"} {
			write(t, s, session.ThreadID(rune('e'+i)), 0)
			whole(t, s)
			want(t, living(t, s, "a", "b", "c", "d", "e", "f", "g", "h", "i"), left)
			n := total(t, s)
			if n > limit {
				t.Errorf("%d bytes are stored, and the cap is %d", n, limit)
			}
			if records, file, err := s.Size(); err != nil || records != n || file < n/pagesCost {
				t.Errorf("Size returned %d bytes of records in a file of %d (%v), want %d bytes of records", records, file, err, n)
			}
		}
		missing(t, second(s.Summary(ctx, c.ID)))
		missing(t, second(s.Events(ctx, "b", 1, 1)))
	})
}

// TestCapLeavesForksWhole: the threads that a fork shares are deleted only after the fork.
func TestCapLeavesForksWhole(t *testing.T) {
	limit := 5 * weigh(t, 20)
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{Content: true, MaxSize: limit}), t.Context()
		defer s.Close()
		write(t, s, "grandparent", 0)
		c, err := s.Condense(ctx, "grandparent", session.Condensation{Prefix: 2, Summary: "shared"})
		must(t, err)
		write(t, s, "x", 0)
		writeFork(t, s, "parent", "grandparent", c)
		write(t, s, "y", 0)
		writeFork(t, s, "child", "parent", c)
		all := []session.ThreadID{"grandparent", "x", "parent", "y", "child", "z", "v", "w", "u", "q"}
		for _, step := range []struct {
			id   session.ThreadID
			left string
		}{
			{"z", "[grandparent x parent y child z]"},
			{"v", "[grandparent parent y child z v]"},
			{"w", "[grandparent parent child z v w]"},
			{"u", "[z v w u]"}, // once the child is gone, the others may go
		} {
			write(t, s, step.id, 0)
			whole(t, s)
			want(t, living(t, s, all...), step.left)
		}
	})
}

// TestCapNeverTakesTheNewest: the newest thread stays with everything that it shares, even if it alone exceeds the cap.
func TestCapNeverTakesTheNewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Content: true, MaxSize: 1})
		defer s.Close()
		all := []session.ThreadID{"a", "b", "c", "fork"}
		write(t, s, "a", 0)
		write(t, s, "b", 0)
		want(t, living(t, s, all...), "[b]")
		write(t, s, "b", 20)
		writeFork(t, s, "fork", "b")
		want(t, living(t, s, all...), "[b fork]")
		write(t, s, "b", 40) // the fork needs its parent, not vice versa
		want(t, living(t, s, all...), "[b]")
		write(t, s, "c", 0)
		want(t, living(t, s, all...), "[c]")
		whole(t, s)
	})
}

// TestCapAtOpen: the size is known when the store opens, and a lower cap takes effect.
func TestCapAtOpen(t *testing.T) {
	limit := 4 * weigh(t, 20)
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Content: true})
		for _, id := range []session.ThreadID{"a", "b", "c", "d", "e", "f"} {
			write(t, s, id, 0)
		}
		before := total(t, s)
		must(t, s.Close())
		s = start(t, s.options)
		if n := total(t, s); n != before {
			t.Errorf("%d bytes are stored, but it was %d", n, before)
		}
		must(t, s.Close())
		s.options.MaxSize = limit
		s = start(t, s.options)
		defer s.Close()
		past(time.Second)
		want(t, living(t, s, "a", "b", "c", "d", "e", "f"), "[d e f]")
		whole(t, s)
	})
}

// TestForgetLeavesWhatIsNeededMeanwhile: a thread that was chosen for deletion is written to or forked before it is
// deleted.
func TestForgetLeavesWhatIsNeededMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{Content: true}), t.Context()
		defer s.Close()
		all := []session.ThreadID{"grandparent", "parent", "idle", "busy", "new"}
		write(t, s, "grandparent", 0)
		writeFork(t, s, "parent", "grandparent")
		write(t, s, "idle", 0)
		write(t, s, "busy", 0)
		order, err := s.order()
		must(t, err)
		want(t, orderOf(order), "[parent grandparent idle busy]")
		must(t, s.Append(ctx, twoEvents("busy", 20)))
		writeFork(t, s, "new", "parent")

		must(t, s.deleteThreads(ctx, order, 1<<30))
		want(t, living(t, s, all...), "[grandparent parent busy new]")
		whole(t, s)
	})
}

// TestForgetStopsAtFailedCommit: a fork that a failed commit restores keeps its parent.
func TestForgetStopsAtFailedCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := start(t, Options{Content: true}), t.Context()
		defer s.Close()
		write(t, s, "parent", 0)
		writeFork(t, s, "fork", "parent")
		for at := 4; at < 4+stepFreed; at += 2 {
			must(t, s.Append(ctx, twoEvents2("fork", "parent", at))) // in a separate step
		}
		must(t, s.flush(ctx))
		order, err := s.order()
		must(t, err)
		must(t, s.change(ctx, false, func(c *change) error {
			c.put(places.key(""), []byte("bbolt refuses an empty key"))
			return nil
		}))
		if err := s.deleteThreads(ctx, order, 1<<30); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("got %v, want %v", err, session.ErrUnavailable)
		}
		must(t, s.flush(ctx))
		want(t, living(t, s, "parent", "fork"), "[parent fork]")
		whole(t, s)
	})
}

func orderOf(order []*candidate) string {
	ids := make([]session.ThreadID, len(order))
	for i, c := range order {
		ids[i] = c.id
	}
	return fmt.Sprint(ids)
}

// TestForgetInSteps deletes more than fits one step, including a thread that is larger than a step.
func TestForgetInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, Options{Content: true, TTL: ttl})
		defer s.Close()
		for i := range 120 {
			at := 0
			for end := 20 + i/119*2*stepFreed; at < end; at += 2 {
				must(t, s.Append(t.Context(), twoEvents(session.ThreadID(fmt.Sprint("t", i)), at)))
			}
		}
		past(ttl + 2*time.Hour)
		left(t, s, 2) // format and size
		whole(t, s)
	})
}

// TestCapUnderFire writes concurrently to a store that is always full.
func TestCapUnderFire(t *testing.T) {
	s := start(t, Options{Content: true, MaxSize: 40_000})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for n := range 60 {
				id := session.ThreadID(fmt.Sprint(w, "-", n/3))
				err := s.Append(t.Context(), twoEvents(id, n%3*2))
				if n%3 == 0 && err != nil { // later batches may find their thread gone
					t.Error(err)
				}
				_, _ = s.Condense(t.Context(), id, session.Condensation{Prefix: 2, Summary: "x"}) // may find its thread gone
			}
		})
	}
	writers.Wait()
	must(t, s.Close()) // perhaps while the sweeper runs
	limit := s.options.MaxSize
	s = start(t, Options{Path: s.options.Path})
	s.options.MaxSize = limit
	must(t, s.evict(t.Context()))
	whole(t, s)
	if n := total(t, s); n > limit {
		t.Errorf("%d bytes are stored, and the cap is %d", n, limit)
	}
}

// TestCapProperties: an eviction leaves no thread, fork or condensation without what it needs, and never deletes a thread
// that was seen later than one it keeps.
func TestCapProperties(t *testing.T) {
	dir, run := t.TempDir(), 0
	property.Check(t, func(r *rapid.T) {
		run++
		s, err := Open(Options{Path: filepath.Join(dir, fmt.Sprint(run)), Content: true})
		must(t, err)
		defer s.Close()
		for i := range rapid.IntRange(1, 12).Draw(r, "steps") {
			randomStep(t, r, s, session.ThreadID(rune('a'+i)))
		}
		must(t, second(s.Secret(t.Context(), session.Secret("x")))) // everything is on disk
		before, err := s.order()
		must(t, err)
		s.options.MaxSize = total(t, s)*int64(rapid.IntRange(1, 100).Draw(r, "percent"))/100 + 1
		must(t, s.evict(t.Context()))
		whole(t, s)
		after, err := s.order()
		must(t, err)
		if gone := len(before) - len(after); orderOf(before[gone:]) != orderOf(after) {
			r.Errorf("of %s are left %s", orderOf(before), orderOf(after))
		}
		newest := before[len(before)-1]
		kept := slices.ContainsFunc(after, func(c *candidate) bool { return c.id == newest.id })
		if n := total(t, s); !kept || n > s.options.MaxSize && !after[0].seen.Equal(newest.seen) {
			r.Errorf("%d bytes of %s are left, and the cap is %d", n, orderOf(after), s.options.MaxSize)
		}
	})
}

// randomStep begins a thread or a fork, or continues one.
func randomStep(t *testing.T, r *rapid.T, s *Store, id session.ThreadID) {
	t.Helper()
	old, _ := s.Thread(t.Context(), session.ThreadID(rune('a'+rapid.IntRange(0, 11).Draw(r, "other"))))
	b := twoEvents(id, 0)
	switch rapid.IntRange(0, 2).Draw(r, "what") {
	case 1:
		if old.Len > 0 {
			b = twoEvents(id, old.Len)
			b.Thread.Parent, b.Thread.ForkAt, b.Thread.Condensations = old.ID, old.Len, old.Condensations
		}
	case 2:
		if old.Len > 0 {
			b = twoEvents(old.ID, old.Len)
			b.Thread.Parent, b.Thread.ForkAt = old.Parent, old.ForkAt
		}
	}
	must(t, s.Append(t.Context(), b))
	must(t, s.Mark(t.Context(), session.Place{Thread: b.Thread.ID}, session.Traces{Lasting: []session.Hash{chain(b.Thread.ID, 1000+b.At)}}))
	if rapid.Bool().Draw(r, "condense") {
		c := session.Condensation{Prefix: b.Thread.Len, Summary: rapid.StringN(0, 200, -1).Draw(r, "summary")}
		must(t, second(s.Condense(t.Context(), b.Thread.ID, c)))
	}
}
