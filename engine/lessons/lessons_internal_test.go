package lessons

import (
	"testing"
	"time"
)

// TestLearntWindows: a window applies to the client that met it, for minutes, until another client confirms it.
func TestLearntWindows(t *testing.T) {
	const known = 128_000
	now := time.Unix(1_700_000_000, 0)
	l := New(func() time.Time { return now })
	of := func(client string) Place { return PlaceOf("acme", client, "https://upstream", "model", nil) }
	met := func(client string, tokens int) { l.LearnWindow(of(client), tokens) }
	const alice, bob, carol, mallory = "alice", "bob", "carol", "mallory"
	holds := func(client string, want int) {
		t.Helper()
		if got := l.Window(of(client), known); got != want {
			t.Errorf("window %d, want %d", got, want)
		}
	}
	met(alice, 16_000)
	holds(alice, 16_000)
	holds(bob, known)
	now = now.Add(time.Minute)
	met(alice, 16_000) // again, maybe in another thread
	holds(bob, known)
	now = now.Add(unconfirmed)
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
	now = now.Add(confirmed - time.Hour - time.Second)
	holds(carol, 28_000)
	now = now.Add(2 * time.Second)
	holds(carol, known)
	met(alice, 16_000)
	met(bob, 16_000)
	if got := l.Window(of(carol), 0); got != 16_000 {
		t.Errorf("window %d of an unknown model", got)
	}
}

// TestLessonsHold: each kind of lesson holds for as long as the table says, for its client alone and, confirmed, for all.
func TestLessonsHold(t *testing.T) {
	for kind, of := range terms() {
		now := time.Unix(1_700_000_000, 0)
		l := New(func() time.Time { return now })
		place := func(client string) Place { return PlaceOf("acme", client, "https://upstream", "model", nil) }
		l.Learn(Kind(kind), place("alice"), true)
		if !l.Has(Kind(kind), place("alice")) || l.Has(Kind(kind), place("bob")) {
			t.Errorf("kind %d is not alice's alone", kind)
		}
		now = now.Add(of.Own)
		if _, known := l.Known(Kind(kind), place("alice")); known {
			t.Errorf("kind %d is known after %v", kind, of.Own)
		}
		l.Learn(Kind(kind), place("alice"), true)
		l.Learn(Kind(kind), place("bob"), true)
		now = now.Add(of.Shared - 1)
		if !l.Has(Kind(kind), place("carol")) {
			t.Errorf("kind %d is not confirmed", kind)
		}
		l.Clear()
		if l.Has(Kind(kind), place("carol")) || !l.Empty(Kind(kind)) {
			t.Errorf("kind %d is known after all was cleared", kind)
		}
	}
}

// TestSizesHold: the smallest body that was too large is remembered.
func TestSizesHold(t *testing.T) {
	l := New(func() time.Time { return time.Unix(1_700_000_000, 0) })
	place := PlaceOf("acme", "alice", "https://upstream", "model", nil)
	for _, size := range []int{6_000_000, 9_000_000, 5_000_000} {
		l.LearnSize(place, size)
	}
	if size, known := l.Size(place); size != 5_000_000 || !known {
		t.Errorf("%d bytes, known %t", size, known)
	}
	l.Clear()
	if _, known := l.Size(place); known {
		t.Error("a size is known after all was cleared")
	}
}

// TestRefusalsHold: a refusal is remembered with its loop for RefusalHeld, unless upstream accepts the condensed history before.
func TestRefusalsHold(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	l := New(func() time.Time { return now })
	thread := Place{Own: SourceOf("thread")}
	l.LearnRefusal(thread, 7)
	now = now.Add(RefusalHeld - 1)
	if loop, known := l.Refusal(thread); loop != 7 || !known {
		t.Errorf("loop %d, known %t", loop, known)
	}
	now = now.Add(1)
	if _, known := l.Refusal(thread); known {
		t.Error("it is known for too long")
	}
	l.LearnRefusal(thread, 0)
	l.ForgetRefusal(thread)
	if _, known := l.Refusal(thread); known {
		t.Error("it is not forgotten")
	}
	if l.LearnWindow(thread, minWindow-1) || l.Window(thread, 0) != 0 {
		t.Error("a window that no model has is believed")
	}
}
