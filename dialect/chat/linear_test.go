package chat

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// deepest is the limit of nesting for arguments and parts that are compared as JSON.
const deepest = 64

// deep returns about n bytes of nested objects, with members out of order at every level.
func deep(n, levels int) string {
	level := `{"z":1,"a":`
	one := strings.Repeat(level, levels) + "1" + strings.Repeat("}", levels)
	return "[" + strings.TrimSuffix(strings.Repeat(one+",", max(n/len(one), 1)), ",") + "]"
}

// hostileMessages returns messages of about n bytes whose canonical form is expensive.
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
		"deep":                     arguments(deep(n, deepest-2)),
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

// TestCanonicalFormIsBounded checks the work that is not linear in the size n: sorting makes at most n log n comparisons and moves each byte
// at most once per level. Allocations are limited to a few times the size.
func TestCanonicalFormIsBounded(t *testing.T) {
	const n = 1 << 18
	most, worst := 0, ""
	for name, message := range hostileMessages(n) {
		text := []byte(`{"model":"m","messages":[` + message + `]}`)
		var steps, room int
		_, err := New(Options{}).bodies.Split(text, func(w *split.Walker, _ *dialect.Request) { steps, _, room = w.Digest.Work() })
		if err != nil {
			if refused, ok := errors.AsType[*dialect.Error](err); !ok || refused.Code != dialect.CodeUnsupported {
				t.Errorf("%s: %v", name, err)
			}
			continue // forwarded without being read
		}
		if limit := deepest*len(text) + 4*(len(text)/4)*bits.Len(uint(len(text))); steps > limit {
			t.Errorf("%s: %d steps for %d bytes, at most %d expected", name, steps, len(text), limit)
		}
		if steps > most {
			most, worst = steps, name
		}
		if room > 16*len(text) {
			t.Errorf("%s: %d bytes of room for %d", name, room, len(text))
		}
	}
	if most < n {
		t.Errorf("only %d steps (%s): are they counted?", most, worst)
	}
	t.Logf("the worst is %q: %d steps for %d bytes", worst, most, n)
}

// TestKnownMessagesAreNotHashed checks that a step of a session hashes about as many bytes as its new messages have, however
// many came before.
func TestKnownMessagesAreNotHashed(t *testing.T) {
	d := New(Options{Remember: 8 << 20})
	hashed := func(body string) int {
		n := 0
		if _, err := d.bodies.Split([]byte(body), func(w *split.Walker, _ *dialect.Request) { _, n, _ = w.Digest.Work() }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const said = `{"role":"user","content":"message %08d of a conversation that goes on for some time"}`
	body := `{"model":"m","messages":[` + fmt.Sprintf(said, 0)
	for i := 1; i < 1000; i++ {
		body += "," + fmt.Sprintf(said, i)
	}
	if n := hashed(body + `]}`); n < 60*1000 {
		t.Errorf("%d bytes were hashed of 1000 messages: are they counted?", n)
	}
	for i := 1000; i < 1010; i += 2 {
		body += "," + fmt.Sprintf(said, i) + "," + fmt.Sprintf(said, i+1)
		if n := hashed(body + `]}`); n > 2*2*len(said) {
			t.Errorf("two new messages after %d: %d bytes were hashed", i, n)
		}
	}
}

// BenchmarkDigest computes the digest of one message of several sizes.
func BenchmarkDigest(b *testing.B) {
	for _, size := range []int{100, 1000, 100_000} {
		for name, content := range map[string]string{
			"plain": strings.Repeat("x", size), "escapes": strings.Repeat(`a line\n\t`, size/10), "long-escapes": strings.Repeat(`\u00e9t\u00e9 `, size/14),
		} {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				body := []byte(`{"messages":[{"role":"user","content":"` + content + `"}]}`)
				_, err := New(Options{}).bodies.Split(body, func(w *split.Walker, r *dialect.Request) {
					m := split.Read(rawjson.ValueOf(r.Messages[0].Raw), messageKeys)
					b.SetBytes(int64(len(content)))
					b.ReportAllocs()
					for b.Loop() {
						if digest(&w.Digest, &m, "user") != r.Messages[0].Digest {
							b.Fatal("another digest")
						}
					}
				})
				if err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}

// BenchmarkSplice joins a view that keeps every second message.
func BenchmarkSplice(b *testing.B) {
	for _, n := range []int{20, 200, 5000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			one := `{"role":"user","content":"` + strings.Repeat("x", 1000) + `"}`
			d := New(Options{})
			r, err := d.Split("", []byte(`{"model":"m","messages":[`+strings.Repeat(one+",", n-1)+one+`]}`))
			if err != nil {
				b.Fatal(err)
			}
			var view [][]byte
			for i := 0; i < n; i += 2 {
				view = append(view, r.Messages[i].Raw)
			}
			b.ReportAllocs()
			for b.Loop() {
				if parts := d.Join(r, view); len(parts) != 2*len(view)+1 {
					b.Fatalf("%d parts", len(parts))
				}
			}
		})
	}
}
