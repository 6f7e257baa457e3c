package boltstore

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// recoveryOf returns the content of a store's recovery file.
func recoveryOf(t *testing.T, path string) (c recoveryContent) {
	t.Helper()
	b, err := os.ReadFile(path + ".recovery")
	must(t, err)
	must(t, json.Unmarshal(b, &c))
	return c
}

// crashed records starts that did not finish.
func crashed(t *testing.T, path string, starts int) {
	t.Helper()
	r, err := readRecovery(&Options{Path: path})
	must(t, err)
	must(t, r.change(func(c *recoveryContent) { c.Crashes = starts }))
}

// TestRecoveryFileFollowsTheDatabase: the recovery file has each change at once, and a start corrects it. The database is authoritative,
// even if it was copied from elsewhere; only a new one takes its values from the file.
func TestRecoveryFileFollowsTheDatabase(t *testing.T) {
	s := start(t, Options{})
	path := s.options.Path
	want := func(secret string, settings ...string) {
		t.Helper()
		c := recoveryOf(t, path)
		var found []string
		for name, value := range c.Settings {
			found = append(found, name+"="+string(value))
		}
		slices.Sort(found)
		if string(c.Secret) != secret || !slices.Equal(found, settings) || c.Crashes != 0 || c.Damage != "" {
			t.Errorf("the recovery file has %+v, want %s and %v", c, secret, settings)
		}
	}
	want("")
	must(t, second(s.Secret(t.Context(), session.Secret("first"))))
	must(t, s.Set(t.Context(), "a", []byte("1")))
	must(t, s.Set(t.Context(), "b", []byte("2")))
	must(t, s.Set(t.Context(), "a", nil))
	want("first", "b=2")
	must(t, s.Close())

	must(t, os.WriteFile(path+".recovery", []byte(`{"secret":"c3RhbGU=","settings":{"a":"MQ=="}}`), 0o600))
	must(t, start(t, s.options).Close())
	want("first", "b=2")
	must(t, os.Remove(path+".recovery"))
	must(t, start(t, s.options).Close())
	want("first", "b=2")

	other := start(t, Options{})
	must(t, second(other.Secret(t.Context(), session.Secret("second"))))
	must(t, other.Close())
	must(t, os.Rename(other.options.Path, path))
	must(t, start(t, s.options).Close())
	want("second")
	must(t, os.Remove(path))
	must(t, start(t, s.options).Close())
	want("second")
}

// TestUnwritableRecoveryFile: if the recovery file cannot be written, the store works, and the start warns the operator.
func TestUnwritableRecoveryFile(t *testing.T) {
	d := &damagedFile{t: t}
	path := filepath.Join(t.TempDir(), "store.db")
	must(t, os.Mkdir(path+".recovery.part", 0o700))
	must(t, os.WriteFile(filepath.Join(path+".recovery.part", "x"), nil, 0o600))
	s := d.open(path)
	if len(d.told) != 1 || !strings.Contains(d.told[0], path+".recovery") {
		t.Errorf("told %q", d.told)
	}
	must(t, second(s.Secret(t.Context(), session.Secret(theSecret))))
	must(t, s.Set(t.Context(), "override", []byte(theSetting)))
	must(t, works(t, s))
	must(t, s.Close())
	must(t, os.RemoveAll(path+".recovery.part"))
	s = d.open(path)
	must(t, s.Close())
	if c := recoveryOf(t, path); string(c.Secret) != theSecret || len(d.told) != 1 {
		t.Errorf("%+v, told %q", c, d.told)
	}
}

// TestDamagedRecoveryFile: a recovery file that cannot be decoded is renamed. If it cannot be read, the start fails, because a new one
// would replace it.
func TestDamagedRecoveryFile(t *testing.T) {
	d := &damagedFile{t: t, whole: filled(t)}
	path := d.copied()
	must(t, os.WriteFile(path+".recovery", []byte("{garbage"), 0o600))
	s := d.open(path)
	must(t, works(t, s))
	must(t, s.Close())
	aside, err := filepath.Glob(path + ".recovery.damaged-*")
	must(t, err)
	if len(aside) != 1 || len(d.told) != 1 || !strings.Contains(d.told[0], aside[0]) {
		t.Errorf("renamed %q, told %q", aside, d.told)
	}
	if c := recoveryOf(t, path); string(c.Secret) != theSecret {
		t.Errorf("%+v", c)
	}
	must(t, os.Remove(path+".recovery"))
	must(t, os.Mkdir(path+".recovery", 0o700))
	if _, err := Open(Options{Path: path}); err == nil || !strings.Contains(err.Error(), path+".recovery") {
		t.Errorf("got %v", err)
	}
}

