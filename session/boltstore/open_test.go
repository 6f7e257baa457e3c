package boltstore

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
)

func TestPathsWithoutAFile(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"no path", Options{}, "no such file"},
		{"no directory", Options{Path: filepath.Join(t.TempDir(), "missing", "x")}, "missing does not exist: create it, or set store.path"},
		{"a directory", Options{Path: t.TempDir()}, "directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := Open(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestUsedByAnother(t *testing.T) {
	s := start(t, Options{})
	_, err := Open(s.options)
	if err == nil || !strings.Contains(err.Error(), "another process uses the file") {
		t.Fatalf("got %v", err)
	}
	must(t, s.Append(t.Context(), twoEvents("t", 0)))
	must(t, s.Close())
	must(t, second(start(t, s.options).Thread(t.Context(), "t")))
}

// TestUnusableFiles: a file that is not an intact store is refused and not changed.
func TestUnusableFiles(t *testing.T) {
	whole := wholeFile(t)
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(whole)) }
	for name, content := range map[string][]byte{
		"text":          []byte("listen: 127.0.0.1:8080\n"),
		"long text":     bytes.Repeat([]byte("all work and no play\n"), 5000),
		"zeros":         make([]byte, 65536),
		"cut short":     edit(func(b []byte) []byte { return b[:len(b)/2] }),
		"one page":      edit(func(b []byte) []byte { return b[:os.Getpagesize()] }),
		"both metas":    edit(func(b []byte) []byte { clear(b[:2*os.Getpagesize()]); return b }),
		"all else":      edit(func(b []byte) []byte { clear(b[2*os.Getpagesize():]); return b }),
		"another bbolt": otherBolt(t),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			must(t, os.WriteFile(path, content, 0o600))
			s, err := Open(Options{Path: path})
			if err == nil {
				_ = s.Close()
				t.Fatal("it was opened")
			}
			if !strings.Contains(err.Error(), "damaged") && !strings.Contains(err.Error(), "not a session store") {
				t.Errorf("the error does not say what is wrong: %v", err)
			}
			if !strings.HasSuffix(err.Error(), "; see 'dewpoint check-store "+path+"'") || strings.Count(err.Error(), "check-store") != 1 {
				t.Errorf("the error does not say once what to do: %v", err)
			}
			c, err := Check(path)
			if text := strings.Join(c.Damages, "\n"); err != nil || text == "" || strings.Contains(text, "check-store") || strings.Contains(text, "panic") {
				t.Errorf("check says %q, %v", text, err)
			}
			after, err := os.ReadFile(path)
			must(t, err)
			if !bytes.Equal(after, content) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestEmptyFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, os.WriteFile(path, nil, 0o600))
	must(t, start(t, Options{Path: path}).Append(t.Context(), twoEvents("t", 0)))
}

// TestFileWithoutBuckets: a crash can leave a file that was created, but not written to.
func TestFileWithoutBuckets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Close())
	if c, err := Check(path); err != nil || len(c.Damages) > 0 {
		t.Errorf("check: %v, %v", c.Damages, err)
	}
	must(t, start(t, Options{Path: path}).Append(t.Context(), twoEvents("t", 0)))
}

func wholeFile(t *testing.T) []byte {
	t.Helper()
	s := start(t, Options{Content: true})
	for at := 0; at < 400; at += 2 {
		must(t, s.Append(t.Context(), twoEvents("t", at)))
	}
	must(t, s.Close())
	b, err := os.ReadFile(s.options.Path)
	must(t, err)
	return b
}

func otherBolt(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	db, err := bolt.Open(path, 0o600, nil)
	must(t, err)
	must(t, db.Update(func(tx *bolt.Tx) error { return second(tx.CreateBucket([]byte("somebody's"))) }))
	must(t, db.Close())
	b, err := os.ReadFile(path)
	must(t, err)
	return b
}
