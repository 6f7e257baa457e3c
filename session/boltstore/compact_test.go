package boltstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// stored returns the values of the records of a session that have content of their own: its threads' log entries and summaries.
func stored(t *testing.T, s *Store, id session.ThreadID) (values [][]byte) {
	t.Helper()
	must(t, s.flush(t.Context()))
	must(t, s.view(func(tx *bolt.Tx) error {
		for _, b := range []bucket{events, summaries} {
			must(t, tx.Bucket(b.name()).ForEach(func(name, value []byte) error {
				if owner(name) == string(id) && len(value) > 20 { // shorter ones say nothing of their own
					values = append(values, bytes.Clone(value))
				}
				return nil
			}))
		}
		return nil
	}))
	return values
}

// shown returns how many of the values the file has, in whatever page.
func shown(t *testing.T, s *Store, values [][]byte) (n int) {
	t.Helper()
	file, err := os.ReadFile(s.options.Path)
	must(t, err)
	for _, v := range values {
		if bytes.Contains(file, v) {
			n++
		}
	}
	return n
}

// fill begins a thread in a session of its own.
func fill(t *testing.T, s *Store, id session.ThreadID, length int) {
	t.Helper()
	for at := 0; at < length; at += 2 {
		must(t, s.Append(t.Context(), batchOf(id, at)))
	}
	_, err := s.Condense(t.Context(), id, session.Condensation{Prefix: length, Summary: "The summary of " + string(id)})
	must(t, err)
}

// random returns bytes that do not become smaller when they are compressed.
func random(seed string) (b []byte) {
	for sum := sha256.Sum256([]byte(seed)); len(b) < 1600; sum = sha256.Sum256(sum[:]) {
		b = append(b, sum[:]...)
	}
	return b
}

// batchOf is twoEvents with a payload of its own, in a session of its own.
func batchOf(id session.ThreadID, at int) session.Batch {
	b := twoEvents(id, at)
	b.Thread.Session = session.SessionID("session-" + id)
	for i := range b.Events {
		b.Events[i].Payload = fmt.Appendf(nil, `{"role":"user","content":"%s says %x"}`, id, random(fmt.Sprint(id, b.Events[i].Pos)))
	}
	return b
}

// TestCompactionRemovesWhatWasDeleted searches the file for the stored bytes of a session: a deletion leaves them, a compaction does not, and
// the other sessions stay as they are.
func TestCompactionRemovesWhatWasDeleted(t *testing.T) {
	s := start(t, Options{Content: true})
	fill(t, s, "stays", 600) // more than one transaction copies
	fill(t, s, "goes", 200)
	goes, stays := stored(t, s, "goes"), stored(t, s, "stays")
	if n := shown(t, s, goes); n != len(goes) || n == 0 {
		t.Fatalf("the file has %d of %d records to begin with", n, len(goes))
	}
	must(t, s.Forget(t.Context(), "session-goes"))
	if n := shown(t, s, goes); n == 0 {
		t.Fatal("the file has nothing of what was deleted before it is compacted: there is nothing to test")
	}
	before := Dump(t, s)
	_, large, err := s.Size()
	must(t, err)
	must(t, s.Compact(t.Context()))
	if n := shown(t, s, goes); n != 0 {
		t.Errorf("the file still has %d of %d deleted records", n, len(goes))
	}
	if n := shown(t, s, stays); n != len(stays) {
		t.Errorf("the file has %d of %d records that stay", n, len(stays))
	}
	if after := Dump(t, s); len(after) != len(before) {
		t.Errorf("%d records, there were %d", len(after), len(before))
	} else {
		for key, value := range before {
			if after[key] != value {
				t.Errorf("%q changed", key)
			}
		}
	}
	if _, small, err := s.Size(); err != nil || small >= large {
		t.Errorf("the file has %d bytes, and had %d: %v", small, large, err)
	}
	whole(t, s)
	info, err := os.Stat(s.options.Path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the file: %v", info.Mode())
	}
	fill(t, s, "later", 10)
	path := s.options.Path
	must(t, s.Close())
	again := start(t, Options{Path: path, Content: true})
	if len(stored(t, again, "later")) == 0 || len(stored(t, again, "stays")) != len(stays) {
		t.Error("what was written after the compaction is lost")
	}
	whole(t, again)
}

