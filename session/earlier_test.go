package session_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// earlier returns the messages before a history, thread by thread.
func (d *fixture) earlier(ctx context.Context, res session.Resolution) (said string, e session.Earlier) {
	d.t.Helper()
	e = d.registry.Earlier(ctx, &res)
	var threads []string
	for _, t := range e.Threads {
		var words []string
		for _, event := range t.Events {
			words = append(words, strings.Trim(string(event.Payload), `"`))
		}
		threads = append(threads, strings.Join(words, " "))
	}
	return strings.Join(threads, " | "), e
}

func TestEarlier(t *testing.T) {
	keyed := func(key string) session.Scope { return session.Scope{Tenant: "t", Key: key} }
	for name, c := range map[string]struct {
		key     string
		parent  string
		history []string // the histories that the client sends, in order
		want    string
	}{
		"nothing":          {"", "", []string{"s1 u1 a1 o1 g1", "s1 u1 a1 o1 g1 u2"}, ""},
		"a new history":    {"k", "", []string{"s1 u1 a1 o1 g1", "s1 u1 a1 o1 g1 u2", "s1 u9 g9"}, "u1 a1 o1 g1 u2"},
		"behind rules":     {"k", "", []string{strings.Repeat("s1 ", 20) + "u1 a1 o1 g1", strings.Repeat("s1 ", 20) + "u9 g9"}, "u1 a1 o1 g1"},
		"two of them":      {"k", "", []string{"u1 a1 o1", "u2 a2 o2", "u3 a3 o3"}, "u2 a2 o2 | u1 a1 o1"},
		"some is kept":     {"k", "", []string{"u1 a1 o1 g1 a2 o2", "u9 a2 o2"}, "u1 a1 o1 g1"},
		"the end is cut":   {"", "", []string{"u1 a1 o1 g1 u2 a2 o2", "u1 a1 o1 u3"}, "g1 u2 a2 o2"},
		"cut twice":        {"", "", []string{"u1 a1 o1 g1 u2", "u1 a1 o1 u3 a3 o3", "u1 a1 o1 u3 u4"}, "a3 o3 | g1 u2"},
		"of another scope": {"sub", "k", []string{"u1 a1 o1", "u9 g9"}, "u1 a1 o1"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t)
			if c.parent != "" {
				d.send(d.registry, query(keyed(c.parent), "u7 a7 o7"))
			}
			var last session.Resolution
			for _, words := range c.history {
				q := query(keyed(c.key), words)
				q.Parent = c.parent
				last = d.send(d.registry, q)
			}
			if c.parent != "" {
				if s, err := d.store.Session(t.Context(), last.Thread.Session); err != nil || len(s.Threads) != 3 {
					t.Fatalf("the session is %+v, %v: it is not shared", s, err)
				}
			}
			got, e := d.earlier(t.Context(), last)
			if strings.TrimSpace(got) != c.want || !e.Readable || !e.Whole {
				t.Errorf("got %q, want %q; readable %t, whole %t", got, c.want, e.Readable, e.Whole)
			}
		})
	}
}

// TestEarlierOmitsAnotherRun: two runs have the same beginning, so the second is a fork of the first one's thread. Earlier must not return for
// the second run what the first one has after the fork, even if the first one is longer than the bounds. A client that cut its own result
// is the same run.
func TestEarlierOmitsAnotherRun(t *testing.T) {
	long := []string{"u1 a1 o1 a2 o2"} // until the traces of its first step are deleted
	for n := 3; n < 20; n++ {
		long = append(long, fmt.Sprintf("%s a%d o%d", long[len(long)-1], n, n))
	}
	for name, c := range map[string]struct {
		key     string
		first   string
		more    int      // messages that the first run has after that
		history []string // of the second run
		cut     string
		want    string
	}{
		"shorter":                  {first: "u1 a1 o1 a2 p2x a3 p3x", history: []string{"u1 a1 o1 a2 o2"}},
		"shorter, some steps on":   {first: "u1 a1 o1 a2 p2x a3 p3x", history: []string{"u1 a1 o1 a2 o2", "u1 a1 o1 a2 o2 a3 o3"}},
		"shorter, many steps on":   {first: "u1 a1 o1 a2 p2x a3 p3x", history: long},
		"shorter, key":             {key: "k", first: "u1 a1 o1 a2 p2x a3 p3x", history: []string{"u1 a1 o1 a2 o2", "u1 a1 o1 a2 o2 a3 o3"}},
		"shorter, short ids":       {key: "k", first: "u1 c1 r1 c2 r2xx c3 r3xx", history: []string{"u1 c1 r1 c2 r2", "u1 c1 r1 c2 r2 c3 r3"}},
		"shorter, compacted since": {first: "u1 a1 o1 a2 p2x a3 p3x", history: []string{"u1 a1 o1 a2 o2", "u1 a1 o1 a2 o2 a4 o4", "u9 a4 o4"}, want: "o2 | u1 a1 o1 a2"},
		"longer":                   {first: "u1 a1 o1 a2 o2 a3 o3", history: []string{"u1 a1 o1 a2 p2x"}},
		"longer, a long thread":    {first: "u1 a1 o1 a2 o2", more: 4500, history: []string{"u1 a1 o1 a2 p2x"}},
		"cut":                      {first: "u1 a1 o1 a2 p2x a3 p3x", history: []string{"u1 a1 o1 a2 p2x a3 p3x a4 o4"}, cut: "p2x", want: "p2x"},
		"cut, key, short ids":      {key: "k", first: "u1 c1 r1 c2 r2xx c3 r3", history: []string{"u1 c1 r1 c2 r2xx c3 r3 c4 r4"}, cut: "r2xx", want: "r2xx"},
	} {
		d, scope := newFixture(t), session.Scope{Tenant: "t", Key: c.key}
		for i := range c.more {
			c.first += fmt.Sprintf(" g%d", i)
		}
		d.send(d.registry, query(scope, c.first))
		var last session.Resolution
		for _, words := range c.history {
			q := query(scope, words)
			if c.cut != "" {
				q = cut(q, scope, c.cut)
			}
			last = d.send(d.another(), q)
			must(t, d.registry.Answered(t.Context(), &last, "", nil, nil))
		}
		if got, _ := d.earlier(t.Context(), last); strings.TrimSpace(got) != c.want {
			t.Errorf("%s: got %.80q, want %q", name, got, c.want)
		}
	}
}

