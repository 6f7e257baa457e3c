package archtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLinksLeadSomewhere: the target of every relative link in the documentation exists.
func TestLinksLeadSomewhere(t *testing.T) {
	const root = "../../.."
	link := regexp.MustCompile(`\]\(([^)\s:]+)\)`)
	found := 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			target, _, _ := strings.Cut(m[1], "#")
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); target != "" && err != nil {
				t.Errorf("%s links to %s, which does not exist", strings.TrimPrefix(path, root+"/"), m[1])
			}
			found++
		}
		return nil
	})
	if err != nil || found < 20 {
		t.Fatalf("%d links: %v", found, err)
	}
}
