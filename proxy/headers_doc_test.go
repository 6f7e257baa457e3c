package proxy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestHeadersAreDocumented: docs/headers.md lists exactly the X-Dewpoint headers that the code names.
func TestHeadersAreDocumented(t *testing.T) {
	t.Parallel()
	header := regexp.MustCompile(`X-Dewpoint-[A-Z][A-Za-z-]+[a-z]`)
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{"X-Dewpoint-Session": true} // in package agents, with the headers of others
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, name := range header.FindAllString(read(file), -1) {
			named[name] = true
		}
	}
	page := read("../docs/headers.md")
	for name := range named {
		if !strings.Contains(page, "| `"+name+"` |") {
			t.Errorf("%s is not documented", name)
		}
	}
	for _, name := range header.FindAllString(page, -1) {
		if !named[name] {
			t.Errorf("%s is documented, and there is none", name)
		}
	}
}
