package boltstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// filled returns the file of a store with some hundred records of each kind.
func filled(t *testing.T) []byte {
	t.Helper()
	s := start(t, Options{Content: true})
	for n := range 160 {
		id := session.ThreadID(fmt.Sprintf("thread-%d", n))
		b := twoEvents(id, 0)
		b.Thread.Session, b.Key = session.SessionID("session-"+id), "key"
		b.Traces = []session.Hash{{byte(n), 1}}
		must(t, s.Append(t.Context(), b))
		if n%4 == 0 {
			must(t, second(s.Condense(t.Context(), id, session.Condensation{Prefix: 1, Summary: strings.Repeat("summary ", 20)})))
		}
	}
	must(t, s.Close())
	b, err := os.ReadFile(s.options.Path)
	must(t, err)
	return b
}

// use calls each method of a store. Damage must cause nothing worse than an error.
func use(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _ = s.Secret(ctx, session.Secret("secret"))
	for n := range 40 {
		id := session.ThreadID(fmt.Sprintf("thread-%d", n))
		_, _ = s.Find(ctx, []session.Hash{{1, 0, 0, 7}, {2, 0, 0, 7}}, id, session.Hash{byte(n), 1})
		_, _ = s.Thread(ctx, id)
		_, _ = s.Session(ctx, session.SessionID("session-"+id))
		_, _ = s.Events(ctx, id, 1, 10)
		_, _ = s.Summary(ctx, session.CondensationID{Thread: id, Seq: 3})
		_, _ = s.Trace(ctx, []session.Hash{{byte(n), 1}})
		_ = s.Append(ctx, twoEvents(id, 2))
	}
	_, _ = s.Condense(ctx, "thread-1", session.Condensation{Prefix: 1, Summary: "s"})
	_ = s.Mark(ctx, []session.Hash{{99}}, session.Place{Thread: "thread-2", Pos: 1})
	_ = s.Request(ctx, "thread-3", time.Now())
	_, _ = s.Sessions(ctx, session.SessionQuery{Limit: 100})
	_ = s.Forget(ctx, "session-thread-4")
	_ = s.evict(ctx)
	_ = s.expire(ctx)
	_ = s.Ping(ctx)
	if ctx.Err() != nil {
		t.Error("a call has waited for the store")
	}
	if _, err := s.Lock(t.Context(), "thread-5", time.Second); err != nil {
		t.Errorf("lock: %v", err)
	}
}

// survives opens and uses a store over a damaged file, and then one whose file is damaged while it is open.
func survives(t *testing.T, whole []byte, damage func([]byte)) (refused, noticed bool) {
	t.Helper()
	damaged := bytes.Clone(whole)
	damage(damaged)
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(path, damaged, 0o600))
	condition, err := Check(path)
	must(t, err)
	must(t, os.WriteFile(path, damaged, 0o600)) // another file, because the first may stay locked
	o := Options{Path: path, Content: true, TTL: time.Hour, MaxSize: 1 << 40}
	s, err := Open(o)
	if err == nil {
		use(t, s)
		_ = s.Close()
	}
	o.Path = filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(o.Path, whole, 0o600))
	under, openErr := Open(o)
	must(t, openErr)
	f, openErr := os.OpenFile(o.Path, os.O_WRONLY, 0)
	must(t, openErr)
	must(t, second(f.WriteAt(damaged, 0)))
	must(t, f.Close())
	use(t, under)
	_ = under.Close()
	return err != nil, len(condition.Damages) > 0
}

