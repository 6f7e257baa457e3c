package rawjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

func TestUnquote(t *testing.T) {
	f := func(inner, want, canonical string, exact bool) {
		t.Helper()
		got, ok := rawjson.AppendUnquote(nil, []byte(inner))
		if string(got) != want || ok != exact {
			t.Errorf("unquote %s: %q %v", inner, got, ok)
		}
		if got := rawjson.AppendCanonical(nil, []byte(inner)); string(got) != canonical {
			t.Errorf("canonical %s: %s", inner, got)
		}
	}
	f(``, "", ``, true)
	f(`abc`, "abc", `abc`, true)
	f(`a\nb\t\"\\\b\f\r`, "a\nb\t\"\\\b\f\r", `a\nb\t\"\\\b\f\r`, true)
	f(`\u0041\/\u00e9\u6f22`, "A/é漢", `A/é漢`, true)
	f(`\u000A\u001B\u0022\u005c`, "\n\x1b\"\\", `\n\u001b\"\\`, true)
	f(`\uD83D\uDE00`, "😀", `😀`, true)
	f(`\uD83Dx`, "\uFFFDx", `\ud83dx`, false)
	f(`\uD83D\n`, "\uFFFD\n", `\ud83d\n`, false)
	f(`\uDE00\uD83D`, "\uFFFD\uFFFD", `\ude00\ud83d`, false)
	f(`\uD83D\uD83D\uDE00`, "\uFFFD😀", `\ud83d😀`, false)
	f(`\ufffd`, "\uFFFD", "\uFFFD", true)
	f(`\d\é\`, `\d\é\`, `\d\é\`, false)
}

func TestQuote(t *testing.T) {
	f := func(s, want string) {
		t.Helper()
		if got := rawjson.AppendQuote(nil, s); string(got) != want {
			t.Errorf("%q: %s", s, got)
		}
	}
	f("", `""`)
	f("a<b>&'é漢😀\u2028", `"a<b>&'é漢😀`+"\u2028"+`"`)
	f("\"\\/\b\f\n\r\t\x00\x1f\x7f", `"\"\\/\b\f\n\r\t\u0000\u001f`+"\x7f"+`"`)
	f("a\xffb\xc0\xafc\uFFFDd", `"a`+"\uFFFDb\uFFFD\uFFFDc\uFFFD"+`d"`)
}

// A quoted string decodes to the same text, here and in encoding/json, and its encoding is canonical.
func TestQuoteRoundTrip(t *testing.T) {
	property.Check(t, func(t *rapid.T) {
		s := rapid.String().Draw(t, "s")
		quoted := rawjson.AppendQuote(nil, s)
		want := strings.ToValidUTF8(s, "\uFFFD")
		var elsewhere string
		if err := json.Unmarshal(quoted, &elsewhere); err != nil || (utf8.ValidString(s) && elsewhere != want) {
			t.Fatalf("%s: %v", quoted, err)
		}
		v := rawjson.ValueOf(quoted)
		if got := v.Text(); utf8.ValidString(s) && got != s {
			t.Fatalf("%q reads back as %q", s, got)
		}
		if utf8.ValidString(s) && !v.Is(s) {
			t.Fatalf("%q is not itself", s)
		}
		if got := rawjson.AppendCanonical(nil, v.Inner()); string(got) != string(v.Inner()) {
			t.Fatalf("canonical %s differs from %s", got, v.Inner())
		}
	})
}

func TestWalk(t *testing.T) {
	text := []byte(" { \"a\" : [ 1 , -2.5e3,\ttrue , null,\"x\\\"]\" , {} , [ ] ] ,\"b\":{\"c\":\"}\"} } ")
	var got []string
	for key, v := range rawjson.Members(text) {
		got = append(got, string(key.Raw)+"="+string(v.Raw))
		for e := range rawjson.Elements(v.Raw) {
			got = append(got, string(e.Kind)+string(e.Raw))
		}
	}
	want := `a=[ 1 , -2.5e3,	true , null,"x\"]" , {} , [ ] ]|01|0-2.5e3|ttrue|nnull|""x\"]"|{{}|[[ ]|b={"c":"}"}`
	if strings.Join(got, "|") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, "|"), want)
	}
	for range rawjson.Members([]byte(`[1]`)) {
		t.Error("an array has no members")
	}
	for range rawjson.Elements(nil) {
		t.Error("nothing has no elements")
	}
}
