package retention

import (
	"reflect"
	"strings"
	"testing"
)

func TestReferences(t *testing.T) {
	tests := map[string]struct {
		text string
		want []Reference
	}{
		"plain words":        {"Let me look at this and/or that, e.g. now.", nil},
		"a relative path":    {"open src/pkg/main.go:120 please", []Reference{{Path, "src/pkg/main.go"}, {Number, "120"}}},
		"rooted paths":       {"ls /usr/lib ../up ./here ~/home", []Reference{{Path, "/usr/lib"}, {Path, "../up"}, {Path, "./here"}, {Path, "~/home"}}},
		"paths side by side": {"a/b.go b/c.go", []Reference{{Path, "a/b.go"}, {Path, "b/c.go"}}},
		"a lone file name":   {"see README.md.", []Reference{{Path, "README.md"}}},
		"a url":              {"get https://example.com/a?b=1, then", []Reference{{URL, "https://example.com/a?b=1"}}},
		"a url is no path":   {"(http://x.org/a/b/c)", []Reference{{URL, "http://x.org/a/b/c"}}},
		"error names":        {"ValueError: ENOENT, SIGTERM and ERR_BAD", []Reference{{Error, "ValueError"}, {Error, "ENOENT"}, {Error, "SIGTERM"}, {Error, "ERR_BAD"}}},
		"identifiers":        {"call parse_args or readFile of os.environ", []Reference{{Identifier, "parse_args"}, {Identifier, "readFile"}, {Identifier, "os.environ"}}},
		"ids":                {"commit 4f1a2c0, ticket INV-4821", []Reference{{Identifier, "4f1a2c0"}, {Identifier, "INV-4821"}}},
		"numbers":            {"12 of 345 on 2024-05-11 at 1.25", []Reference{{Number, "345"}, {Number, "2024-05-11"}, {Number, "1.25"}}},
		"quoted literals":    {`say "not found" or 'x y' or ` + "`go vet`", []Reference{{Literal, "not found"}, {Literal, "x y"}, {Literal, "go vet"}}},
		"no literals":        {`don't and it's, " spaced ", "--"`, nil},
		"once":               {"main.go main.go", []Reference{{Path, "main.go"}}},
		"too short":          {`a "b" c`, nil},
	}
	x := NewExtractor()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := x.References(test.text); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func FuzzReferences(f *testing.F) {
	f.Add("open src/main.go:12 \"a b\" https://x.org/y ValueError parse_args 12345")
	f.Add("é'ä'/ü/b.go\xff\"\xff\"")
	x := NewExtractor()
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, r := range x.References(text) {
			if len(r.Text) < minReference || len(r.Text) > maxReference || seen[r.Text] {
				t.Errorf("%q: bad reference %q", text, r.Text)
			}
			seen[r.Text] = true
			if !strings.Contains(text, r.Text) {
				t.Errorf("%q does not hold %q", text, r.Text)
			}
		}
	})
}
