package terminal

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// emulated returns a screen of n columns that writes to out, with these environment variables.
func emulated(out *bytes.Buffer, n int, env ...string) Screen {
	return Emulated(out, func() int { return n }, func(name string) string {
		for _, e := range env {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	})
}

func TestFilesAndPipesAreNoTerminals(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	for _, f := range []*os.File{file, null, write} {
		s := Of(f, os.Getenv)
		if s.IsTerminal() || s.Columns() != 0 || s.Paint(Red, "x") != "x" {
			t.Errorf("%s is taken for a terminal", f.Name())
		}
		p := NewProgress(s, "working", 2)
		p.Add(2)
		p.End()
	}
	if text, err := os.ReadFile(file.Name()); err != nil || len(text) > 0 {
		t.Errorf("progress in a file: %q, %v", text, err)
	}
}

func TestColoursAreOffWhereTheyAreNotWanted(t *testing.T) {
	for env, want := range map[string]string{
		"TERM=xterm": "\x1b[31mx\x1b[0m", "NO_COLOR=1": "x", "NO_COLOR=": "\x1b[31mx\x1b[0m", "TERM=dumb": "x",
	} {
		if got := emulated(&bytes.Buffer{}, 80, env).Paint(Red, "x"); got != want {
			t.Errorf("%s: %q, want %q", env, got, want)
		}
	}
}

func TestTextFromOutsideCannotMoveTheCursor(t *testing.T) {
	const hostile = "a\x1b[2J\x1b]0;title\a\r\n\b\x7f\u009b31m\u202eb\xff\u200dé日"
	if got, want := Clean(hostile), "a?[2J?]0;title??????31m?b??é日"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := Name(hostile), "a?[2J?]0;title??????31m?b????"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestTextFitsItsColumns(t *testing.T) {
	for n, want := range map[int]string{9: "gpt 4o mi", 8: "gpt 4o…", 5: "gpt…", 1: "…", 0: ""} {
		if got := Clip("gpt 4o mi", n); got != want {
			t.Errorf("%d columns: %q, want %q", n, got, want)
		}
	}
	if got := Wrap("by price, with excerpts: http://127.0.0.1:8080/v1 is  long", 12); !slices.Equal(got, []string{
		"by price,", "with", "excerpts:", "http://127.0.0.1:8080/v1", "is long"}) {
		t.Errorf("%q", got)
	}
}

// TestProgress follows work on a terminal whose clock the test moves.
func TestProgress(t *testing.T) {
	now := time.Unix(1e9, 0)
	var out bytes.Buffer
	shown := func() string {
		defer out.Reset()
		return strings.ReplaceAll(out.String(), "\r\x1b[K", "|")
	}
	want := func(says string) {
		t.Helper()
		if got := shown(); got != says {
			t.Errorf("%q, want %q", got, says)
		}
	}
	columns := 70
	s := Emulated(&out, func() int { return columns }, os.Getenv)
	s.escapes = true
	p := newProgress(s, "replaying", 200, func() time.Time { return now })
	want("|replaying [-------------------]: 0 of 200, 0%")
	p.Add(1)
	want("") // so soon
	now = now.Add(redrawEvery)
	p.Add(49)
	want("|replaying [####---------------]: 50 of 200, 25%")
	now, columns = now.Add(10*time.Second), 48
	p.Add(50)
	want("|replaying: 100 of 200, 50%, about 10 s left") // no room for the bar
	columns = 24
	p.Add(100)
	want("|replaying: 200 of 200,…") // the last part is shown at once
	p.End()
	p.End()
	want("|")
	p = newProgress(s, "checking", 0, func() time.Time { return now })
	now = now.Add(time.Minute)
	p.Add(7)
	want("|checking: 0|checking: 7")
}
