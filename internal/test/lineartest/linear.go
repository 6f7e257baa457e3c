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
	small   = 2 << 10 // bytes of the smaller text
	growth  = 8       // ratio of the sizes of the two texts
	most    = 12      // largest ratio of the times that passes at once
	further = 32      // ratio of the sizes in a second measurement
	decides = 128     // largest accepted ratio of its times; quadratic work takes 1024 times as long
	atLeast = 3       // runs of each size
	atMost  = 50      // runs of each size before a parser fails: on a busy machine the fastest run comes late, as caches are cold

	resolution = 5 * time.Microsecond // shorter times count as this
)

// Check fails if read takes more than linear time for any of Shapes. It compares the time for a text of 16 KB with that for a text of 2 KB. If
// the ratio exceeds 12, which processor caches alone can cause, it measures a text of 64 KB as well, which may take 128 times as long as the
// smallest one; quadratic work takes 1024 times as long. Runs of both sizes alternate, and the least processor time of each counts, so a busy
// machine makes the test slower but does not change its result. read must not start goroutines.
func Check(t *testing.T, read func(text string)) {
	t.Helper()
	large := Shapes(growth * small)
	for name, text := range Shapes(small) {
		if ratio(read, text, large[name], most) <= most {
			continue
		}
		if r := ratio(read, text, Shapes(further * small)[name], decides); r > decides {
			t.Errorf("%q: %d times the input takes %.0f times as long", name, further, r)
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
		if r := float64(least[1]) / float64(least[0]); run >= atMost || run >= atLeast && r <= most {
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