// TestZeroedPages: losing any page neither ends the process nor panics out of the store, and Check reports it.
func TestZeroedPages(t *testing.T) {
	if raced {
		t.Skip("runs without the race detector, whose pointer checks end the process on a damaged page: make check does that too")
	}
	whole, size := filled(t), os.Getpagesize()
	used := usedPages(t, whole)
	refusals := 0
	for page := range len(whole) / size {
		refused, noticed := survives(t, whole, func(b []byte) { clear(b[page*size : (page+1)*size]) })
		if used[page] && !noticed {
			t.Errorf("page %d of %d: Check sees nothing", page, len(whole)/size)
		}
		if refused && !noticed {
			t.Errorf("page %d: refused, and Check sees nothing", page)
		}
		if refused {
			refusals++
		}
	}
	if refusals == 0 || refusals == len(whole)/size {
		t.Errorf("%d pages, %d without which no store opens", len(whole)/size, refusals)
	}
	t.Logf("%d pages, %d in use, %d without which no store opens", len(whole)/size, len(used), refusals)
}

// usedPages returns the pages that an intact file needs. It leaves out free pages and the two meta pages, of which one is
// enough.
func usedPages(t *testing.T, whole []byte) map[int]bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(path, whole, 0o600))
	used := map[int]bool{}
	must(t, readFile(path, func(tx *bolt.Tx, _ *os.File) error {
		for id := 0; ; id++ {
			switch info, err := tx.Page(id); {
			case err != nil || info == nil:
				return err
			case info.Type == "leaf" || info.Type == "branch" || info.Type == "freelist":
				for n := range info.OverflowCount + 1 {
					used[id+n] = n == 0 || info.Type == "freelist" // a page of zeros may be a part of a value
				}
			}
		}
	}))
	return used
}

// TestFlippedBytes flips single bits, most of them in the headers and elements of pages.
func TestFlippedBytes(t *testing.T) {
	if raced {
		t.Skip("runs without the race detector, whose pointer checks end the process on a damaged page: make check does that too")
	}
	whole, size := filled(t), os.Getpagesize()
	seed := rand.New(rand.NewPCG(20, 11))
	for range 60 {
		at := seed.IntN(len(whole))
		if seed.IntN(4) > 0 {
			at = at/size*size + seed.IntN(200)
		}
		bit := byte(1) << seed.IntN(8)
		survives(t, whole, func(b []byte) { b[at] ^= bit })
		if t.Failed() {
			t.Fatalf("byte %d, bit %#x", at, bit)
		}
	}
}

// TestPageThatLeadsBack: bbolt would follow a page that refers to itself until the stack overflows.
func TestPageThatLeadsBack(t *testing.T) {
	whole, size := wholeFile(t), os.Getpagesize()
	for page := 2; page < len(whole)/size; page++ {
		b := whole[page*size:]
		if order := b[8]; order != branchPage || b[9] != 0 {
			continue
		}
		damaged := bytes.Clone(whole)
		copy(damaged[page*size+headerSize+8:][:8], b[:8]) // its first child is itself
		path := filepath.Join(t.TempDir(), "store.db")
		must(t, os.WriteFile(path, damaged, 0o600))
		if s, err := Open(Options{Path: path}); err == nil {
			must(t, s.Close())
			continue // an unused page
		} else if !strings.Contains(err.Error(), "used twice") {
			t.Errorf("page %d: %v", page, err)
		}
		if c, err := Check(path); err != nil || len(c.Damages) == 0 {
			t.Errorf("%+v, %v", c, err)
		}
		return
	}
	t.Error("no branch page to damage")
}

// TestPanicIsNoHalfStep: what a step wrote before it panicked is not queued, and the store reports damage.
func TestPanicIsNoHalfStep(t *testing.T) {
	s := start(t, Options{})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	err := s.change(t.Context(), true, func(c *change) error {
		c.put(places.key("half"), []byte{1})
		panic("a damaged page")
	})
	if !errors.Is(err, session.ErrUnavailable) || !errors.Is(err, session.ErrDamaged) || !strings.Contains(err.Error(), "check-store") {
		t.Errorf("got %v", err)
	}
	must(t, s.flush(t.Context()))
	must(t, s.view(func(tx *bolt.Tx) error {
		if tx.Bucket(places.name()).Get([]byte("half")) != nil {
			t.Error("half a step was written")
		}
		return nil
	}))
	if err := s.Ping(t.Context()); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("ping: %v", err)
	}
	must(t, second(s.Thread(t.Context(), "t")))
}

