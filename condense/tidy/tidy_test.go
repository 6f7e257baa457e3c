package tidy

import (
	"bytes"
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
)

func TestText(t *testing.T) {
	f := func(name, text, want string) {
		t.Helper()
		if got := Text(text); got != want {
			t.Errorf("%s:\ngot  %q\nwant %q", name, got, want)
		}
	}
	same := func(name, text string) {
		t.Helper()
		f(name, text, text)
	}
	same("empty", "")
	same("plain", "one\ntwo\n\n\n\nthree\r\nfour\r\n")

	f("colours", "\x1b[1;31mFAIL\x1b[0m a_test.go\n\x1b[?25lok\x1b(B\x1b[m", "FAIL a_test.go\nok")
	f("a title", "\x1b]0;make\aok\n\x1b]2;make\x1b\\ok", "ok\nok")
	same("a link: its address would be lost", "\x1b]8;;https://example.com\x1b\\here\x1b]8;;\x1b\\")
	same("the cursor goes up", "\x1b[1A\x1b[2Kpulling")
	same("a code that does not end", "a \x1b[31")
	same("a title that does not end", "\x1b]0;all the rest")
	same("an escape alone", "a\x1b")
	same("a character set that there is none of", "\x1b(世")

	f("progress", "Receiving 10%\rReceiving 55%\rReceiving 100%, done.\nnext\n", "Receiving 100%, done.\nnext\n")
	f("a shorter line leaves the end of a longer one", "downloading\rdone\n", "doneloading\n")
	f("erased", "downloading\r\x1b[Kdone\n", "done\n")
	f("erased whole", "downloading\x1b[2K\rdone\r\n", "done\r\n")
	f("a spinner", "wait |\b/\b-\b\\\bok", "wait ok")
	f("wide", "älter\rÄ", "Älter")
	same("tabs", "a\tb\rc")

	f("lines", "a\n"+strings.Repeat("retrying in 5 seconds\n", 58)+"b\n", "a\nretrying in 5 seconds\n[the line above 57 more times]\nb\n")
	f("to the end", strings.Repeat("retrying in 5 seconds\n", 57)+"retrying in 5 seconds", "retrying in 5 seconds\n[the line above 57 more times]")
	f("twice", strings.Repeat("one line of some length\n", 3)+strings.Repeat("and another one of it\n", 4),
		"one line of some length\n[the line above 2 more times]\nand another one of it\n[the line above 3 more times]\n")
	same("a pair", strings.Repeat("a line that is long enough to be worth it\n", 2))
	same("short ones", "a\n\n\n\n\n}\n}\n}\n")

	f("an object", "{\n  \"b\": 1.0,\n  \"a\": [1, 2e3, \"x  y\\u00e9\"],\n  \"b\": null\n}\n", `{"b":1.0,"a":[1,2e3,"x  y\u00e9"],"b":null}`)
	f("an array", " [1, 2]\n", "[1,2]")
	same("not JSON", "{ a: 1 }")
	same("two values", "{ } { }")
	same("a number", " 1 ")
}

// FuzzText checks that no text becomes longer, that tidying JSON is idempotent and keeps every value, and that a text with
// nothing to tidy is returned unchanged.
func FuzzText(f *testing.F) {
	for _, text := range []string{"\x1b[31mred\x1b[0m\r\x1b[Kx", "a\rb\bc\n", "x\nx\nx\nx\n", `{ "a" : [ 1 , "\u0041 b" ] , "a" : 1.50 }`, "[\xff]", "\x1b]0;t\a"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Text(text)
		if len(got) > len(text) {
			t.Fatalf("%q became longer: %q", text, got)
		}
		was, isJSON := tokens(text)
		if now, still := tokens(got); isJSON && JSON(text) && (!still || !reflect.DeepEqual(was, now) || Text(got) != got) {
			t.Fatalf("%q became %q", text, got)
		}
		if !strings.ContainsAny(text, "\x1b\r\b") && strings.Count(got, "[the line above") == strings.Count(text, "[the line above") && !isJSON && got != text {
			t.Fatalf("%q became %q, and there was nothing to tidy", text, got)
		}
	})
}

// tokens returns the JSON tokens of text, if it is a single JSON value.
func tokens(text string) (all []json.Token, ok bool) {
	if !json.Valid([]byte(text)) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all, true
		}
		if err != nil {
			return nil, false
		}
		all = append(all, token)
	}
}

// FuzzFolded checks that folding can be reversed.
func FuzzFolded(f *testing.F) {
	f.Add("long enough a line\nlong enough a line\nlong enough a line\nlong enough a line\n\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "[the line above") {
			return
		}
		if got := unfold(foldRepeats(text)); got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func unfold(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		var n int
		if rest, ok := strings.CutPrefix(line, "[the line above "); ok {
			for _, digit := range strings.TrimSuffix(rest, " more times]") {
				n = 10*n + int(digit-'0')
			}
			for range n {
				out = append(out, out[len(out)-1])
			}
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n")
}

func TestTextIsLinear(t *testing.T) {
	lineartest.Check(t, func(text string) { Text(text) })
}
