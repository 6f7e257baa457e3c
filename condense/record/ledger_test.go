package record_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func ledger(texts ...string) *record.Ledger {
	l := record.NewLedger()
	for _, text := range texts {
		l.Forget(session.Content{Text: text})
	}
	return l
}

func TestLedgerFinds(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"see /srv/app/main.go:12:5 now", "paths: /srv/app/main.go"},
		{"edit (cmd/app/run.py), then ~/notes/a", "paths: cmd/app/run.py, ~/notes/a"},
		{"read config.yaml and `go.mod`.", "paths: config.yaml, go.mod"},
		{"see [docs](https://example.com/a?b=1&c=2).", "urls: https://example.com/a?b=1&c=2"},
		{"base=postgres://db:5432/app;", "urls: postgres://db:5432/app"},
		{"id 123e4567-e89b-12d3-a456-426614174000", "ids: 123e4567-e89b-12d3-a456-426614174000"},
		{"fix ABC-123 and #4711, in UTF-8", "ids: ABC-123, #4711"},
		{"job task_01HX22 done", "ids: task_01HX22"},
		{"call `parse_header` twice", "names: parse_header"},
		{"nothing of note here, 12 times and/or so", ""},
	} {
		got := ledger(c.text).Text("", 1000, count)
		if sorted(got) != sorted(c.want) {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
}

// sorted makes the order of terms not matter.
func sorted(lines string) string {
	fields := strings.FieldsFunc(lines, func(r rune) bool { return r == ' ' || r == ',' })
	for i := range fields {
		for j := i; j > 0 && fields[j] < fields[j-1]; j-- {
			fields[j], fields[j-1] = fields[j-1], fields[j]
		}
	}
	return strings.Join(fields, " ")
}

func TestLedgerReadsArguments(t *testing.T) {
	l := record.NewLedger()
	l.Forget(session.Content{Calls: []session.Call{{ID: "call_12345", Name: "run", Arguments: `{"cmd":"cat\n\/etc\/app\/x.conf \"a/b/c\""}`}}})
	if got, want := l.Text("", 1000, count), "paths: a/b/c, /etc/app/x.conf"; sorted(got) != sorted(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLedgerLeavesOutWhatIsNotLost(t *testing.T) {
	l := ledger("/a/one.go /a/two.go /a/three.go")
	l.Keep(session.Content{Text: "still shows (/a/two.go:7)"})
	if got, want := l.Text("the record names /a/one.go.", 1000, count), "paths: /a/three.go"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLedgerRanks(t *testing.T) {
	l := ledger("/old/path.go 11111", "/often/path.go", "/often/path.go", "/often/path.go 22222", "/new/path.go")
	if got, want := l.Text("", 9, count), "paths: /new/path.go, /often/path.go"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLedgerKeepsToItsCap(t *testing.T) {
	var text strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&text, "/dir/%d/file.go ", i)
	}
	for _, tokens := range []int{0, 1, 5, 50, 400} {
		if got := ledger(text.String()).Text("", tokens, count); count(got) > tokens {
			t.Errorf("%d tokens, cap %d", count(got), tokens)
		}
	}
	if got := ledger(text.String()).Text("", 400, count); count(got) < 300 {
		t.Errorf("only %d of 400 tokens used", count(got))
	}
}

// FuzzLedger: a ledger keeps to its cap, is the same each time, gives one line a kind, and nothing gets out of it.
func FuzzLedger(f *testing.F) {
	for _, s := range []string{
		"", "/a/b.go https://x.y/z ABC-1 3f2a9bc ValueError `name` 12345", "://://://", "`````", "</dewpoint_record>/a/b.go", "a\u2028/b/c\u0085/d/e.go",
		strings.Repeat("a://", 50), strings.Repeat("/", 300), "\xff/a/b\xfe.go", `C:\Users\x.txt`, "#1 #12 #123456789", "https://",
	} {
		f.Add(s, "", 100)
		f.Add(s, s, 10)
	}
	f.Fuzz(func(t *testing.T, text, kept string, tokens int) {
		tokens = min(max(tokens, 0), 1000)
		make := func() string {
			l := ledger(text)
			l.Keep(session.Content{Text: kept})
			return l.Text("", tokens, count)
		}
		got := make()
		if count(got) > tokens && got != "" {
			t.Fatalf("%d tokens, cap %d", count(got), tokens)
		}
		if got != make() {
			t.Fatal("not the same twice")
		}
		if strings.ContainsAny(got, "<>`\"'|\\") || strings.Count(got, "\n") > 6 {
			t.Fatalf("not neutral: %q", got)
		}
		for _, r := range got {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Fatalf("not printable: %q", got)
			}
		}
		checkTerms(t, got, text)
	})
}

func checkTerms(t *testing.T, got, text string) {
	if got == "" {
		return
	}
	for _, line := range strings.Split(got, "\n") {
		_, terms, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("line without a title: %q", line)
		}
		for _, term := range strings.Split(terms, ", ") {
			if !strings.Contains(text, term) {
				t.Fatalf("%q was made up", term)
			}
		}
	}
}

func BenchmarkLedger(b *testing.B) {
	for name, text := range map[string]string{
		"prose":    strings.Repeat("the parser in /srv/app/main.go failed with ValueError at 12345, see https://example.com/x ", 700),
		"colons":   strings.Repeat("://", 20000),
		"slashes":  strings.Repeat("/", 60000),
		"brackets": strings.Repeat("`<", 30000),
		"numbers":  strings.Repeat("12345 ", 10000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				ledger(text).Text("", 400, count)
			}
		})
	}
}

// count stands for a tokenizer: a token is four bytes.
func count(text string) int { return (len(text) + 3) / 4 }
