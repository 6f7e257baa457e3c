package lessons_test

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
)

// TestOneClientTeachesOnlyItself: a lesson holds for others once a second client has confirmed it, and for a limited time.
func TestOneClientTeachesOnlyItself(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	b := lessons.NewBook(100, lessons.Terms[string]{Own: time.Minute, Shared: time.Hour, Same: lessons.Equal[string]})
	place := func(client string) lessons.Place {
		return lessons.Place{Own: lessons.SourceOf(client, "model"), All: lessons.SourceOf("all", "model")}
	}
	knows := func(client, want string) {
		t.Helper()
		if got, ok := b.Known(place(client), now); got != want || ok != (want != "") {
			t.Errorf("%s knows %q (%t), want %q", client, got, ok, want)
		}
	}
	learn := func(client, value string) { b.Learn(place(client), value, now) }
	knows("alice", "")
	learn("alice", "x")
	learn("alice", "x") // again: that confirms nothing
	knows("alice", "x")
	knows("bob", "")
	learn("bob", "y")
	knows("carol", "")
	learn("alice", "y")
	knows("carol", "y")
	learn("mallory", "x")
	knows("mallory", "x")
	knows("carol", "y")
	b.Forget(place("mallory"))
	knows("mallory", "y")
	now = now.Add(time.Hour - 1)
	knows("alice", "y")
	now = now.Add(1)
	knows("alice", "")
	alone := lessons.Place{Own: lessons.SourceOf("thread")}
	b.Learn(alone, "z", now)
	if got, _ := b.Known(alone, now); got != "z" {
		t.Errorf("got %q", got)
	}
	if _, ok := b.Known(lessons.Place{Own: lessons.SourceOf("another thread")}, now); ok {
		t.Error("a lesson for one thread holds for another")
	}
	if b.Clear(); !b.Empty() {
		t.Error("it is not empty")
	}
}

// TestAClientIsNotItsOwnSecond: requests that have a key in common are one client's, whichever other keys they carry.
func TestAClientIsNotItsOwnSecond(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	b := lessons.NewBook(100, lessons.Terms[string]{Own: time.Minute, Shared: time.Hour, Same: lessons.Equal[string]})
	place := func(keys ...string) lessons.Place {
		return lessons.Place{Own: lessons.SourceOf(keys...), All: lessons.SourceOf("all"), Keys: keys}
	}
	shared := func(want bool, keys ...string) {
		t.Helper()
		b.Learn(place(keys...), "x", now)
		if _, ok := b.Shared(place("bob"), now); ok != want {
			t.Errorf("after requests with %q: shared %t", keys, ok)
		}
	}
	shared(false, "alice")
	shared(false, "junk", "alice")
	shared(false, "alice", "more junk")
	shared(true, "carol")
}
