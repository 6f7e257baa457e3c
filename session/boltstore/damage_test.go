package boltstore

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// filled returns the path of a closed store with hundreds of records, a secret and a setting.
func filled(t *testing.T) (path string) {
	t.Helper()
	s := start(t, Options{Content: true})
	must(t, second(s.Secret(t.Context(), session.Secret(theSecret))))
	must(t, s.Set(t.Context(), "override", []byte(theSetting)))
	for n := range 80 {
		id := session.ThreadID(fmt.Sprintf("thread-%d", n))
		b := twoEvents(id, 0)
		b.Thread.Session, b.Key = session.SessionID("session-"+id), "key"
		b.Traces = session.Traces{Lasting: []session.Hash{{byte(n), 1}}}
		must(t, s.Append(t.Context(), b))
		if n%4 == 0 {
			must(t, second(s.Condense(t.Context(), id, session.Condensation{Prefix: 1, Summary: strings.Repeat("summary ", 20)})))
		}
	}
	must(t, s.Close())
	return s.options.Path
}

const theSecret, theSetting = "a secret for sealing", "condensing is off"

// use calls each method of a store. Damage must cause nothing worse than an error.
func use(t *testing.T, s *Store) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, _ = s.Secret(ctx, session.Secret("another"))
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
	_ = s.Mark(ctx, session.Place{Thread: "thread-2", Pos: 1}, session.Traces{Lasting: []session.Hash{{99}}})
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

// works writes to a store, and checks that it has the secret and the setting of the file that was damaged. It returns the first error.
func works(t *testing.T, s *Store) error {
	t.Helper()
	secret, err := s.Secret(t.Context(), session.Secret("another"))
	if err == nil && string(secret) != theSecret {
		t.Errorf("the secret is %q", secret)
	}
	settings, more := s.Settings(t.Context())
	if err == nil && more == nil && (len(settings) != 1 || string(settings["override"]) != theSetting) {
		t.Errorf("the settings are %q", settings)
	}
	return errors.Join(err, more, s.Append(t.Context(), twoEvents(session.ThreadID(rand.Text()), 0)), s.flush(t.Context()), s.Ping(t.Context()))
}

// damagedFile is a store whose file is damaged.
type damagedFile struct {
	t     *testing.T
	whole string   // path of the intact file
	told  []string // what the starts told the operator
}

// copied copies the intact file and its recovery file, and returns the copy's path.
func (d *damagedFile) copied() string {
	d.t.Helper()
	path := filepath.Join(d.t.TempDir(), "store.db")
	for _, suffix := range []string{"", ".recovery"} {
		b, err := os.ReadFile(d.whole + suffix)
		must(d.t, err)
		must(d.t, os.WriteFile(path+suffix, b, 0o600))
	}
	return path
}

func (d *damagedFile) open(path string) *Store {
	d.t.Helper()
	s, err := Open(Options{
		Path: path, Content: true, TTL: time.Hour, MaxSize: 1 << 40,
		Warn: func(message string, err error) { d.told = append(d.told, message+": "+err.Error()) },
	})
	must(d.t, err)
	return s
}

// unlock replaces the file by a copy, as if its process had ended: bbolt may have it locked for ever in this one.
func unlock(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path+".copy", b, 0o600))
	must(t, os.Rename(path+".copy", path))
}

// recovers starts a store over the file again and again until one works without an error. It checks that the last renamed file is left, and
// returns how many were renamed.
func (d *damagedFile) recovers(path string) int {
	d.t.Helper()
	d.told = nil
	var err error
	for range 4 { // damage may show late, and the file is renamed only by the start after the one that found it
		unlock(d.t, path)
		s := d.open(path)
		use(d.t, s)
		err = errors.Join(works(d.t, s), s.Close())
		if err == nil {
			break
		}
	}
	must(d.t, err)
	d.onlyTheLastIsLeft(path)
	return len(d.told)
}

// onlyTheLastIsLeft checks that only the last of the files that were renamed is left. The operator was told their names.
func (d *damagedFile) onlyTheLastIsLeft(path string) {
	d.t.Helper()
	aside, err := filepath.Glob(path + ".damaged-*")
	must(d.t, err)
	if len(aside) != min(1, len(d.told)) || len(aside) > 0 && !strings.Contains(d.told[len(d.told)-1], " is now "+aside[0]+":") {
		d.t.Errorf("the renamed files are %q, and the operator was told %q", aside, d.told)
	}
}

// survives damages the file before a start, and while it is open.
func (d *damagedFile) survives(damage func(*os.File)) (renamed int) {
	d.t.Helper()
	change := func(path string) {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(d.t, err)
		damage(f)
		must(d.t, f.Close())
	}
	path := d.copied()
	change(path)
	renamed = d.recovers(path)
	path = d.copied()
	s := d.open(path)
	change(path)
	use(d.t, s)
	_ = s.Close()
	return renamed + d.recovers(path)
}

