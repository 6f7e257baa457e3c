package engine

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestLearntWindows: a window is its client's own, for minutes, until another thread confirms it.
func TestLearntWindows(t *testing.T) {
	const known = 128_000
	now := time.Unix(1_700_000_000, 0)
	l, err := newLearnt()
	if err != nil {
		t.Fatal(err)
	}
	all, alice, bob, carol := source{0}, source{1}, source{2}, source{3}
	met := func(client source, thread session.ThreadID, tokens int) {
		l.set(client, all, learntWindow{tokens: tokens, at: now, thread: thread})
	}
	holds := func(client source, want int) {
		t.Helper()
		if got := l.window(client, all, known, now); got != want {
			t.Errorf("window %d, want %d", got, want)
		}
	}
	met(alice, "a", 16_000)
	holds(alice, 16_000)
	holds(bob, known)
	now = now.Add(time.Minute)
	met(alice, "a", 16_000) // the same history again
	holds(bob, known)
	now = now.Add(learntOwn)
	holds(alice, known)
	met(bob, "b", 30_000) // another window: confirms nothing
	holds(bob, 30_000)
	holds(carol, known)
	met(bob, "b2", 28_000) // the same window
	holds(carol, 28_000)
	now = now.Add(learntShared - time.Second)
	holds(carol, 28_000)
	now = now.Add(2 * time.Second)
	holds(carol, known)
	met(alice, "a", 16_000)
	now = now.Add(learntOwn)
	met(alice, "a", 16_000) // the same history, but much later
	holds(bob, 16_000)
	if got := l.window(bob, all, 0, now); got != 16_000 {
		t.Errorf("window %d of an unknown model", got)
	}
}
