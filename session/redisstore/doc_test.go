package redisstore

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedTestsExist: the tests that docs/threats.md names for each fault of Redis exist.
func TestDocumentedTestsExist(t *testing.T) {
	page, err := os.ReadFile("../../docs/threats.md")
	must(t, err)
	_, doc, _ := strings.Cut(string(page), "\n## Faults of Redis\n")
	doc, _, _ = strings.Cut(doc, "\n## ")
	var all strings.Builder
	for _, dir := range []string{".", "..", "../../internal/test/e2e", "../../internal/serve/app"} {
		files, err := filepath.Glob(dir + "/*_test.go")
		must(t, err)
		for _, file := range files {
			text, err := os.ReadFile(file)
			must(t, err)
			all.Write(text)
		}
	}
	names := regexp.MustCompile(`\bTest\w+`).FindAllString(doc, -1)
	if len(names) < 20 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if !strings.Contains(all.String(), "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("there is no %s", name)
		}
	}
}
