package retention

import (
	"reflect"
	"strings"
	"testing"
)

func TestReferences(t *testing.T) {
	tests := map[string]struct {
		text string
		want []string
	}{
		"plain words":        {"Let me look at this and/or that, e.g. now.", nil},
		"a relative path":    {"open src/pkg/main.go:120 please", []string{"src/pkg/main.go", "120"}},
		"rooted paths":       {"ls /usr/lib ../up ./here ~/home", []string{"/usr/lib", "../up", "./here", "~/home"}},
		"paths side by side": {"a/b.go b/c.go", []string{"a/b.go", "b/c.go"}},
		"a lone file name":   {"see README.md.", []string{"README.md"}},
		"a url":              {"get https://example.com/a?b=1, then", []string{"https://example.com/a?b=1"}},
		"a url is no path":   {"(http://x.org/a/b/c)", []string{"http://x.org/a/b/c"}},
		"error names":        {"ValueError: ENOENT, SIGTERM and ERR_BAD", []string{"ValueError", "ENOENT", "SIGTERM", "ERR_BAD"}},
		"identifiers":        {"call parse_args or readFile of os.environ", []string{"parse_args", "readFile", "os.environ"}},
		"ids":                {"commit 4f1a2c0, ticket INV-4821", []string{"4f1a2c0", "INV-4821"}},
		"numbers":            {"12 of 345 on 2024-05-11 at 1.25", []string{"345", "2024-05-11", "1.25"}},
		"quoted literals":    {`say "not found" or 'x y' or ` + "`go vet`", []string{"not found", "x y", "go vet"}},
		"no literals":        {`don't and it's, " spaced ", "--"`, nil},
		"once":               {"main.go main.go", []string{"main.go"}},
		"too short":          {`a "b" c`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := references(test.text); !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func FuzzReferences(f *testing.F) {
	f.Add("open src/main.go:12 \"a b\" https://x.org/y ValueError parse_args 12345")
	f.Add("é'ä'/ü/b.go\xff\"\xff\"")
	f.Fuzz(func(t *testing.T, text string) {
		seen := map[string]bool{}
		for _, r := range references(text) {
			if len(r) < minReference || len(r) > maxReference || seen[r] {
				t.Errorf("%q: bad reference %q", text, r)
			}
			seen[r] = true
			if !strings.Contains(text, r) {
				t.Errorf("%q does not hold %q", text, r)
			}
		}
	})
}
