package engine

import (
	"testing"
	"time"
)

// TestLearntWindows: a window applies to the client that met it, for minutes, until another client confirms it.
func TestLearntWindows(t *testing.T) {
	const known = 128_000
	now := time.Unix(1_700_000_000, 0)
	m := newMemory()
	all, alice, bob, carol, mallory := source{0}, source{1}, source{2}, source{3}, source{4}
	met := func(client source, tokens int) { m.set(client, all, learntWindow{tokens: tokens, at: now}) }
	holds := func(client source, want int) {
		t.Helper()
		if got := m.window(client, all, known, now); got != want {
			t.Errorf("window %d, want %d", got, want)
		}
	}
	met(alice, 16_000)
	holds(alice, 16_000)
	holds(bob, known)
	now = now.Add(time.Minute)
	met(alice, 16_000) // again, maybe in another thread
	holds(bob, known)
	now = now.Add(learntOwn)
	holds(alice, known)
	met(alice, 16_000) // much later
	holds(bob, known)
	met(bob, 30_000) // another window: confirms nothing
	holds(bob, 30_000)
	holds(carol, known)
	met(alice, 28_000) // the same window
	holds(carol, 28_000)
	now = now.Add(time.Hour)
	met(mallory, 600) // applies to no one else
	holds(mallory, 600)
	holds(carol, 28_000)
	for tokens := 28_000; tokens > 10_000; tokens = tokens * 19 / 20 { // one client lowers no window for others, step by step
		met(alice, tokens)
	}
	holds(carol, 28_000)
	now = now.Add(learntShared - time.Hour - time.Second)
	holds(carol, 28_000)
	now = now.Add(2 * time.Second)
	holds(carol, known)
	met(alice, 16_000)
	met(bob, 16_000)
	if got := m.window(carol, all, 0, now); got != 16_000 {
		t.Errorf("window %d of an unknown model", got)
	}
}
