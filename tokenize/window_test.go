package tokenize

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

func byWindows(v *vocabulary, piece string, size int) []uint32 {
	out := tokens{keep: true}
	(&merger{}).mergeWindows(v, piece, size, &out)
	return out.ids
}

func TestWindowsEqualWhole(t *testing.T) {
	quick.Alone(t)
	for _, s := range eachSubject(t) {
		for name, text := range hostile(3 * windowBytes) {
			whole := byWindows(s.vocabulary, text, len(text))
			for _, size := range []int{64, 1000, windowBytes} {
				if got := byWindows(s.vocabulary, text, size); !slices.Equal(got, whole) {
					t.Errorf("%s, %s: windows of %d give %d tokens, the whole gives %d", s.Name(), name, size, len(got), len(whole))
				}
			}
		}
	}
}

// Windows of a few bytes often do not line up; then longer ones must give the right result. Because by chance all random texts might line up,
// or none, one of each kind is always tried.
func TestWindowsThatDoNotLineUpGrow(t *testing.T) {
	all := eachSubject(t)
	for _, s := range all {
		for text, want := range map[string]bool{"ababababab": true, "=-===--=-": false} {
			if joined := (&merger{}).tryWindows(s.vocabulary, text, 8, &tokens{}); joined != want {
				t.Fatalf("%s, %s: windows of 8 join: %v", s.Name(), text, joined)
			}
			windowsEqualWhole(t, s, text, 8)
		}
	}
	property.Check(t, func(t *rapid.T) {
		letters := rapid.SampledFrom([]string{"ab", "eistn", "=-", "etaoinshr", " \t", "中文的", "ACGT"}).Draw(t, "letters")
		text := rapid.StringOfN(rapid.RuneFrom([]rune(letters)), 1, 400, -1).Draw(t, "text")
		size := rapid.IntRange(8, 40).Draw(t, "size")
		for _, s := range all {
			windowsEqualWhole(t, s, text, size)
		}
	})
}

func windowsEqualWhole(t rapid.TB, s subject, text string, size int) {
	t.Helper()
	if got, whole := byWindows(s.vocabulary, text, size), byWindows(s.vocabulary, text, len(text)); !slices.Equal(got, whole) {
		t.Fatalf("%s: windows of %d give %q, the whole gives %q", s.Name(), size, s.spell(got), s.spell(whole))
	}
}

func TestWindowsKeepWhatWasThere(t *testing.T) {
	s := eachSubject(t)[0]
	text := strings.Repeat("etaoin", 40)
	out := tokens{n: 2, ids: []uint32{1, 2}, keep: true}
	(&merger{}).mergeWindows(s.vocabulary, text, 8, &out)
	whole := byWindows(s.vocabulary, text, len(text))
	if !slices.Equal(out.ids, append([]uint32{1, 2}, whole...)) || out.n != len(out.ids) {
		t.Errorf("got %d tokens %v", out.n, out.ids)
	}
}
