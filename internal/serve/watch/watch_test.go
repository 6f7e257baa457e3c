package watch

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestBusyFolder: changes in a folder that is written to all the time are reported, but not those of a store's file. Files written one after
// the other are one change.
func TestBusyFolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		events, calls, done := make(chan fsnotify.Event), 0, make(chan struct{})
		go func() {
			defer close(done)
			loop(events, nil, func() { calls++ })
		}()
		write := func(name string, times int) int {
			calls = 0
			for range times {
				time.Sleep(settle / 2)
				events <- fsnotify.Event{Name: name, Op: fsnotify.Write}
			}
			time.Sleep(2 * maxDelay)
			synctest.Wait()
			return calls
		}
		if n := write("a/dewpoint.db", 5); n != 0 {
			t.Errorf("a store that is written is %d changes", n)
		}
		if n := write("a/tenant.yaml", 5); n != 1 {
			t.Errorf("five files are %d changes", n)
		}
		if n := write("a/tenant.yaml", 100); n < 4 || n > 6 {
			t.Errorf("five seconds of changes are reported %d times", n)
		}
		close(events)
		<-done
	})
}

func TestFolders(t *testing.T) {
	f, err := New()
	if err != nil {
		t.Fatal(err)
	}
	dir, changed := t.TempDir(), make(chan struct{}, 9)
	if err := f.Add(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing folder is watched")
	}
	if err := f.Add(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "before"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f.Start(func() { changed <- struct{}{} }) // changes since Add are reported
	<-changed
	f.Clear()
	next := t.TempDir()
	if err := f.Add(next); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "later"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if watched := f.watcher.WatchList(); len(watched) != 1 || watched[0] != next {
		t.Errorf("%v are watched", watched)
	}
	if err := os.WriteFile(filepath.Join(next, "later"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-changed
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