// TestDamagedFile: whatever happens to the file, no call panics, one of the next starts has a working store with the secret and the
// settings, and the damaged file is kept. The test is skipped under the race detector, whose pointer checks end the process on a damaged page.
func TestDamagedFile(t *testing.T) {
	quick.Skip(t)
	quick.Alone(t)
	path := filled(t)
	whole, err := os.ReadFile(path)
	must(t, err)
	size := os.Getpagesize()
	zero := func(d *damagedFile, from, to int) int {
		return d.survives(func(f *os.File) { must(t, second(f.WriteAt(make([]byte, to-from), int64(from)))) })
	}
	t.Run("zeroed pages", func(t *testing.T) {
		renamed := 0
		for at := 0; at < len(whole); at += size {
			renamed += zero(&damagedFile{t: t, whole: path}, at, at+size)
			if t.Failed() {
				t.Fatalf("page %d", at/size)
			}
		}
		if pages := len(whole) / size; renamed < pages/4 || renamed > 2*pages {
			t.Errorf("%d files were renamed, with each of %d pages lost", renamed, pages)
		}
		t.Logf("%d pages, %d renamed files", len(whole)/size, renamed)
	})
	t.Run("flipped bits", func(t *testing.T) { flipBits(t, path, whole) })
	t.Run("zeros", func(t *testing.T) {
		for _, pages := range [][2]int{{0, len(whole)}, {0, 2 * size}, {2 * size, len(whole)}} {
			if zero(&damagedFile{t: t, whole: path}, pages[0], pages[1]) == 0 {
				t.Errorf("without bytes %d to %d, the file was used", pages[0], pages[1])
			}
		}
	})
	t.Run("cut short", func(t *testing.T) {
		for _, length := range []int{0, 1, 100, size, 2 * size, 3 * size, 4 * size, len(whole) / 2, len(whole) - size} {
			d := &damagedFile{t: t, whole: path}
			d.survives(func(f *os.File) { must(t, f.Truncate(int64(length))) })
		}
	})
	t.Run("garbage at its beginning", func(t *testing.T) {
		d := &damagedFile{t: t, whole: path}
		if d.survives(func(f *os.File) { must(t, second(f.WriteAt(bytes.Repeat([]byte("garbage"), size), 0))) }) == 0 {
			t.Error("the file was used")
		}
	})
}

// flipBits flips single bits, most of them in the headers and elements of pages.
func flipBits(t *testing.T, path string, whole []byte) {
	seed, size := mathrand.New(mathrand.NewPCG(20, 11)), os.Getpagesize()
	for n := 0; n < 50; {
		at := seed.IntN(len(whole))
		if seed.IntN(4) > 0 {
			at = at/size*size + seed.IntN(200)
		}
		damaged := bytes.Clone(whole)
		damaged[at] ^= 1 << seed.IntN(8)
		changesValue := false // the flip makes another valid value, which cannot be detected
		for _, value := range []string{format, theSecret, theSetting} {
			changesValue = changesValue || bytes.Count(damaged, []byte(value)) != bytes.Count(whole, []byte(value))
		}
		if changesValue {
			continue
		}
		n++
		d := &damagedFile{t: t, whole: path}
		d.survives(func(f *os.File) { must(t, second(f.WriteAt(damaged[at:at+1], int64(at)))) })
		if t.Failed() {
			t.Fatalf("byte %d: %#x instead of %#x", at, damaged[at], whole[at])
		}
	}
}

// panicInBbolt panics as bbolt does when it meets a damaged page.
func panicInBbolt(tx *bolt.Tx) error { return tx.Bucket([]byte("no such bucket")).Put(nil, nil) }

// wantSetAside checks that the store reports damage, and that the next start renames its file and begins a new one.
func wantSetAside(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Ping(t.Context()); !errors.Is(err, session.ErrDamaged) || !errors.Is(err, session.ErrUnavailable) || !strings.Contains(err.Error(), "the next start renames "+s.options.Path) {
		t.Errorf("ping: %v", err)
	}
	if err := s.Close(); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("close: %v", err)
	}
	d := &damagedFile{t: t}
	next := d.open(s.options.Path)
	defer next.Close()
	if len(d.told) != 1 || !strings.Contains(d.told[0], "found by the last process") {
		t.Errorf("told %q", d.told)
	}
	if _, err := next.Thread(t.Context(), "t"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("thread: %v", err)
	}
	must(t, next.Ping(t.Context()))
}