// TestThirdStart: after two successive starts that did not finish, the third renames the file. A start that finishes resets the count, and
// one that is refused does not count.
func TestThirdStart(t *testing.T) {
	quick.Skip(t)
	d := &damagedFile{t: t, whole: filled(t)}
	path := d.copied()
	crashed(t, path, 1)
	s := d.open(path)
	if c := recoveryOf(t, path); len(d.told) > 0 || c.Crashes != 0 {
		t.Errorf("after one crash: told %q, %d crashes", d.told, c.Crashes)
	}
	for range maxCrashes {
		if _, err := Open(Options{Path: path}); !errors.Is(err, ErrInUse) {
			t.Errorf("got %v", err)
		}
	}
	if c := recoveryOf(t, path); c.Crashes != 0 {
		t.Errorf("%d starts that were refused count as crashes", c.Crashes)
	}
	must(t, s.Close())
	for round := range 3 { // within a second, so that the names would be the same
		crashed(t, path, maxCrashes)
		s = d.open(path)
		must(t, works(t, s))
		must(t, s.Close())
		d.onlyTheLastIsLeft(path)
		if len(d.told) != round+1 || !strings.Contains(d.told[round], "2 starts in a row") {
			t.Errorf("told %q", d.told)
		}
	}
}

// TestOtherFilesAreLeft: files that the store did not rename are neither deleted nor replaced, whatever their names.
func TestOtherFilesAreLeft(t *testing.T) {
	d := &damagedFile{t: t, whole: filled(t)}
	path := d.copied()
	now := time.Now().UTC().Format(damagedTime)
	ours := []string{path + ".damaged-20260102T030405Z", path + ".damaged-20260102T030405Z-12", path + ".damaged-" + now}
	others := []string{path + ".damaged-20260102T030405Z-kept", path + ".damaged-kept", path + ".damaged", path + ".recovery.damaged-20260102T030405Z", path + "2.damaged-20260102T030405Z"}
	for _, name := range slices.Concat(ours, others) {
		must(t, os.WriteFile(name, []byte("text"), 0o600))
	}
	crashed(t, path, maxCrashes)
	must(t, d.open(path).Close())
	for _, name := range ours {
		if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v, want it deleted", name, err)
		}
	}
	for _, name := range others {
		must(t, second(os.Lstat(name)))
	}
	if len(d.told) != 1 || strings.Contains(d.told[0], " is now "+ours[2]+":") {
		t.Errorf("told %q", d.told)
	}
}

// TestStartsAtOnce: if many processes start at the same time, one gets the file, and none of the others counts as a crash or renames it.
func TestStartsAtOnce(t *testing.T) {
	d := &damagedFile{t: t, whole: filled(t)}
	path := d.copied()
	var all sync.WaitGroup
	opened := make(chan *Store, 20)
	for range cap(opened) {
		all.Go(func() {
			s, err := Open(Options{Path: path, Warn: func(message string, err error) { t.Errorf("%s: %v", message, err) }})
			if err == nil {
				opened <- s
			} else if !errors.Is(err, ErrInUse) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(opened) != 1 {
		t.Fatalf("%d processes have the file", len(opened))
	}
	s := <-opened
	must(t, works(t, s))
	must(t, s.Close())
	if c := recoveryOf(t, path); c.Crashes != 0 {
		t.Errorf("%d crashes", c.Crashes)
	}
}

// starting passes the file to a process that opens it, and may crash.
const starting = "BOLTSTORE_TEST_OPEN"

func openAndExit(path string) {
	debug.SetMaxStack(1 << 20) // so that a page which refers to itself ends the process sooner
	s, err := Open(Options{Path: path, Warn: func(message string, err error) { fmt.Println(message, err) }})
	if err == nil {
		err = s.Close()
	}
	fmt.Println(err)
	os.Exit(0)
}

// TestThirdStartRenamesAFileThatCrashesBbolt: bbolt follows a page that refers to itself until the stack overflows, which ends the process. The
// third start sets the file aside.
func TestThirdStartRenamesAFileThatCrashesBbolt(t *testing.T) {
	d := &damagedFile{t: t, whole: filled(t)}
	path := d.copied()
	b, err := os.ReadFile(path)
	must(t, err)
	const flags, elements, branch = 8, 16, 1 // of a page; an element has the child's number in its last 8 bytes of 16
	for page := range slices.Chunk(b, os.Getpagesize()) {
		if binary.NativeEndian.Uint16(page[flags:]) == branch {
			copy(page[elements+8:], page[:8]) // its first child is itself
		}
	}
	must(t, os.WriteFile(path, b, 0o600))
	for n := range 3 {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), starting+"="+path)
		out, err := child.CombinedOutput()
		if n < maxCrashes {
			if err == nil || recoveryOf(t, path).Crashes != n+1 {
				t.Fatalf("start %d did not crash: %s", n+1, out)
			}
			continue
		}
		if err != nil || !strings.Contains(string(out), "2 starts in a row") {
			t.Fatalf("start %d: %v\n%s", n+1, err, out)
		}
	}
	must(t, works(t, d.open(path)))
	aside, err := filepath.Glob(path + ".damaged-*")
	must(t, err)
	if len(aside) != 1 {
		t.Fatalf("renamed %q", aside)
	}
	if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, b) {
		t.Errorf("the renamed file was changed (%v)", err)
	}
}

