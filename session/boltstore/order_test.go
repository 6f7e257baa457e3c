package boltstore

import (
	"slices"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// TestNeeds: a thread needs those that store its content, its parent if it is a fork, and the makers of the condensations that it inherited.
func TestNeeds(t *testing.T) {
	made := func(by session.ThreadID) session.Condensation {
		return session.Condensation{ID: session.CondensationID{Thread: by, Seq: 1}}
	}
	for name, c := range map[string]struct {
		thread session.Thread
		list   []session.Condensation
		want   []session.ThreadID
	}{
		"a thread alone":           {session.Thread{ID: "a"}, nil, nil},
		"a fork":                   {session.Thread{ID: "a", Origin: session.Origin{Parent: "p", ForkAt: 1}}, nil, []session.ThreadID{"p"}},
		"a thread that only began": {session.Thread{ID: "a", Origin: session.Origin{Parent: "p"}}, nil, nil},
		"shared content":           {session.Thread{ID: "a", Origin: session.Origin{Parent: "p", ForkAt: 1}, Shares: []session.ThreadID{"s"}}, nil, []session.ThreadID{"s", "p"}},
		"its own condensation":     {session.Thread{ID: "a"}, []session.Condensation{made("a")}, nil},
		"inherited ones":           {session.Thread{ID: "a", Origin: session.Origin{Parent: "p", ForkAt: 1}}, []session.Condensation{made("m"), made("p"), made("m"), made("a")}, []session.ThreadID{"p", "m"}},
	} {
		got, err := record{thread: c.thread, list: codec.List(c.list)}.needs()
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
		}
	}
}

// TestOrder: a thread that another one needs lives as long as that one and comes after it. If it is needed only for its own entries, it
// extends the life of its ancestors, but not that of the other threads that it needs.
func TestOrder(t *testing.T) {
	all := map[session.ThreadID]*candidate{}
	add := func(id session.ThreadID, written int64, parent session.ThreadID, needs ...session.ThreadID) {
		all[id] = &candidate{id: id, written: time.Unix(written, 0), parent: parent, needs: needs}
	}
	add("grandparent", 1, "")
	add("parent", 2, "grandparent", "grandparent", "parent's own")
	add("parent's own", 3, "")
	add("holder's parent", 4, "")
	add("holder's own", 5, "")
	add("holder", 6, "holder's parent", "holder's parent", "holder's own")
	add("unrelated", 7, "")
	add("newest", 9, "parent", "holder", "parent")
	var got []session.ThreadID
	seen := map[session.ThreadID]int64{}
	for _, c := range ordered(all) {
		got = append(got, c.id)
		seen[c.id] = c.seen.Unix()
	}
	for id, want := range map[session.ThreadID]int64{
		"newest": 9, "parent": 9, "grandparent": 9, "parent's own": 9, "holder": 9, "holder's parent": 9, "holder's own": 6, "unrelated": 7,
	} {
		if seen[id] != want {
			t.Errorf("%s stays as if it was seen at %d, want %d", id, seen[id], want)
		}
	}
	for _, c := range all {
		for _, id := range c.needs {
			if c.seen.Equal(all[id].seen) && slices.Index(got, c.id) > slices.Index(got, id) {
				t.Errorf("%s would be deleted before %s, which needs it: %v", id, c.id, got)
			}
		}
	}
}
