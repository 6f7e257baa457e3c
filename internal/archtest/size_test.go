package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// ratchets are how many lines of Go each part of the house may have, without tests and generated code. They go down with what is
// taken out, and up only with a reason in the commit.
var ratchets = map[string]int{"product": 51_500, "lab": 9_000, "test support": 7_900}

// support is what only tests and the build use.
var support = []string{"session/sessiontest/", "condense/condensetest/", "internal/fakeupstream/", "internal/process/", "internal/lineartest/", "deploy/", "tools/"}

// partOf names the part of the house that a file, by its path from the root, belongs to.
func partOf(path string) string {
	switch in := func(dir string) bool { return strings.HasPrefix(path, dir) }; {
	case in(labDir):
		return "lab"
	case slices.ContainsFunc(support, in):
		return "test support"
	}
	return "product"
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestSizes(t *testing.T) {
	const root = "../.."
	sizes := map[string]int{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil || generated.Match(text) {
			return err
		}
		inside, err := filepath.Rel(root, path)
		sizes[partOf(filepath.ToSlash(inside))] += bytes.Count(text, []byte("\n"))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for part, most := range ratchets {
		t.Logf("%s: %d lines of %d", part, sizes[part], most)
		if sizes[part] > most {
			t.Errorf("%s has %d lines, more than %d: take something out", part, sizes[part], most)
		}
	}
}
