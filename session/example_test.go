package session_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// A request uses a store to find the thread that its history belongs to, to append what is new, and later perhaps to log a
// condensation. To add a store, implement Backend and run the suite sessiontest.Run against it.
func ExampleStore() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	bolt, err := boltstore.Open(boltstore.Options{Path: filepath.Join(dir, "dewpoint.db"), Content: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	var store session.Store = session.Guard(bolt, nil) // turns a panic into an error
	defer store.Close()
	ctx, now := context.Background(), time.Now()
	first, second := session.Hash{1}, session.Hash{2} // chain hashes after one and after two messages

	batch := session.Batch{
		Thread: session.Thread{ID: "t", Session: "s", Len: 2, Head: second, Created: now, Seen: now},
		Events: []session.Event{{Kind: session.User, Pos: 1, Chain: first, Time: now, Payload: []byte(`{"role":"user"}`)},
			{Kind: session.Agent, Pos: 2, Chain: second, Time: now}},
		Places: []session.IndexEntry{{Hash: first, Place: session.Place{Thread: "t", Session: "s", Pos: 1}},
			{Hash: second, Place: session.Place{Thread: "t", Session: "s", Pos: 2}}},
	}
	fmt.Println("begin:", store.Append(ctx, batch))
	fmt.Println("the same again:", store.Append(ctx, batch))

	found, err := store.Find(ctx, []session.Hash{second, {3}}, "t")
	fmt.Println("found:", found.Places[0].Pos, found.Places[1].Known(), found.Hinted.Len, err)

	c, err := store.Condense(ctx, "t", session.Condensation{Prefix: 2, Hash: second, Summary: "They spoke.", Time: now})
	fmt.Println("condensed:", c.ID.Seq, err)
	text, err := store.Summary(ctx, c.ID)
	fmt.Println("summary:", text, err)
	// Output:
	// begin: <nil>
	// the same again: append t: stale append: the thread is at 2, not 0
	// found: 2 false 2 <nil>
	// condensed: 3 <nil>
	// summary: They spoke. <nil>
}
