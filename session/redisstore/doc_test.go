package redisstore

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumentedTestsExist: the tests that docs/redis.md names for each fault exist.
func TestDocumentedTestsExist(t *testing.T) {
	doc, err := os.ReadFile("../../docs/redis.md")
	must(t, err)
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
	names := regexp.MustCompile(`\bTest\w+`).FindAllString(string(doc), -1)
	if len(names) < 20 {
		t.Errorf("only %d tests are named", len(names))
	}
	for _, name := range names {
		if !strings.Contains(all.String(), "\nfunc "+name+"(t *testing.T)") {
			t.Errorf("there is no %s", name)
		}
	}
}
