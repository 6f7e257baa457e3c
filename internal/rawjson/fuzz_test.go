package rawjson_test

import (
	"bytes"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

var seeds = []string{
	`{"a":[1,2.5e-3,{"b":"\u00e9\ud83d\ude00\/"}],"c":null}`, `"\ud800"`, `[[[]]]`, ` {"x" : true , "y":false } `, `01`, `-`,
	"\"\xed\xa0\x80\"", "\xef\xbb\xbf1", `{"a":1,"a":2}`, "\"1234567\x01\"", `"12345678\`, `[1,]`, `{"k\u0065y":""}`, "\"漢字かな交じり\"",
}

// FuzzScan compares the scanner with jsontext: both accept the same texts, the visited spans are the values of the text,
// and Members and Elements visit the same values as the Scanner.
func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := rawjson.Valid(text, rawjson.MaxDepth)
		var defect *rawjson.Error
		if errors.As(err, &defect) && (defect.Offset < 0 || defect.Offset > len(text)) {
			t.Fatalf("%v is outside the text", err)
		}
		// jsontext accepts lone surrogate escapes only if it accepts invalid UTF-8 as well.
		want := utf8.Valid(text) && jsontext.Value(text).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if want != (err == nil) {
			t.Fatalf("jsontext says %v: %v", want, err)
		}
		s := rawjson.NewScanner(text, rawjson.MaxDepth)
		visited := visit(&s, nil)
		if (s.End() == nil) != want {
			t.Fatalf("visiting says %v, skipping %v", s.Err(), err)
		}
		walked := walk(rawjson.ValueOf(text), nil, 0)
		if want && !bytes.Equal(visited, walked) {
			t.Fatalf("visited %s\nwalked  %s", visited, walked)
		}
		if want {
			same(t, text, visited)
		}
	})
}

// visit rewrites the text through the scanner, without white space.
func visit(s *rawjson.Scanner, out []byte) []byte {
	switch {
	case s.Object():
		out = append(out, '{')
		for s.Member() {
			out = append(append(append(out, '"'), s.Key().Raw...), '"', ':')
			out = append(visit(s, out), ',')
		}
		out = append(bytes.TrimSuffix(out, []byte{','}), '}')
	case s.Array():
		out = append(out, '[')
		for s.Element() {
			out = append(visit(s, out), ',')
		}
		out = append(bytes.TrimSuffix(out, []byte{','}), ']')
	default:
		out = append(out, s.Value().Raw...)
	}
	return out
}

// walk is like visit, but uses Members and Elements.
func walk(v rawjson.Value, out []byte, depth int) []byte {
	switch {
	case depth > rawjson.MaxDepth:
	case v.Kind == rawjson.Object:
		out = append(out, '{')
		for key, member := range rawjson.Members(v.Raw) {
			out = append(append(append(out, '"'), key.Raw...), '"', ':')
			out = append(walk(member, out, depth+1), ',')
		}
		out = append(bytes.TrimSuffix(out, []byte{','}), '}')
	case v.Kind == rawjson.Array:
		out = append(out, '[')
		for element := range rawjson.Elements(v.Raw) {
			out = append(walk(element, out, depth+1), ',')
		}
		out = append(bytes.TrimSuffix(out, []byte{','}), ']')
	default:
		out = append(out, v.Raw...)
	}
	return out
}

// same checks token by token that compact is text without its white space.
func same(t *testing.T, text, compact []byte) {
	t.Helper()
	options := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	a, b := jsontext.NewDecoder(bytes.NewReader(text), options...), jsontext.NewDecoder(bytes.NewReader(compact), options...)
	for {
		x, errA := a.ReadToken()
		kind, token := x.Kind(), ""
		if errA == nil {
			token = x.String()
		}
		y, errB := b.ReadToken()
		if (errA == nil) != (errB == nil) {
			t.Fatalf("%v, %v", errA, errB)
		}
		if errA != nil {
			return
		}
		if kind != y.Kind() || token != y.String() {
			t.Fatalf("token %s became %s", token, y)
		}
	}
}

// FuzzStrings compares the decoding and encoding of strings with jsontext.
func FuzzStrings(f *testing.F) {
	for _, s := range []string{`a\u0041\/`, `\ud83d\ude00`, `\ud800\ud800\udc00`, `\n\t\u001b\u007f`, "é漢\U0001F600"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, inner []byte) {
		quoted := append(append([]byte{'"'}, inner...), '"')
		v := rawjson.ValueOf(quoted)
		if rawjson.Valid(quoted, 0) != nil || len(v.Raw) != len(quoted) {
			return
		}
		want, _ := jsontext.AppendUnquote(nil, quoted) // an error means lone surrogates; they are decoded to U+FFFD
		got, exact := rawjson.AppendUnquote(nil, inner)
		if !bytes.Equal(got, want) {
			t.Fatalf("%s: got %q, want %q", quoted, got, want)
		}
		canonical := rawjson.AppendCanonical(nil, inner)
		if again := rawjson.AppendCanonical(nil, canonical); !bytes.Equal(canonical, again) {
			t.Fatalf("%s is not settled: %s", canonical, again)
		}
		if exact && string(canonical) != strip(rawjson.AppendQuote(nil, string(got))) {
			t.Fatalf("canonical %s is not the quoted %q", canonical, got)
		}
		if v.Escapes != rawjson.Long && !bytes.Equal(canonical, inner) {
			t.Fatalf("%s without long escapes became %s", inner, canonical)
		}
	})
}

func strip(quoted []byte) string { return string(quoted[1 : len(quoted)-1]) }
