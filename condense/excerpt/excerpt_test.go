package excerpt

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/lineartest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func count(text string) int { return (len(text) + 3) / 4 }

func TestScanFinds(t *testing.T) {
	for line, want := range map[string]string{
		"see /srv/app/main.go:12:5 now":                       "/srv/app/main.go main.go",
		"edit (cmd/app/run.py), then ~/notes/a":               "cmd/app/run.py run.py ~/notes/a",
		"a/src/foo_bar.go +++ b/x.go":                         "a/src/foo_bar.go foo_bar.go foo_bar b/x.go x.go",
		"read config.yaml and `go.mod`.":                      "config.yaml go.mod",
		"see [docs](https://example.com/a?b=1&c=2).":          "https://example.com/a?b=1&c=2",
		"id 123e4567-e89b-12d3-a456-426614174000":             "123e4567-e89b-12d3-a456-426614174000",
		"call `parse_header` twice, then self.readBody(x)":    "parse_header self.readBody readBody",
		"ValueError: no os.path, but ENOENT; exit 42 or 4242": "ValueError os.path ENOENT 4242",
		"on 2026-11-22 it cost 0.125":                         "2026-11-22 0.125",
		"commit 3f2a9bc of ABC-123, user_id=mei_li_42":        "3f2a9bc ABC-123 user_id mei_li_42",
		"nothing of note here, 12 times and/or so...":         "",
		"-- // ~ . _ :// @ --flag_name":                       "flag_name",
		"://x http:// \xff\xfe":                               "",
	} {
		var got []string
		s := &scanner{class: classes(), emit: func(term string, _ bool) { got = append(got, term) }}
		s.scan(line)
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestLiterals(t *testing.T) {
	for line, want := range map[string]string{
		`print("two words", 'three more words', x)`: "two words|three more words",
		"run `go test ./...` now":                   "go test ./...",
		`don't say it's "not so", it's`:             "not so",
		`"one" and "two"`:                           "",
		`"open and never closed`:                    "",
		`" padded " and "padded "`:                  "",
		`"` + strings.Repeat("long ", 40) + `x"`:    "",
		"say \"a b\"\"c d\"":                        "a b|c d",
	} {
		var got []string
		s := &scanner{class: classes(), emit: func(term string, _ bool) { got = append(got, term) }}
		s.literals(line)
		if strings.Join(got, "|") != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

func TestValues(t *testing.T) {
	for json, want := range map[string][]string{
		`{"path":"a/b.go","n": 12,"deep":{"list":["x\ny",true,-7,"q\"\\z"]}}`: {"a/b.go", "12", "x\ny", "7", "q\"\\z"},
		`["a\u0026b \u4e2d \ud83d\ude00 \ud83d \ud83dx \uZZ"]`:                {"a&b \u4e2d \U0001f600 \ufffd \ufffdx \ufffdZZ"},
		`["\d+ \é \r\n \\d"]`: {"\\d+ \\é \n\n \\d"},
		`not json`:            {"not json"}, `{"a":"cut of`: {"cut of"}, `["\`: {"\\"}, "": {""},
	} {
		var got []string
		for v := range Values(json) {
			got = append(got, v)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", json, got, want)
		}
	}
}

// read builds an index from a script with one message per line: its kind, a "+" if it is shown, and its text.
func read(script ...string) *Index {
	kinds := map[string]session.Kind{"user": session.User, "agent": session.Agent, "result": session.Observation}
	x := New()
	for _, l := range script {
		who, text, _ := strings.Cut(l, " ")
		kind, shown := strings.CutSuffix(who, "+")
		x.Add(Message{Kind: kinds[kind], Shown: shown, Content: session.Content{Text: strings.ReplaceAll(text, `\n`, "\n")}})
	}
	return x
}

func TestChoice(t *testing.T) {
	filler := strings.Repeat(" word", 20)
	for name, c := range map[string]struct {
		history []string
		tokens  int
		want    string
	}{
		"under the mark of its message, in order": {
			[]string{"user see a_a", "agent b_b and c_c", "result nothing\\nd_d"}, 100,
			"### user\nsee a_a\n### assistant\nb_b and c_c\n### result\nd_d",
		},
		"what the agent wrote before what it read": {
			[]string{"result one_one is long enough", "agent two_two is long enough", "user", "user"}, 14, "### assistant\ntwo_two is long enough",
		},
		"what is named often": {
			[]string{"user one_one", "result two_two x", "result+ two", "result two_two", "result three_three", "user"}, 7, "### result\ntwo_two",
		},
		"what is named a hundred times no more than what is named thirty-two times": {
			append(slices.Repeat([]string{"result one_one" + filler}, 100), slices.Repeat([]string{"result two_two" + filler}, 33)...), 40,
			"### result\ntwo_two" + filler,
		},
		"nothing that the view names": {
			[]string{"user see a_a", "agent b_b and c_c", "agent+ a_a", "result+ b_b"}, 100, "### assistant\nb_b and c_c",
		},
		"the newest of equal lines, line numbers and spaces aside": {
			[]string{"result    12\tx = a_a + 1", "result    14\tx =  a_a + 1"}, 100, "### result\n14\tx =  a_a + 1",
		},
		"no mark that a message writes": {
			[]string{"result a_a\\n### user\\n### user b_b"}, 100, "### result\na_a",
		},
		"long lines in parts": {
			[]string{"result " + strings.Repeat("word ", 60) + "x_x"}, 100, "### result\n" + strings.Repeat("word ", 12) + "x_x",
		},
		"what is quoted and named again": {
			[]string{`result it says "no such user" here`, "result it says nothing_new here", `agent about "no such user"`, "user"}, 10,
			`### assistant` + "\n" + `about "no such user"`,
		},
		"no room": {[]string{"user a_a"}, 2, ""},
		"nothing": {nil, 100, ""},
	} {
		if got := read(c.history...).Text(c.tokens, count); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestNewestLineOfANameIsQuoted checks that a line is quoted from the last message with a name, although an older line that was quoted for
// another name has it as well.
func TestNewestLineOfANameIsQuoted(t *testing.T) {
	x := read("result max_tries = 5 in conf_x and conf_y", "result max_tries = 7", "agent conf_x and conf_y", "user")
	if got, want := x.Text(100, count), "### result\nmax_tries = 7\n### assistant\nconf_x and conf_y"; !strings.HasSuffix(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	x = read("result max_tries = 5 in conf_x and conf_y", "result max_tries = 7", "user")
	if got, want := x.Text(100, count), "### result\nmax_tries = 5 in conf_x and conf_y\nmax_tries = 7"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCallIsQuotedWithItsReason checks that a call is one line with what the agent said just before it, and that what a long call contains is
// quoted under its mark.
func TestCallIsQuotedWithItsReason(t *testing.T) {
	for arguments, want := range map[string]string{
		`{"path":"jobs/retry.go"}`:                            "### assistant\n" + `The retry fails. edit {"path":"jobs/retry.go"}`,
		`{"path":"jobs/retry.go","new":"a_a := 1\nb_b := 2"}`: "### edit jobs/retry.go\njobs/retry.go\na_a := 1\nb_b := 2",
	} {
		x := New()
		x.Add(Message{Kind: session.Action, Content: session.Content{
			Text: "I have read it.\nThe retry fails.", Calls: []session.Call{{ID: "1", Name: "edit", Arguments: arguments}},
		}})
		if got := x.Text(100, count); got != want {
			t.Errorf("%s: %q, want %q", arguments, got, want)
		}
	}
}

// TestDialogueIsQuoted checks that of a dialogue what the agent said to the user is quoted, although it names nothing.
func TestDialogueIsQuoted(t *testing.T) {
	x := read("user hello", `agent Shall I book the earlier flight for you?\nYes or no.`, "user yes", "agent I have booked it and refund the rest.", "user+ thanks")
	want := "### assistant\nShall I book the earlier flight for you?\nI have booked it and refund the rest."
	if got := x.Text(100, count); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestMarksNameTheCall(t *testing.T) {
	x := New()
	x.Add(Message{Kind: session.Action, Shown: true, Content: session.Content{Calls: []session.Call{
		{ID: "1", Name: "read\n### user", Arguments: `{"limit":7,"path":"/srv/a.go"}`}, {ID: "2", Name: "ls", Arguments: `{}`},
	}}})
	x.Add(Message{Kind: session.Observation, Content: session.Content{Result: "1", Text: "a_a"}})
	x.Add(Message{Kind: session.Observation, Content: session.Content{Result: "2", Text: "b_b"}})
	x.Add(Message{Kind: session.Observation, Content: session.Content{Result: "3", Name: "old", Text: "c_c"}})
	if got, want := x.Text(100, count), "### read /srv/a.go\na_a\n### ls\nb_b\n### result old\nc_c"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestRoomIsUsed checks that the quoted lines fill the room.
func TestRoomIsUsed(t *testing.T) {
	var lines []string
	for i := range 3000 {
		lines = append(lines, fmt.Sprintf("call_%d is what this line names", i))
	}
	for _, tokens := range []int{0, 3, 10, 100, 1000, 5000} {
		got := count(read("result "+strings.Join(lines, `\n`)).Text(tokens, count))
		if got > tokens || tokens >= 100 && got < tokens*95/100 {
			t.Errorf("%d of %d tokens", got, tokens)
		}
	}
}

// TestLinear checks that reading and choosing take time linear in the length of the text.
func TestLinear(t *testing.T) {
	lineartest.Check(t, func(text string) {
		x := New()
		x.Add(Message{Kind: session.Action, Content: session.Content{Text: text, Calls: []session.Call{{Arguments: "[" + text}}}})
		x.Text(1000, count)
	})
	lineartest.Check(t, func(text string) { FirstURL(text) })
}

// FuzzText checks that the quoted text keeps within its room, is the same every time, and consists of marks and lines
// of the messages.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"", "/a/b.go https://x.y/z ABC-1 3f2a9bc ValueError `name` 12345", "://://://", "\"a_b\\", "{\"a_b\":\"c_d\\n", "### user a_b", "a\u2028b_b\u0085/d/e.go",
		strings.Repeat("a_b ", 100), strings.Repeat("/", 300), "\xff/a/b\xfe.go",
	} {
		f.Add(s, "", 100)
		f.Add(s, s, 10)
	}
	f.Fuzz(func(t *testing.T, text, shown string, tokens int) {
		tokens = min(max(tokens, 0), 1000)
		choose := func() string {
			x := New()
			x.Add(Message{Kind: session.Action, Content: session.Content{Text: text, Calls: []session.Call{{ID: "1", Name: "run", Arguments: text}}}})
			x.Add(Message{Kind: session.Observation, Content: session.Content{Result: "1", Text: text}})
			x.Add(Message{Kind: session.User, Content: session.Content{Text: shown}, Shown: true})
			return x.Text(tokens, count)
		}
		got := choose()
		if count(got) > tokens || got != choose() {
			t.Fatalf("%d tokens of %d, or not the same twice", count(got), tokens)
		}
		source := text + "\n"
		for v := range Values(text) {
			source += v + "\n"
		}
		_, said := splitLastLine(text)
		call := "run " + strings.TrimSpace(text)
		source += said + " " + call + "\n" + call + "\n" // what the agent said is in one line with its call
		for l := range strings.SplitSeq(got, "\n") {
			if !strings.HasPrefix(l, markOpen) && !strings.Contains(source, l) {
				t.Fatalf("%q is no line of the text", l)
			}
		}
	})
}
