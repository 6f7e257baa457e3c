package rawjson_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

func TestValid(t *testing.T) {
	f := func(text string, want rawjson.Code, offset int) {
		t.Helper()
		err := rawjson.Valid([]byte(text), 4)
		if want == "" {
			if err != nil {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		var e *rawjson.Error
		if !errors.As(err, &e) || e.Code != want || e.Offset != offset {
			t.Errorf("%q: got %v, want %s at %d", text, err, want, offset)
		}
	}
	for _, text := range []string{
		`{}`, `[]`, `null`, `true`, `false`, `0`, `-0`, `1`, `-12.5e+3`, `1E9`, `0.0`, `""`, ` { "a" : [ 1 , 2 ] } `,
		`{"a":1,"a":2}`, `"\ud800"`, `"\uDFFF\uD800"`, `"\"\\\/\b\f\n\r\té"`, `"é 漢 😀"`, "\t\r\n1\n", `[[[[]]]]`,
		`{"a":{"b":{"c":{}}}}`, "\"\x7f\"", "\"\U0010FFFF\"",
	} {
		f(text, "", 0)
	}
	f(``, rawjson.Truncated, 0)
	f(`  `, rawjson.Truncated, 2)
	f(`{`, rawjson.Truncated, 1)
	f(`{"a"`, rawjson.Truncated, 4)
	f(`{"a":`, rawjson.Truncated, 5)
	f(`{"a":1,`, rawjson.Truncated, 7)
	f(`"abc`, rawjson.Truncated, 4)
	f(`{,}`, rawjson.Syntax, 1)
	f(`{"a":1,}`, rawjson.Syntax, 7)
	f(`{"a" 1}`, rawjson.Syntax, 5)
	f(`{a:1}`, rawjson.Syntax, 1)
	f(`[1,]`, rawjson.Syntax, 3)
	f(`[1 2]`, rawjson.Syntax, 3)
	f(`[1}`, rawjson.Syntax, 2)
	f(`1 2`, rawjson.Trailing, 2)
	f("{}\x00", rawjson.Trailing, 2)
	f("\v1", rawjson.Syntax, 0)
	f(`nul`, rawjson.BadLiteral, 0)
	f(`True`, rawjson.Syntax, 0)
	f(`-`, rawjson.BadNumber, 0)
	f(`01`, rawjson.Trailing, 1)
	f(`1.`, rawjson.BadNumber, 0)
	f(`.5`, rawjson.Syntax, 0)
	f(`1e`, rawjson.BadNumber, 0)
	f(`+1`, rawjson.Syntax, 0)
	f(`"\x"`, rawjson.BadEscape, 1)
	f(`"\u12G4"`, rawjson.BadEscape, 1)
	f(`"\`, rawjson.BadEscape, 1)
	f("\"a\nb\"", rawjson.Control, 2)
	f("\"\x00\"", rawjson.Control, 1)
	f("\"\xc0\xaf\"", rawjson.BadUTF8, 1)
	f("\"\xed\xa0\x80\"", rawjson.BadUTF8, 1)
	f("\"\xf4\x90\x80\x80\"", rawjson.BadUTF8, 1)
	f("\"12345678\xff\"", rawjson.BadUTF8, 9)
	f("\"\xe6\xbc", rawjson.BadUTF8, 1)
	f("\xef\xbb\xbf{}", rawjson.LeadingMark, 0)
	f(`[[[[[]]]]]`, rawjson.TooDeep, 4)
	f(strings.Repeat("[", 1<<20), rawjson.TooDeep, 4)
	f(strings.Repeat(`{"a":`, 1<<20), rawjson.TooDeep, 20)
}

// Every byte at every place of a word must be found, whatever stands around it.
func TestStringStops(t *testing.T) {
	for c := range 256 {
		for at := range 20 {
			text := []byte(`"` + strings.Repeat("x", 20) + `"`)
			text[1+at] = byte(c)
			err := rawjson.Valid(text, 0)
			if bad := c < ' ' || c == '"' || c == '\\' || c > 0x7f; bad != (err != nil) {
				t.Errorf("byte %#x at %d: %v", c, at, err)
			}
		}
	}
}

func TestScannerVisits(t *testing.T) {
	text := `{"a":[1,{"b":null},"x\/y"], "k\u0065y" : {"deep":[[]]} ,"skipped":{"q":[1,2]}, "last":true}`
	s := rawjson.NewScanner([]byte(text), 0)
	var got []string
	if !s.Object() {
		t.Fatal("no object")
	}
	for s.Member() {
		switch name := string(s.Key().Name(make([]byte, 0, 64))); {
		case name == "skipped":
		case s.Array():
			for s.Element() {
				at := s.Offset()
				v := s.Value()
				if text[at:at+len(v.Raw)] != string(v.Raw) {
					t.Errorf("offset %d is not that of %s", at, v.Raw)
				}
				got = append(got, name+"[]="+string(v.Raw))
			}
		default:
			got = append(got, name+"="+string(s.Value().Raw))
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	want := `a[]=1|a[]={"b":null}|a[]="x\/y"|key={"deep":[[]]}|last=true`
	if strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
}

func TestScannerStopsAtDefect(t *testing.T) {
	s := rawjson.NewScanner([]byte(`{"a":1,"b":[1,2,}],"c":2}`), 0)
	n := 0
	for s.Object(); s.Member(); n++ {
		if s.Array() {
			for s.Element() {
				s.Value()
			}
		}
	}
	var e *rawjson.Error
	if err := s.End(); n != 2 || !errors.As(err, &e) || e.Offset != 16 {
		t.Errorf("%d members, %v", n, s.Err())
	}
	if v := s.Value(); v.Kind != 0 || s.Kind() != 0 || s.Object() || s.Array() || s.Element() {
		t.Error("a scanner with a defect goes on")
	}
}

func TestEscapes(t *testing.T) {
	f := func(text string, want rawjson.Escapes) {
		t.Helper()
		s := rawjson.NewScanner([]byte(text), 0)
		if got := s.Value().Escapes; got != want {
			t.Errorf("%s: %d", text, got)
		}
		if got := rawjson.ValueOf([]byte(text)).Escapes; got != want {
			t.Errorf("%s: ValueOf: %d", text, got)
		}
	}
	f(`"plain é"`, rawjson.Plain)
	f(`"a\nb\"\\c"`, rawjson.Short)
	f(`"a\/b\n"`, rawjson.Long)
	f(`"\u0041\n"`, rawjson.Long)
	f(`"\\u0041"`, rawjson.Short)
}

func TestScannerAllocatesNothing(t *testing.T) {
	text := body(64 << 10)
	if n := testing.AllocsPerRun(10, func() {
		if rawjson.Valid(text, 0) != nil {
			t.Error("not valid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
