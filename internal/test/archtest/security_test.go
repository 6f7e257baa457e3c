package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsNameTheirTests: every test named in docs/threats.md exists, every threat has one, and so has every attempt.
func TestThreatsNameTheirTests(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/threats.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := tests(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	for _, name := range named.FindAllStringSubmatch(string(doc), -1) {
		if !exists[name[1]] {
			t.Errorf("docs/threats.md names %s, which is not a test", name[1])
		}
	}
	threats, attempts, found := strings.Cut(string(doc), "\n## Attempts\n")
	_, threats, begun := strings.Cut(threats, "\n## Threats\n")
	if !found || !begun {
		t.Fatal("docs/threats.md has no threats or no attempts")
	}
	var all []string
	all = append(all, strings.Split(threats, "\n### ")[1:]...)
	for line := range strings.Lines(attempts) {
		if strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|---") && !strings.HasPrefix(line, "| Threat") {
			all = append(all, line)
		}
	}
	for _, one := range all {
		if !named.MatchString(one) {
			t.Errorf("a threat without a test: %.80s", one)
		}
	}
	if len(all) < 40 {
		t.Errorf("only %d threats and attempts were found", len(all))
	}
}

// tests returns the names of all functions in the module's test files.
func tests(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil {
				names[f.Name.Name] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
