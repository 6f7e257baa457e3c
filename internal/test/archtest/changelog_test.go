package archtest

import (
	"os"
	"strings"
	"testing"
)

// TestChangelogIsShort checks that a version has at most 300 words, so that somebody who upgrades reads them.
func TestChangelogIsShort(t *testing.T) {
	text, err := os.ReadFile("../../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	versions := strings.Split(string(text), "\n## ")[1:]
	if len(versions) == 0 {
		t.Fatal("CHANGELOG.md has no version")
	}
	for _, v := range versions {
		name, _, _ := strings.Cut(v, "\n")
		if n := len(strings.Fields(v)); n > 300 {
			t.Errorf("version %s has %d words, at most 300 are read", name, n)
		}
	}
}
