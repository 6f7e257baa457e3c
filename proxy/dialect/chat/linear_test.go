package chat

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/proxy/dialect"
)

// deep is n bytes of objects inside each other, members out of order at every level.
func deep(n, levels int) string {
	level := `{"z":1,"a":`
	one := strings.Repeat(level, levels) + "1" + strings.Repeat("}", levels)
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", max(n/len(one), 1)), ",") + "]"
}

// hostileMessages are chat completions of about n bytes whose canonical form is hard to find.
func hostileMessages(n int) map[string]string {
	arguments := func(json string) string {
		return `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"x","arguments":` + strconv.Quote(json) + `}}]}`
	}
	content := func(json string) string { return `{"role":"user","content":` + json + `}` }
	members := func(name func(i int) string) string {
		var b strings.Builder
		for i := 0; b.Len() < n; i++ {
			fmt.Fprintf(&b, `,"%s":%d`, name(i), i)
		}
		return "{" + b.String()[1:] + "}"
	}
	falling := func(i int) string { return fmt.Sprintf("%09d", 999_999_999-i) }
	mixed := func(i int) string { return fmt.Sprintf("%08x", uint32(i)*2654435761) }
	return map[string]string{
		"deep":                     arguments(deep(n, canonDepth-2)),
		"deeper than that":         arguments(deep(n, 400)),
		"one deep object":          arguments(strings.Repeat(`{"a":`, n/6) + "1" + strings.Repeat("}", n/6)),
		"falling names":            arguments(members(falling)),
		"mixed names":              arguments(members(mixed)),
		"one name":                 arguments(members(func(int) string { return "a" })),
		"long common names":        arguments(members(func(i int) string { return strings.Repeat("a", 1000) + mixed(i) })),
		"names in content":         content("[" + members(mixed) + "]"),
		"a long number":            arguments(strings.Repeat("9", n)),
		"numbers":                  arguments("[" + strings.TrimSuffix(strings.Repeat("1e999999,", n/9), ",") + "]"),
		"escapes":                  content(`"` + strings.Repeat(`\u0041`, n/6) + `"`),
		"surrogates":               content(`"` + strings.Repeat(`\ud83d\ude00`, n/12) + `"`),
		"lone surrogates":          content(`"` + strings.Repeat(`\ud800`, n/6) + `"`),
		"escapes in arguments":     arguments(`"` + strings.Repeat(`\\\"`, n/4) + `"`),
		"arguments in arguments":   arguments(strings.Repeat(`\"`, n/2)),
		"many parts":               content("[" + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"a"},`, n/26), ",") + "]"),
		"many calls":               `{"role":"assistant","tool_calls":[` + strings.TrimSuffix(strings.Repeat(`{"id":"a","function":{"name":"x","arguments":"{\"b\":1,\"a\":2}"}},`, n/70), ",") + `]}`,
		"spaces":                   arguments(strings.Repeat(" ", n) + "{}"),
		"a part with many members": content(`[{"type":"text","text":"a",` + members(falling)[1:] + `]`),
	}
}

// TestCanonicalFormIsBounded counts the steps that are more than linear: comparisons while sorting, n log n of them at
// most, and bytes moved, each no more than once a level. And it looks at what is allocated: a few times the size.
func TestCanonicalFormIsBounded(t *testing.T) {
	const n = 1 << 20
	most, worst := 0, ""
	for name, message := range hostileMessages(n) {
		text := []byte(`{"model":"m","messages":[` + message + `]}`)
		w := newSplitter()
		w.begin(New(Options{}), text)
		if err := w.body(); err != nil {
			if refused, ok := errors.AsType[*dialect.Error](err); !ok || refused.Code != dialect.CodeUnsupported {
				t.Errorf("%s: %v", name, err)
			}
			continue // passed on unread
		}
		h := &w.hash
		if limit := canonDepth*len(text) + 4*(len(text)/4)*bits.Len(uint(len(text))); h.canon.steps > limit {
			t.Errorf("%s: %d steps for %d bytes, at most %d expected", name, h.canon.steps, len(text), limit)
		}
		if h.canon.steps > most {
			most, worst = h.canon.steps, name
		}
		if room := cap(h.canon.buf) + cap(h.canon.swap) + cap(h.canon.plain); room > 16*len(text) {
			t.Errorf("%s: %d bytes of room for %d", name, room, len(text))
		}
	}
	if most < n {
		t.Errorf("only %d steps (%s): are they counted?", most, worst)
	}
	t.Logf("the worst is %q: %d steps for %d bytes", worst, most, n)
}
