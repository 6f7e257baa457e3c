package watch

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestChanged changes files in every way. Each change is reported once, when the files have stayed as they are for two looks.
func TestChanged(t *testing.T) {
	dir := t.TempDir()
	a, b, link := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "link")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	age := time.Unix(1_700_000_000, 0)
	write := func(name, text string) {
		t.Helper()
		must(os.WriteFile(name, []byte(text), 0o600))
		must(os.Chtimes(name, age, age))
	}
	write(a, "one")
	must(os.Symlink(a, link))
	paths := []string{link, b}
	f := New(func() []string { return paths })
	for range 2 {
		if f.Changed() {
			t.Error("there was no change")
		}
	}
	for _, step := range []struct {
		name   string
		change func()
	}{
		{"written", func() { write(a, "longer") }},
		{"older", func() { must(os.Chtimes(a, age, age.Add(-time.Nanosecond))) }},
		{"readable", func() { must(os.Chmod(a, 0o644)) }},
		{"created", func() { write(b, "longer") }},
		{"replaced by a file of the same size and age", func() { must(os.Rename(b, a)); write(b, "longer") }},
		{"turned", func() { must(os.Remove(link)); must(os.Symlink(b, link)) }},
		{"removed", func() { must(os.Remove(b)) }},
		{"named", func() { paths = append(paths, dir) }},
		{"in a folder", func() { write(b+"b", "") }},
	} {
		step.change()
		for look := range 4 {
			if f.Changed() != (look == 1) {
				t.Errorf("%s: not reported once, at the second look", step.name)
			}
		}
	}
	for i := range 5 {
		write(b, string(make([]byte, i)))
		if f.Changed() {
			t.Error("a change is reported while files are written")
		}
	}
	if !f.Changed() {
		t.Error("a change is not reported after the last write")
	}
}
