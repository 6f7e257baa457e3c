package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// TestCheckStore checks an intact file and a damaged one, and sets the damaged one aside.
func TestCheckStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	store, err := boltstore.Open(boltstore.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Append(t.Context(), session.Batch{Thread: session.Thread{ID: "t"}}); err != nil {
		t.Fatal(err)
	}
	f := func(want int, says string, args ...string) {
		t.Helper()
		code, out, errs := command(t, append([]string{"check-store"}, args...)...)
		if code != want || !strings.Contains(out+errs, says) {
			t.Errorf("%v: exit code %d, want %d; wrote %q, want %q in it", args, code, want, out+errs, says)
		}
	}
	f(exitFailure, "another process uses the file", "--renew", path)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	f(exitOK, "threads: 1", path)
	f(exitOK, "is intact", "--renew", path)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[2*os.Getpagesize():])
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	f(exitFailure, "damaged: ", path)
	f(exitFailure, "--renew", path)
	f(exitOK, "the next start creates a new one", "--renew", path)
	aside, err := filepath.Glob(path + ".aside-*")
	if err != nil || len(aside) != 1 {
		t.Fatalf("%v, %v", aside, err)
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || string(kept) != string(b) {
		t.Errorf("what was set aside was changed (%v)", err)
	}
	f(exitUsage, "no such file", path)
}

// TestRenewRefusesOtherFiles: a mistyped path takes no other file away.
func TestRenewRefusesOtherFiles(t *testing.T) {
	f := func(want int, says, name, text string) {
		t.Helper()
		path := write(t, name, text)
		code, out, errs := command(t, "check-store", "--renew", path)
		_, err := os.Stat(path)
		if code != want || !strings.Contains(out+errs, says) || os.IsNotExist(err) != strings.Contains(says, "creates") {
			t.Errorf("%s: exit code %d, want %d; wrote %q; %v", name, code, want, out+errs, err)
		}
	}
	magic := "\xed\xda\x0c\xed"
	f(exitFailure, "is not a Dewpoint store; nothing was renamed", "dewpoint.yaml", "listen: 127.0.0.1:8080\n")
	f(exitFailure, "nothing was renamed", "large.yaml", strings.Repeat("# nothing\n", 20_000))
	f(exitFailure, "nothing was renamed: if it was one, rename it yourself", "state.db", "overwritten")
	f(exitOK, "is intact", "empty", "")
	f(exitOK, "creates a new one", "first", strings.Repeat("x", 16)+magic)
	f(exitOK, "creates a new one", "second", strings.Repeat("x", 16<<10+16)+magic)
}