// TestEarlierIsBounded: of a long log, only the newest events are read, and reading ends when the context is done.
func TestEarlierIsBounded(t *testing.T) {
	d := newFixture(t)
	scope := session.Scope{Tenant: "t", Key: "k"}
	var words []string
	for i := range 5000 {
		words = append(words, fmt.Sprintf("g%d", i))
	}
	d.send(d.registry, query(scope, "u1 "+strings.Join(words, " ")))
	last := d.send(d.registry, query(scope, "u9"))
	_, e := d.earlier(t.Context(), last)
	events := e.Threads[0].Events
	if n := len(events); e.Whole || n < 4096-8 || n > 4096+32 || string(events[n-1].Payload) != `"g4999"` {
		t.Errorf("%d events were read, whole %t", n, e.Whole)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if said, e := d.earlier(over, last); said != "" || e.Whole {
		t.Errorf("read %q, whole %t", said, e.Whole)
	}
}

// metered is a store that counts what is read from it.
type metered struct {
	session.Store
	bytes int
}

func (s *metered) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	page, err := s.Store.Events(ctx, id, from, limit)
	for i := range page {
		s.bytes += len(page[i].Payload)
	}
	return page, err
}

// TestEarlierOfLargeEvents: everything that is read counts towards the bounds, and large events are read a few at a time.
func TestEarlierOfLargeEvents(t *testing.T) {
	d := newFixture(t)
	scope := session.Scope{Tenant: "t", Key: "k"}
	for i := range 4 {
		q := query(scope, fmt.Sprintf("u%d ", i)+strings.Repeat("g1 a1 o1 ", 11))
		for j := range q.History.Messages {
			q.History.Messages[j].Raw = []byte(`"` + strings.Repeat("x", 1<<20) + `"`)
		}
		d.send(d.registry, q)
	}
	last := d.send(d.registry, query(scope, "u9"))
	store := &metered{Store: d.store}
	d.store = store
	if e := d.another().Earlier(t.Context(), &last); e.Whole || store.bytes > 8<<20 {
		t.Errorf("%d MiB were read, whole %t", store.bytes>>20, e.Whole)
	}
}

// TestEarlierOfADamagedLog: Readable reports that an entry is damaged, and all others are read.
func TestEarlierOfADamagedLog(t *testing.T) {
	d, scope := newFixture(t), session.Scope{Tenant: "t", Key: "k"}
	first := d.send(d.registry, query(scope, "u1 a1 o1 a2 o2"))
	last := d.send(d.registry, query(scope, "u9"))
	d.store = &damaged{d.store.(session.Backend), map[session.EntryID]bool{{Thread: first.Thread.ID, Seq: 3}: true}}
	d.registry = d.another()
	if said, e := d.earlier(t.Context(), last); strings.TrimSpace(said) != "u1 a1 a2 o2" || e.Readable || !e.Whole {
		t.Errorf("read %q, readable %t, whole %t", said, e.Readable, e.Whole)
	}
}

// TestEarlierWithoutContent: events whose content was not stored are left out, and Readable reports that.
func TestEarlierWithoutContent(t *testing.T) {
	d := newFixture(t)
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "bare.db")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	d.store = store
	d.registry = d.another()
	scope := session.Scope{Tenant: "t", Key: "k"}
	d.send(d.registry, query(scope, "u1 a1 o1"))
	if said, e := d.earlier(t.Context(), d.send(d.registry, query(scope, "u9"))); said != "" || e.Readable || !e.Whole {
		t.Errorf("read %q, readable %t, whole %t", said, e.Readable, e.Whole)
	}
}
