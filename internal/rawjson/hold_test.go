package rawjson_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

// TestMayHold writes a word with any of its characters escaped.
func TestMayHold(t *testing.T) {
	const word = "compaction.1"
	property.Check(t, func(rt *rapid.T) {
		var spelt strings.Builder
		for _, c := range word {
			format := rapid.SampledFrom([]string{"%c", `\u%04x`, `\u%04X`}).Draw(rt, "spelling")
			fmt.Fprintf(&spelt, format, c)
		}
		text := `{"` + rapid.StringMatching(`(\\u003c|<| |\\n){0,9}`).Draw(rt, "before") + spelt.String() + `":1}`
		if !rawjson.MayHold([]byte(text), word) {
			rt.Fatalf("%s holds %s", text, word)
		}
	})
	for i, c := range word {
		if text := word[:i] + fmt.Sprintf(`\u%04x`, c) + word[i+1:]; !rawjson.MayHold([]byte(text), word) {
			t.Errorf("%s holds %s", text, word)
		}
	}
	for _, text := range []string{``, `"compaction"`, `"\u003ccompaction.\u003e"`, `"\u00`, `"\u006`, `"\u00zz"`, `"\n\t\/"`} {
		if rawjson.MayHold([]byte(text), word) {
			t.Errorf("%s does not hold %s", text, word)
		}
	}
}
