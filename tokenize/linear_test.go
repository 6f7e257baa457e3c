package tokenize

import (
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// hostile returns texts of n bytes that are one piece, or in which a splitter has to go back.
func hostile(n int) map[string]string {
	units := map[string]string{
		"letter": "a", "capital": "A", "space": " ", "line": "\n", "sign": "=", "digit": "1", "mark": "\u0301", "han": "中", "emoji": "😀",
		"pair": "ab", "triple": "xyz", "space line": " \n", "line space": "\n ", "tab": "\t", "apostrophe": "'", "slash": "/", "modifier": "ʰ",
		"mark capital": "\u0301A", "camel": "aB", "title": "ǅ", "invalid": "\xff", "contraction": "'s",
	}
	texts := map[string]string{}
	for name, unit := range units {
		texts[name] = strings.Repeat(unit, n/len(unit))
	}
	capitals := strings.Repeat("A", n)
	texts["mark, capitals"] = "\u0301" + capitals
	texts["modifier, capitals"] = "ʰ" + capitals
	texts["capitals, modifier"] = capitals + "ʰ!"
	texts["capitals, small"] = capitals + "a"
	texts["spaces, letter"] = strings.Repeat(" ", n) + "x"
	texts["line, spaces"] = "\n" + strings.Repeat(" ", n) + "x"
	texts["signs, line"] = strings.Repeat("!", n) + "\n"
	random := rand.New(rand.NewPCG(8, 9))
	letters := make([]byte, n)
	for i := range letters {
		letters[i] = byte('a' + random.IntN(26))
	}
	texts["random letters"] = string(letters)
	return texts
}

// Splitting half a million bytes of any kind takes very little time; if the cost were quadratic, the test would time out.
func TestSplitIsLinear(t *testing.T) {
	for _, s := range eachSubject(t) {
		for name, text := range hostile(1 << 19) {
			end := 0
			for end < len(text) {
				next := s.split(s.classes, text, end)
				if next <= end || next > len(text) {
					t.Fatalf("%s, %s: a piece from %d to %d of %d", s.Name(), name, end, next, len(text))
				}
				end = next
			}
		}
	}
}

// Merging a piece of n bytes walks at most 3n log2(n) levels of the tree, in one window and in many.
func TestMergeIsLinearithmic(t *testing.T) {
	quick.Alone(t)
	const n = 1 << 15
	for _, s := range eachSubject(t) {
		for name, text := range hostile(n) {
			m := &merger{}
			var out tokens
			m.mergeWindows(s.vocabulary, text, windowBytes, &out)
			// Each window except the last contributes 7/8 of its bytes to the result, less a part of a token.
			if most := 3 * len(text) * bits.Len(windowBytes) * 5 / 4; m.steps > most {
				t.Errorf("%s, %s: %d steps by windows, at most %d expected", s.Name(), name, m.steps, most)
			}
			if m.capacity() > windowBytes {
				t.Errorf("%s, %s: windows of %d bytes do not settle it", s.Name(), name, windowBytes)
			}
			m.steps = 0
			m.merge(s.vocabulary, text)
			if most := 3 * len(text) * bits.Len(uint(len(text))); m.steps > most {
				t.Errorf("%s, %s: %d steps at once, at most %d expected", s.Name(), name, m.steps, most)
			}
			if name == "letter" && m.steps < n {
				t.Errorf("%s: only %d steps: are they counted?", s.Name(), m.steps)
			}
		}
	}
}
