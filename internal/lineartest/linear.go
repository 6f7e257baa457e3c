// Package lineartest checks that parsers of text take linear time.
package lineartest

import (
	"runtime"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

const (
	growth  = 8       // ratio of the sizes of the two texts
	most    = 12      // largest accepted ratio of the times
	small   = 2 << 10 // bytes of the smaller text
	again   = 4       // factor by which the texts of a second measurement are longer
	atLeast = 3       // runs of each size
	atMost  = 100     // runs of each size before a parser more than twice too slow fails
	longest = 1000    // runs of each size before any slow parser fails: on a busy machine the fastest run comes late, as caches are cold

	resolution = 5 * time.Microsecond // shorter times count as this
)

// Check fails if reading a text of 16 KB takes more than 12 times as long as reading one of 2 KB, for any of Shapes. Runs
// of both sizes alternate, and the least processor time of each counts, so a busy machine makes the test slower, not wrong. The
// parser must not start goroutines. For one slightly above the bound, a second measurement with longer texts decides.
func Check(t *testing.T, read func(text string)) {
	t.Helper()
	large := Shapes(growth * small)
	for name, text := range Shapes(small) {
		r := ratio(read, text, large[name], most)
		if r > most && r <= 2*most { // processor caches can cause this; superlinear time shows more with longer texts
			r = ratio(read, Shapes(again * small)[name], Shapes(again * growth * small)[name], most)
		}
		if r > most {
			t.Errorf("%q: %d times the input takes %.1f times as long", name, growth, r)
		}
	}
}

// Compare fails if reading the long text takes more than most times as long as reading the short one. It measures like Check.
func Compare(t *testing.T, read func(text string), short, long string, most float64) {
	t.Helper()
	if r := ratio(read, short, long, most); r > most {
		t.Errorf("reading %d bytes takes %.1f times as long as reading %d, want at most %v", len(long), r, len(short), most)
	}
}

func ratio(read func(string), short, long string, most float64) float64 {
	// The collector starts after a fixed amount of allocation: in every run of a long text, but in few runs of a short one.
	// A larger heap keeps it out of some runs of both.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	least := [2]time.Duration{time.Hour, time.Hour}
	for run := 1; ; run++ {
		for i, text := range [...]string{short, long} {
			begun := cpuTime()
			read(text)
			least[i] = min(least[i], max(cpuTime()-begun, resolution))
		}
		if r := float64(least[1]) / float64(least[0]); run >= longest || run >= atMost && r > 2*most || run >= atLeast && r <= most {
			return r
		}
	}
}

// Shapes returns texts of about n bytes that are hard to parse: repeated, nested and unclosed units.
func Shapes(n int) map[string]string {
	shapes := map[string]string{"random words": words(n)}
	for _, unit := range []string{
		"a", "A", "1", " ", "\n", "\r\n", "=", "-", "_", ".", "#", "/", ":", "中", "😀", "e\u0301\u0327\u0489", "\u200b", "\u0301", "\U0001d400", "\xff", "'", "\"",
		"\\", "\\\"", "\\u0041", "\x1b[31m", "\x1b[2Kx", "\x1b]0;x", "a\rb", "ab\b", "`", "```", "```\n", "```go\nx\n```\n", "{", "}", "[", "]", "{}", "{\"a\":", "[[],", "(", "<", ">", "</", "<!", "<\u200b", "<|", "|>", "|",
		"<env>", "</env>", "<env></env>", "<env>x</env>\n", "<bash-stdout>", "</bash-stdout>", "<think>", "</think>", "<think>\n", "\n</think>\n", "<dewpoint_record>",
		"<dewpoint_", "[INST]", "[/", "System:", "\nSystem:", "\n> ", "> ", "**", "\n**System:**", "### ", "a/b.go ", "/a", "a://", "://", "a://b ", "ABC-1 ",
		"data: {}\n\n", "data:", "data: \n", ": \n", "event: a\n", "tokens ", "1 tokens", "maximum context length is ", "[...]", "\x00", "\x1b[0m",
	} {
		shapes[unit] = strings.Repeat(unit, n/len(unit)+1)
	}
	for _, pair := range [][2]string{{"<env>", "</env>"}, {"<think>\n", "\n</think>\n"}, {"[", "]"}, {"{\"a\":[", "]}"}, {"<<", ">>"}, {"\"", "\""}} {
		half := n / (2 * max(len(pair[0]), len(pair[1])))
		shapes[pair[0]+" nested"] = strings.Repeat(pair[0], half) + "x" + strings.Repeat(pair[1], half)
		shapes[pair[0]+" unclosed before text"] = pair[0] + words(n)
	}
	return shapes
}

// words returns about n bytes of ordinary text.
func words(n int) string {
	var b strings.Builder
	for state := uint32(7); b.Len() < n; {
		state = state*1664525 + 1013904223
		for range 2 + state>>29 {
			state = state*1664525 + 1013904223
			b.WriteByte("abcdefghijklmnopqrstuvwxyz"[(state>>24)%26])
		}
		b.WriteByte(" \n"[(state>>16&7)/7])
	}
	return b.String()
}