// TestPanicQueuesNoPartOfAStep: the writes of a step that panics are not queued. A defect of the program does not count as damage to the file.
func TestPanicQueuesNoPartOfAStep(t *testing.T) {
	s := start(t, Options{})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	half := func(end func(*change)) error {
		return s.change(t.Context(), true, func(c *change) error {
			c.put(places.key("half"), []byte{1})
			end(c)
			return nil
		})
	}
	if err := half(func(*change) { panic("a defect") }); !errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrDamaged) {
		t.Errorf("a defect: %v", err)
	}
	must(t, s.Ping(t.Context()))
	if err := half(func(c *change) { _ = panicInBbolt(c.tx) }); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("damage: %v", err)
	}
	must(t, s.flush(t.Context()))
	must(t, s.view(func(tx *bolt.Tx) error {
		if tx.Bucket(places.name()).Get([]byte("half")) != nil {
			t.Error("half a step was written")
		}
		return nil
	}))
	must(t, second(s.Thread(t.Context(), "t")))
	wantSetAside(t, s)
}

// TestPanicInACommit: after a commit has panicked nothing more is written, records can be read, and Close does not block.
func TestPanicInACommit(t *testing.T) {
	s := start(t, Options{})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	must(t, s.flush(t.Context()))
	if err := s.update(panicInBbolt); !errors.Is(err, session.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	for range 3 {
		if _, err := s.Condense(t.Context(), "t", session.Condensation{Summary: "s"}); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
	}
	must(t, second(s.Thread(t.Context(), "t")))
	wantSetAside(t, s)
}

// TestCommitSucceedsAfterAPanicOfOurs: a commit that panics because of a defect of the program is rolled back, and the next one succeeds.
func TestCommitSucceedsAfterAPanicOfOurs(t *testing.T) {
	s := start(t, Options{})
	if err := s.update(func(*bolt.Tx) error { panic("a defect") }); !errors.Is(err, session.ErrUnavailable) || errors.Is(err, session.ErrDamaged) {
		t.Errorf("got %v", err)
	}
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	must(t, s.flush(t.Context()))
	must(t, s.Close())
}

// TestCorruptRecordIsDamage: calls that need a record which cannot be decoded fail, and the next start begins a new file. A damaged log
// entry does neither, because all other entries stay readable.
func TestCorruptRecordIsDamage(t *testing.T) {
	s := start(t, Options{Content: true})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	Damage(t, s, "t", 1, func([]byte) []byte { return []byte("garbage") })
	all, err := s.Events(t.Context(), "t", 1, 10)
	if err != nil || len(all) != 2 || all[0].Kind != session.Unreadable || all[1].Kind != session.User {
		t.Errorf("%+v, %v", all, err)
	}
	must(t, s.Ping(t.Context()))
	must(t, s.db.Update(func(tx *bolt.Tx) error { return tx.Bucket(threads.name()).Put([]byte("t"), []byte("garbage")) }))
	if _, err := s.Thread(t.Context(), "t"); !errors.Is(err, session.ErrDamaged) || !errors.Is(err, session.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	wantSetAside(t, s)
}

// TestLostRoot: if the two pages that locate the root are lost while the file is open, bbolt never releases its locks. Neither calls after
// the first one nor the end of an earlier read wait for these locks.
func TestLostRoot(t *testing.T) {
	s := start(t, Options{})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	must(t, s.flush(t.Context()))
	must(t, s.view(func(*bolt.Tx) error {
		f, err := os.OpenFile(s.options.Path, os.O_WRONLY, 0)
		must(t, err)
		must(t, second(f.WriteAt(make([]byte, 2*os.Getpagesize()), 0)))
		must(t, f.Close())
		for range 20 {
			if err := second(s.Thread(t.Context(), "t")); !errors.Is(err, session.ErrDamaged) {
				t.Errorf("thread: %v", err)
			}
		}
		if err := second(s.Condense(t.Context(), "t", session.Condensation{})); !errors.Is(err, session.ErrUnavailable) {
			t.Errorf("condense: %v", err)
		}
		return nil
	}))
	wantSetAside(t, s)
}

// TestReadsEndWhileTheFileGrows: a commit that maps a larger file waits for running reads, and new reads wait for the commit. The running
// reads must still be able to end.
func TestReadsEndWhileTheFileGrows(t *testing.T) {
	s := start(t, Options{Content: true})
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	must(t, s.flush(t.Context()))
	stop := make(chan struct{})
	var reads sync.WaitGroup
	for range 8 {
		reads.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				err := s.view(func(tx *bolt.Tx) error { // long enough for others to begin and for a commit to wait
					return tx.Bucket(events.name()).ForEach(func(_, v []byte) error {
						_ = bytes.Count(v, []byte{1})
						runtime.Gosched()
						return nil
					})
				})
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	random := mathrand.NewChaCha8([32]byte{1})
	for at := 2; at < 60; at += 2 { // each about 1 MB, which does not compress
		b := twoEvents("t", at)
		b.Events[0].Payload = make([]byte, 1<<20)
		_, _ = random.Read(b.Events[0].Payload)
		must(t, s.Append(t.Context(), b))
		must(t, s.flush(t.Context()))
	}
	close(stop)
	reads.Wait()
}