// TestPanicInACommit: after a commit has panicked nothing more is written, records can be read, and Close does not block.
func TestPanicInACommit(t *testing.T) {
	s := start(t, Options{})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	must(t, s.flush(t.Context()))
	if err := s.update(func(*bolt.Tx) error { panic("a damaged page") }); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if _, err := s.Condense(t.Context(), "t", session.Condensation{Summary: "s"}); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
	must(t, second(s.Thread(t.Context(), "t")))
	if err := s.Close(); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
}

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	if _, err := Check(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	must(t, os.WriteFile(path, filled(t), 0o600))
	c, err := Check(path)
	if err != nil || len(c.Damages) > 0 || c.Records["threads"] != 160 || c.Records["summaries"] != 40 || c.Records["sessions"] != 160 {
		t.Errorf("%+v, %v", c, err)
	}
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	if _, err := Check(path); !errors.Is(err, errInUse) {
		t.Errorf("in use: %v", err)
	}
	must(t, db.Update(func(tx *bolt.Tx) error {
		return errors.Join(
			tx.Bucket(threads.name()).Put([]byte("thread-7"), []byte("garbage, and more of it")),
			tx.Bucket(events.name()).Put([]byte(events.entry("thread-8", 2)[1:]), nil),
		)
	}))
	must(t, db.Close())
	c, err = Check(path)
	if text := strings.Join(c.Damages, "\n"); err != nil || len(c.Damages) != 2 ||
		!strings.Contains(text, `threads: record "thread-7"`) || !strings.Contains(text, `log entries: record 2 of thread "thread-8"`) {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestSetAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	damaged := filled(t)[:64<<10]
	must(t, os.WriteFile(path, damaged, 0o600))
	now := time.Date(2026, 11, 22, 19, 30, 0, 0, time.UTC)
	aside, err := SetAside(path, now)
	must(t, err)
	if b, err := os.ReadFile(aside); err != nil || !bytes.Equal(b, damaged) {
		t.Errorf("%d bytes of %d, %v", len(b), len(damaged), err)
	}
	must(t, start(t, Options{Path: path}).Append(t.Context(), twoEvents("t", 0)))
	if _, err := SetAside(path, now); err == nil {
		t.Error("the file that was set aside before was replaced")
	}
}

// TestWasStore: a store is recognised without any of its pages, or without its first ones, and a file of another program never is.
func TestWasStore(t *testing.T) {
	f := func(want bool, what string, content []byte) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "store.db")
		must(t, os.WriteFile(path, content, 0o600))
		if wasStore(path) != want {
			t.Errorf("%s: want %t", what, want)
		}
	}
	whole, size := filled(t), os.Getpagesize()
	for page := range len(whole) / size {
		b := bytes.Clone(whole)
		clear(b[page*size : (page+1)*size])
		f(true, fmt.Sprintf("without page %d", page), b)
	}
	b := bytes.Clone(whole)
	clear(b[:4*size])
	f(true, "without the first pages", b)
	for n := 100; n < len(whole); n += 10_000 {
		f(true, fmt.Sprintf("%d bytes", n), whole[:n])
	}
	f(true, "of an earlier version", bytes.ReplaceAll(whole, []byte(format), []byte("dewpoint session store 1")))
	f(false, "zeros", make([]byte, 100<<10))
	f(false, "archive of a store", append(make([]byte, 512), whole...))
	f(false, "SQLite", append([]byte("SQLite format 3\x00\x10\x00\x01\x01"), make([]byte, 8<<10)...))

	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bolt.Tx) error { return second(tx.CreateBucket([]byte("key"))) }))
	must(t, db.Close())
	other, err := os.ReadFile(path)
	must(t, err)
	f(false, "bbolt file of another program", other)
	clear(other[:2*size])
	f(false, "the same, damaged", other)
}
