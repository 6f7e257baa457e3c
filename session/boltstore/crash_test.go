package boltstore

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// These environment variables pass the file to the process that will be killed.
const (
	crashing = "BOLTSTORE_TEST_CRASH"
	evicting = "BOLTSTORE_TEST_EVICT"

	compacting = "BOLTSTORE_TEST_COMPACT"
)

func TestMain(m *testing.M) {
	if path := os.Getenv(crashing); path != "" {
		writeUntilKilled(path)
	}
	if path := os.Getenv(evicting); path != "" {
		evictUntilKilled(path)
	}
	if path := os.Getenv(compacting); path != "" {
		compactUntilKilled(path)
	}
	if path := os.Getenv(starting); path != "" {
		openAndExit(path)
	}
	os.Exit(m.Run())
}

// writeUntilKilled appends forever and prints the numbers of the condensations that returned.
func writeUntilKilled(path string) {
	s, err := Open(Options{Path: path, Content: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	appendForever(s)
}

// appendForever appends and condenses until the process is killed, and prints the number of each condensation that returned.
func appendForever(s *Store) {
	var err error
	for at := 0; err == nil; at += 2 {
		if err = s.Append(context.Background(), twoEvents("t", at)); err == nil && at%20 == 0 {
			var c session.Condensation
			c, err = s.Condense(context.Background(), "t", session.Condensation{Prefix: at + 2, Summary: fmt.Sprint(at + 2)})
			fmt.Println(c.Prefix)
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilled: after kill -9 the file opens, holds every condensation that returned, and has a prefix of the log that was
// written, with its index.
func TestKilled(t *testing.T) {
	for _, after := range []int{1, 7, 40} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			told := crash(t, crashing, path, after)
			s := start(t, Options{Path: path})
			consistent(t, s, told)
		})
	}
}

// evictUntilKilled begins threads forever in a store that is always full, and prints their number.
func evictUntilKilled(path string) {
	s, err := Open(Options{Path: path, Content: true, MaxSize: 40_000})
	for n := 1; err == nil; n++ {
		id := session.ThreadID(fmt.Sprint(n))
		if err = s.Append(context.Background(), twoEvents(id, 0)); err == nil {
			_, err = s.Condense(context.Background(), id, session.Condensation{Prefix: 2, Summary: "x"})
		}
		fmt.Println(n)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestKilledWhileEvicting: after kill -9 no thread is partly deleted, and the size is right.
func TestKilledWhileEvicting(t *testing.T) {
	for _, after := range []int{80, 100, 120} {
		t.Run(fmt.Sprint(after), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			told := crash(t, evicting, path, after)
			s := start(t, Options{Path: path})
			whole(t, s)
			order, err := s.order()
			must(t, err)
			if len(order) == 0 || len(order) >= told {
				t.Errorf("%d threads are left of %d", len(order), told)
			}
		})
	}
}

// crash returns the last number that the process printed before it was killed.
func crash(t *testing.T, variable, path string, after int) (told int) {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), variable+"="+path)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	lines := bufio.NewScanner(out)
	for range after {
		if !lines.Scan() {
			break
		}
		must(t, second(fmt.Sscan(lines.Text(), &told)))
	}
	must(t, command.Process.Kill())
	_ = command.Wait() // it was killed
	if told == 0 {
		t.Fatal("the process wrote nothing")
	}
	return told
}

func consistent(t *testing.T, s *Store, told int) {
	t.Helper()
	whole(t, s)
	ctx := t.Context()
	thread, err := s.Thread(ctx, "t")
	must(t, err)
	if thread.Len < told {
		t.Errorf("the thread ends at %d, but the condensation at %d had returned", thread.Len, told)
	}
	log, err := s.Events(ctx, "t", 1, 1<<30)
	must(t, err)
	pos, hashes := 0, []session.Hash{}
	for i, e := range log {
		if e.Seq != uint64(i+1) {
			t.Fatalf("entry %d has number %d", i+1, e.Seq)
		}
		if e.Kind == session.User {
			pos++
			hashes = append(hashes, e.Chain)
		}
	}
	if pos != thread.Len || uint64(len(log)) != thread.Seq {
		t.Errorf("%d messages in %d entries, but the thread is %+v", pos, len(log), thread)
	}
	found, err := s.Find(ctx, hashes, "")
	must(t, err)
	for i, p := range found.Places {
		if p.Pos != i+1 {
			t.Fatalf("place %d is %+v", i+1, p)
		}
	}
	for _, c := range thread.Condensations {
		text, err := s.Summary(ctx, c.ID)
		if err != nil || text != fmt.Sprint(c.Prefix) {
			t.Errorf("summary %q, %v", text, err)
		}
	}
}
