package ground

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
)

// shown is what the writers of the lines below were shown, the second text as JSON in JSON.
var shown = []string{
	`The user: "Never touch the v1 endpoints, please." Port /srv/app/src/parser/lexer.go:120 (1,204 lines), by 2026-11-29, at 48.250 ms.
parseHeader calls read_token in class TokenStream with self.buffer. Ticket ABC-123, commit 3f2a9bc0d1e2f3a4b5c6. Took 17837 ms, 1.2k calls.
Größe_x steht in Übersicht.md; 文件config.yaml已修改。 v1.74.0 is pinned. Fares: 105 and 102 USD.`,
	`{"output":"{\"path\":\"web\\/app\\nline two\\u0020of it\",\"error\":\"want 200,\\tgot 401\"}"}`,
}

// TestTrueLinesStay has lines that name only what was shown, each in another form.
func TestTrueLinesStay(t *testing.T) {
	for _, line := range []string{
		"lexer.go", "parser/lexer.go", "`src/parser/LEXER.go`", "**lexer.go:120**", "app/lexer.go", "see lexer.go.", "lexer.go's end",
		"1204 lines", "1,204 lines", "1.2k lines", "17.8k ms", "about 900 lines", "1,200-line file", "lexer.go:96-98,120", "lexer.go:48,120", "16 GB", "105,102 USD", "500+ calls", "~300 calls", "140% of it", "3 of 5 pass", "60+46=106, 105+102=207 USD in all",
		"parseHeader", "`parseHeader()`", "TokenStreams", "TokenStream's", "`TokenStream.buffer`", "read_token",
		"3f2a9bc", "3F2A9BC0D1E2", "ABC-123", "abc-123", "v1.74.0", "in 2026", "48.25 ms", "120-line file",
		`the user said "never touch the v1 endpoints"`, `"touch the v1 endpoints please"`, `“Never touch the v1 endpoints”`,
		"web/app", "`want 200, got 401`", "`line two of it`",
		"Größe_x", "Übersicht.md", "config.yaml", "文件config.yaml", "linux/mac/windows", "a `<placeholder>` and src/*.py and a...b",
		"GitHub, JavaScript and README.md", "the \"happy path\"",
	} {
		if r := Check(line, shown...); r.Record != line {
			t.Errorf("%q: struck for %q", line, r.Struck)
		}
	}
}

// TestInventedLinesAreStruck has lines that name something that was not shown.
func TestInventedLinesAreStruck(t *testing.T) {
	for line, missing := range map[string]string{
		"auth/token.go:88 is next": "auth/token.go", "src/parser/token.go": "src/parser/token.go", "lexer.py": "lexer.py", "src.md": "src.md", "ABC-1204": "ABC-1204",
		"1205 lines": "1205", "1.3k lines": "1.3k", "lexer.go:245": "245", "2,204 lines": "2,204", "48.35 or 148.35 ms": "148.35 ms",
		"parse_header": "parse_header", "`Login` is done": "Login", "TokenReader": "TokenReader", "read_tokens_all": "read_tokens_all",
		"3f2a9bd": "3f2a9bd", "ABC-124": "ABC-124", "v1.73.0": "v1.73.0", "in 2027": "2027",
		`"do not touch anything but the new endpoints"`: "do not touch anything but the new endpoints",
		"`want 500, got 401`":                           "500",
		"https://example.com/a.pdf":                     "https://example.com/a.pdf",
		"TESTS: TestRefresh fails":                      "TestRefresh",
	} {
		r := Check(line, shown...)
		if r.Lines != 1 || len(r.Struck) != 1 || !slices.Contains(r.Struck[0].Missing, missing) {
			t.Errorf("%q: %+v", line, r)
		}
	}
}

// TestWhatNamesNothingDoesNotCount: headings and lines without names stay, and are in no share.
func TestWhatNamesNothingDoesNotCount(t *testing.T) {
	record := "USER_CONTEXT: port it\n\nTASK_TRACKING:\n- the first is done\n**Current State**: well"
	if r := Check(record, "port it"); r.Record != record || r.Lines != 0 || !r.Enough() {
		t.Errorf("%+v", r)
	}
}

// TestBareHeadingsGo: a heading goes with the last of its lines, and no other line does.
func TestBareHeadingsGo(t *testing.T) {
	for record, want := range map[string]string{
		"CODE_STATE:\n- a.go\n- b.go\nNEXT_STEP:\n- b.go\n":    "CODE_STATE:\n- a.go",
		"## Tests\n**Passing**: b.go\n## State\n**Now**: a.go": "## State\n**Now**: a.go",
		"# Top\n## Tests\n**Passing**: b.go\n**Now**: a.go":    "# Top\n## Tests\n**Now**: a.go",
		"EMPTY:\nCODE_STATE:\n\n- b.go\n\nNEXT_STEP: read":     "EMPTY:\nNEXT_STEP: read",
		"CODE_STATE: well\n- b.go\nNEXT_STEP: rest":            "CODE_STATE: well\nNEXT_STEP: rest",
		"EMPTY:\nNEXT_STEP:":                                   "EMPTY:\nNEXT_STEP:",
		"- b.go":                                               "",
	} {
		if r := Check(record, "a.go"); r.Record != want {
			t.Errorf("%q: %q, want %q", record, r.Record, want)
		}
	}
}

// TestEnough: a record may lose one line, or half of those that name something.
func TestEnough(t *testing.T) {
	for record, want := range map[string]bool{
		"b.go": true, "b.go\nc.go": false, "a.go\nb.go\nc.go": false, "a.go\na.go\nb.go\nc.go": true, "": true,
	} {
		if r := Check(record, "a.go"); r.Enough() != want {
			t.Errorf("%q: %+v", record, r)
		}
	}
}

// TestARecordIsGroundedInItself: what was accepted once stays when it is shown again.
func TestARecordIsGroundedInItself(t *testing.T) {
	for _, record := range append(shown, "auth/token.go:88, 3f2a9bc, \"want 200, got 401\"", "1,234 1.2k 50% v1.2.3 `x := y(z)` a/b/c.d", "10.8k LOC/s, 0x1F, a_b::c_d", "bAb\u0737") {
		if r := Check(record, record); len(r.Struck) > 0 {
			t.Errorf("%q", r.Struck)
		}
	}
}

func TestCheckTakesLinearTime(t *testing.T) {
	lineartest.Check(t, func(text string) { Check(text, text) })
	lineartest.Check(t, func(text string) { Check("`"+text+"` \""+text+"\" "+strings.ReplaceAll(text, " ", ","), text) })
}

func FuzzCheck(f *testing.F) {
	for _, s := range shown {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, record, text string) {
		r := Check(record, text)
		if len(r.Struck)+r.Grounded != r.Lines || len(r.Record) > len(record) {
			t.Errorf("%+v", r)
		}
		if again := Check(record, record); len(again.Struck) > 0 {
			t.Errorf("not grounded in itself: %q", again.Struck)
		}
	})
}

func ExampleCheck() {
	r := Check("TESTS: TestRead passes\nNEXT_STEP: auth/token.go:88", "ok TestRead (0.01s)")
	fmt.Println(r.Record, r.Grounded, "of", r.Lines)
	// Output: TESTS: TestRead passes 1 of 2
}