// TestCompactionIsDue checks when the file is compacted without being asked: half a day after the first deletion, also if that was before a
// restart, and never if nothing was deleted.
func TestCompactionIsDue(t *testing.T) {
	s := start(t, Options{Content: true})
	fill(t, s, "next", 40)
	fill(t, s, "goes", 200)
	if since, err := s.erased(); err != nil || !since.IsZero() {
		t.Errorf("deleted at %v before anything was: %v", since, err)
	}
	goes := stored(t, s, "goes")
	must(t, s.Forget(t.Context(), "session-goes"))
	first, err := s.erased()
	if err != nil || time.Since(first) > time.Hour {
		t.Fatalf("deleted at %v, %v", first, err)
	}
	must(t, s.Forget(t.Context(), "session-next"))
	if since, err := s.erased(); err != nil || !since.Equal(first) {
		t.Errorf("deleted at %v, want the first deletion, at %v: %v", since, first, err)
	}
	path := s.options.Path
	must(t, s.Close())
	for _, c := range []struct {
		age  time.Duration
		gone bool
	}{{compactAfter - time.Minute, false}, {compactAfter, true}} {
		db, err := bolt.Open(path, 0o600, nil)
		must(t, err)
		since := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(-c.age).UnixNano()))
		must(t, db.Update(func(tx *bolt.Tx) error { return tx.Bucket(meta.name()).Put([]byte(erasedName), since) }))
		must(t, db.Close())
		s, err := Open(Options{Path: path, Content: true})
		must(t, err)
		for end := time.Now().Add(time.Minute); c.gone && time.Now().Before(end); { // only a defect uses that up
			if since, err := s.erased(); err == nil && since.IsZero() {
				break
			}
		}
		must(t, s.Close())
		if n := shown(t, s, goes); (n == 0) != c.gone {
			t.Errorf("%v after the deletion the file has %d deleted records", c.age, n)
		}
	}
}

// TestCompactionWhileRequestsWrite compacts while threads are written, read and deleted. No call fails, nothing is lost, and what is deleted
// meanwhile is gone after the next compaction.
func TestCompactionWhileRequestsWrite(t *testing.T) {
	s := start(t, Options{Content: true})
	fill(t, s, "old", 1000)
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := session.ThreadID(fmt.Sprintf("w%d-%d", w, n))
				for at := 0; at < 6; at += 2 {
					if err := s.Append(context.Background(), batchOf(id, at)); err != nil {
						t.Errorf("append: %v", err)
					}
				}
				if _, err := s.Condense(context.Background(), id, session.Condensation{Prefix: 6, Summary: "The summary of " + string(id)}); err != nil {
					t.Errorf("condense: %v", err)
				}
				if _, err := s.Events(context.Background(), "old", 1, 10); err != nil {
					t.Errorf("read: %v", err)
				}
				if n%2 == 1 {
					if err := s.Forget(context.Background(), session.SessionID("session-"+id)); err != nil {
						t.Errorf("delete: %v", err)
					}
				}
			}
		})
	}
	for n := range 5 {
		fill(t, s, session.ThreadID(fmt.Sprint("extra", n)), 4)
		must(t, s.Forget(t.Context(), session.SessionID(fmt.Sprint("session-extra", n))))
		must(t, s.Compact(t.Context()))
	}
	close(stop)
	writers.Wait()
	last := stored(t, s, "w0-0")
	must(t, s.Forget(t.Context(), "session-w0-0"))
	must(t, s.Compact(t.Context()))
	if n := shown(t, s, last); n != 0 || len(last) == 0 {
		t.Errorf("the file has %d of %d deleted records", n, len(last))
	}
	whole(t, s)
	if got := stored(t, s, "old"); len(got) < 500 {
		t.Errorf("%d records of the old thread are left", len(got))
	}
}

// TestDeletedWhileCompacting deletes between two stages of a compaction. The copy may have what was deleted, so that another compaction is due.
func TestDeletedWhileCompacting(t *testing.T) {
	s := start(t, Options{Content: true})
	fill(t, s, "goes", 40)
	fill(t, s, "late", 40)
	late := stored(t, s, "late")
	must(t, s.Forget(t.Context(), "session-goes"))
	c := begun(t, s)
	for _, b := range buckets {
		must(t, c.copyBucket(t.Context(), b))
	}
	must(t, s.Forget(t.Context(), "session-late"))
	var err error
	must(t, s.onWriter(func() { err = c.finish(t.Context()) }))
	must(t, errors.Join(err, c.end()))
	whole(t, s)
	if since, err := s.erased(); err != nil || since.IsZero() {
		t.Errorf("no compaction is due: %v", err)
	}
	must(t, s.Compact(t.Context()))
	if n := shown(t, s, late); n != 0 {
		t.Errorf("the file still has %d deleted records", n)
	}
	if since, err := s.erased(); err != nil || !since.IsZero() {
		t.Errorf("a compaction is due again: %v, %v", since, err)
	}
}