// TestUnknownFiles: a file with too few signs that it was a store is refused. It is not changed, and no other file is left next to it.
func TestUnknownFiles(t *testing.T) {
	whole, err := os.ReadFile(filled(t))
	must(t, err)
	size := os.Getpagesize()
	edit := func(f func(b []byte) []byte) []byte { return f(bytes.Clone(whole)) }
	foreign := map[string][]byte{
		"text":      []byte("listen: 127.0.0.1:8080\n"),
		"long text": bytes.Repeat([]byte("all work and no play\n"), 5000),
		"SQLite":    append([]byte("SQLite format 3\x00\x10\x00\x01\x01"), make([]byte, 8<<10)...),
	}
	unknown := map[string][]byte{
		"zeros":                   make([]byte, 65536),
		"one page":                whole[:size],
		"archive":                 append(bytes.Repeat([]byte("x"), 512), whole...),
		"another bbolt, cut":      otherBolt(t, nil)[:3*size],
		"an earlier version":      edit(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(format), []byte(formatName+"2")) }),
		"a later version":         edit(func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(format), []byte(formatName+"9")) }),
		"another bbolt":           otherBolt(t, nil),
		"another bbolt, unsynced": otherBolt(t, &bolt.Options{NoFreelistSync: true}),
	}
	f := func(name string, content []byte, recovery []byte) {
		t.Helper()
		path := filepath.Join(t.TempDir(), "store.db")
		must(t, os.WriteFile(path, content, 0o600))
		if recovery != nil {
			must(t, os.WriteFile(path+".recovery", recovery, 0o600))
		}
		for range maxCrashes + 1 {
			unlock(t, path)
			s, err := Open(Options{Path: path, Warn: func(message string, err error) { t.Errorf("%s: %s: %v", name, message, err) }})
			if err == nil {
				_ = s.Close()
				t.Fatalf("%s was opened", name)
			}
			if !strings.Contains(err.Error(), "not a session store") || errors.Is(err, session.ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, content) {
			t.Errorf("%s was changed (%v)", name, err)
		}
		if after, _ := os.ReadFile(path + ".recovery"); !bytes.Equal(after, recovery) {
			t.Errorf("%s: the recovery file is %s", name, after)
		}
		if _, err := os.Lstat(path + ".lock"); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a lock file is left (%v)", name, err)
		}
	}
	for name, content := range unknown {
		f(name, content, nil)
	}
	kept, err := json.MarshalIndent(recoveryContent{Format: format, Secret: []byte(theSecret)}, "", "  ")
	must(t, err)
	for name, content := range foreign {
		f(name, content, nil)
		f(name+" in place of a store", content, kept)
	}
	killed, err := json.MarshalIndent(recoveryContent{Crashes: maxCrashes}, "", "  ") // our own count is no sign of a store
	must(t, err)
	for _, name := range []string{"another bbolt", "zeros", "SQLite"} {
		f(name+" after killed starts", slices.Concat(unknown[name], foreign[name]), killed)
	}
	f("a later version of the store", unknown["a later version"], kept)
	f("another bbolt in place of a store", unknown["another bbolt"], kept)
}

// TestTwoSignsOfAStore: a damaged file that begins like a bbolt file or with zeros, and has a store's format record, is renamed even if there
// is no recovery file. A recovery file that names a format counts as one of the two signs.
func TestTwoSignsOfAStore(t *testing.T) {
	whole, err := os.ReadFile(filled(t))
	must(t, err)
	for name, damage := range map[string]func([]byte) []byte{
		"cut":                   func(b []byte) []byte { return b[:bytes.LastIndex(b, []byte(format))+len(format)] },
		"without its beginning": func(b []byte) []byte { clear(b[:2*os.Getpagesize()]); return b },
		"an unreadable format": func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(format), []byte("dewpoint session st\x00re 2"))
		},
	} {
		damaged := damage(bytes.Clone(whole))
		path := filepath.Join(t.TempDir(), "store.db")
		must(t, os.WriteFile(path, damaged, 0o600))
		d := &damagedFile{t: t}
		if name == "an unreadable format" { // the recovery file is the second sign
			must(t, os.WriteFile(path+".recovery", []byte(`{"format":"`+format+`"}`), 0o600))
		}
		must(t, d.open(path).Close())
		aside, err := filepath.Glob(path + ".damaged-*")
		must(t, err)
		if len(aside) != 1 {
			t.Fatalf("%s: renamed %q", name, aside)
		}
		if kept, err := os.ReadFile(aside[0]); err != nil || !bytes.Equal(kept, damaged) {
			t.Errorf("%s: the renamed file was changed (%v)", name, err)
		}
	}
}

// TestContains: a text is found even if it crosses the blocks in which the file is read.
func TestContains(t *testing.T) {
	for _, at := range []int{0, 5, 1<<20 - 3, 1 << 20, 1<<20 + 1, 2<<20 - 4, 3<<20 - 4} {
		b := make([]byte, 3<<20)
		if contains(bytes.NewReader(b), "text") {
			t.Error("found what is not there")
		}
		copy(b[at:], "text")
		if !contains(bytes.NewReader(b), "text") {
			t.Errorf("not found at %d", at)
		}
	}
}
