package archtest

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ratchets are the maximum lines of Go in each part of the module, without tests and generated code. Lower them after removing
// code. Raising one needs a reason in the commit message.
var ratchets = map[string]int{"product": 51_642, "lab": 8_863, "test support": 6_596}

// support lists the directories that only tests and the build use.
var support = []string{"session/sessiontest/", "condense/condensetest/", "internal/fakeupstream/", "internal/process/", "internal/lineartest/", "deploy/", "tools/"}

// partOf returns the part of the module to which a file belongs, by its path from the root.
func partOf(path string) string {
	if strings.HasPrefix(path, labDir) {
		return "lab"
	}
	for _, dir := range support {
		if strings.HasPrefix(path, dir) {
			return "test support"
		}
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
	for part, limit := range ratchets {
		t.Logf("%s: %d lines of %d", part, sizes[part], limit)
		if sizes[part] > limit {
			t.Errorf("%s has %d lines, more than %d: remove some", part, sizes[part], limit)
		}
	}
}
