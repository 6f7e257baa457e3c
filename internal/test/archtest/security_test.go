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

// TestSecurityNamesItsTests: every test named in docs/security.md exists, and every threat in its table has one.
func TestSecurityNamesItsTests(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/security.md")
	if err != nil {
		t.Fatal(err)
	}
	exists := tests(t)
	named := regexp.MustCompile("`((?:Test|Fuzz)[A-Z][A-Za-z0-9]*)`")
	rows := 0
	for line := range strings.Lines(string(doc)) {
		found := named.FindAllStringSubmatch(line, -1)
		for _, name := range found {
			if !exists[name[1]] {
				t.Errorf("docs/security.md names %s, which is not a test", name[1])
			}
		}
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| Threat") {
			continue
		}
		rows++
		if len(found) == 0 {
			t.Errorf("a threat without a test: %.80s", line)
		}
	}
	if rows < 12 {
		t.Errorf("only %d threats were found", rows)
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
