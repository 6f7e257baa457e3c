package session_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// TestRevivedThreadLogsLostContentAgain: a thread that outlived its TTL only because another one refers to its content may have
// lost the content that it refers to itself. The client's next thread logs that again.
func TestRevivedThreadLogsLostContentAgain(t *testing.T) {
	for _, inherits := range []bool{false, true} {
		t.Run(fmt.Sprintf("inherits a condensation: %t", inherits), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { revive(t, inherits) })
		})
	}
}

// revive plays a client that does not use a thread until it has expired, and then goes on with another first message. If inherits is true,
// the thread has inherited a condensation from a thread that has expired by then.
func revive(t *testing.T, inherits bool) {
	const ttl = 24 * time.Hour
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "test.db"), Content: true, TTL: ttl})
	must(t, err)
	defer store.Close()
	d := &fixture{t: t, store: store, registry: session.NewRegistry(store, secret)}
	said := func(first string, from, to int) []string {
		words := []string{"s1", first}
		for i := from; i < to; i++ {
			for _, kind := range []string{"a", "o"} {
				words = append(words, fmt.Sprintf("%s%03d-%s", kind, i, strings.Repeat("z", 500)))
			}
		}
		return words
	}
	send := func(words ...string) (session.Query, session.Resolution) {
		q := query(session.Scope{Tenant: "t", Key: "k"}, strings.Join(words, " "))
		res, err := d.registry.Resolve(t.Context(), q)
		must(t, err)
		counts := tally(&res, q)
		counts.Count = func(int) int { return 10 }
		must(t, d.registry.Append(t.Context(), &res, counts))
		return q, res
	}
	_, first := send(said("u-first", 0, 10)...)
	if inherits {
		gone := session.Range{From: 2, To: 5}
		d.condensed(query(session.Scope{Tenant: "t", Key: "k"}, strings.Join(said("u-first", 0, 10), " ")), "SUMMARY", gone)
	}
	_, second := send(said("u-second", 0, 20)...)
	_, third := send(said("u-third", 17, 20)...)
	if !slices.Equal(second.Thread.Shares, []session.ThreadID{first.Thread.ID}) || !slices.Equal(third.Thread.Shares, []session.ThreadID{second.Thread.ID}) {
		t.Fatalf("content is in %s and %s", second.Thread.Shares, third.Thread.Shares)
	}
	for i := range 4 {
		time.Sleep(ttl / 2)
		synctest.Wait()
		if _, res := send(said("u-third", 17, 21+i)...); res.Thread.ID != third.Thread.ID {
			t.Fatal("the third thread does not go on")
		}
	}
	if threads, _ := store.Session(t.Context(), first.Thread.Session); slices.Contains(threads.Threads, first.Thread.ID) {
		t.Fatal("the first thread is still there")
	}
	again := append(said("u-fourth", 0, 20), "a-new", "o-new")
	q, res := send(again...)
	d.wantWhole(q, res.Thread.ID)
	if !slices.Equal(res.Thread.Shares, []session.ThreadID{second.Thread.ID}) || res.Thread.Parent != second.Thread.ID {
		t.Errorf("a child of %s shares content of %s", res.Thread.Parent, res.Thread.Shares)
	}
	if _, next := send(append(again, "a-newer", "o-newer")...); next.Thread.ID != res.Thread.ID {
		t.Errorf("the client goes on in %s instead of %s", next.Thread.ID, res.Thread.ID)
	}
}