// begun begins a compaction as compact does.
func begun(t *testing.T, s *Store) *copying {
	t.Helper()
	c := &copying{s: s, path: s.options.Path}
	var err error
	c.to, err = bolt.Open(c.path+partSuffix, 0o600, &bolt.Options{NoSync: true})
	must(t, err)
	must(t, second(s.takeNoted(true)))
	return c
}

// TestFailedCompaction has no room for the copy. The file stays as it is, the operator is told, and a later attempt succeeds.
func TestFailedCompaction(t *testing.T) {
	var told []string
	s := start(t, Options{Content: true, Warn: func(message string, err error) { told = append(told, message+": "+err.Error()) }})
	fill(t, s, "goes", 40)
	fill(t, s, "stays", 40)
	must(t, s.Forget(t.Context(), "session-goes"))
	before := Dump(t, s)
	part := s.options.Path + partSuffix
	must(t, os.MkdirAll(filepath.Join(part, "in the way"), 0o700))
	if err := s.Compact(t.Context()); err == nil || len(told) != 1 || !strings.Contains(told[0], "not compacted") {
		t.Errorf("%v; told %q", err, told)
	}
	if after := Dump(t, s); len(after) != len(before) {
		t.Errorf("%d records, there were %d", len(after), len(before))
	}
	must(t, s.Append(t.Context(), batchOf("stays", 40)))
	must(t, os.RemoveAll(part))
	must(t, s.Compact(t.Context()))
	whole(t, s)
}

// TestLeftCopyIsRemoved starts after a crash during a compaction: the copy, which may show what was deleted, is removed.
func TestLeftCopyIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(path+partSuffix, []byte("half a copy"), 0o600))
	start(t, Options{Path: path})
	if _, err := os.Stat(path + partSuffix); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the copy is there: %v", err)
	}
}

// TestCompactionGivesUp has more writes during a compaction than are noted: the file stays as it is.
func TestCompactionGivesUp(t *testing.T) {
	s := start(t, Options{Content: true})
	c := begun(t, s)
	must(t, s.onWriter(func() {
		writes := map[string][]byte{}
		for n := range compactMost + 1 {
			writes[fmt.Sprint(n)] = nil
		}
		s.note(writes)
		if len(s.noted) != compactMost {
			t.Errorf("%d keys are noted", len(s.noted))
		}
	}))
	if _, err := s.takeNoted(true); !errors.Is(err, errManyWrites) {
		t.Error(err)
	}
	must(t, c.end())
	must(t, s.Append(t.Context(), batchOf("t", 0)))
	whole(t, s)
}

// TestCompactionFollowsALink compacts a file that store.path names by a symbolic link: the link stays one.
func TestCompactionFollowsALink(t *testing.T) {
	target, link := filepath.Join(t.TempDir(), "target.db"), filepath.Join(t.TempDir(), "link.db")
	must(t, os.WriteFile(target, nil, 0o600))
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	s := start(t, Options{Path: link, Content: true})
	fill(t, s, "goes", 40)
	must(t, s.Forget(t.Context(), "session-goes"))
	must(t, s.Compact(t.Context()))
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v: %v", info, err)
	}
}

// TestCompactAfterClose: Compact returns at once when the store is closed.
func TestCompactAfterClose(t *testing.T) {
	s := start(t, Options{})
	must(t, s.Close())
	if err := s.Compact(t.Context()); err == nil {
		t.Error("a closed store was compacted")
	}
}

// compactUntilKilled writes, deletes and compacts forever, and prints the number of each condensation that returned.
func compactUntilKilled(path string) {
	s, err := Open(Options{Path: path, Content: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go func() {
		for n := 0; ; n++ {
			id := session.ThreadID(fmt.Sprint("d", n))
			_ = s.Append(context.Background(), batchOf(id, 0))
			_ = s.Forget(context.Background(), "session-"+session.SessionID(id))
			if err := s.Compact(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}()
	appendForever(s)
}

// TestKilledWhileCompacting: after kill -9 the file opens, holds every condensation that returned, and nothing is left of an unfinished copy.
func TestKilledWhileCompacting(t *testing.T) {
	for _, after := range []int{1, 2, 3, 5, 8, 13, 21, 34} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			told := crash(t, compacting, path, after)
			s := start(t, Options{Path: path})
			consistent(t, s, told)
			names, err := filepath.Glob(path + "*")
			must(t, err)
			if slices.Contains(names, path+partSuffix) {
				t.Errorf("left: %q", names)
			}
		})
	}
}
