package knowledge

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMounted reads a folder as Kubernetes mounts it: files are links into a hidden folder, through another link that each change replaces.
func TestMounted(t *testing.T) {
	base := t.TempDir()
	mount := filepath.Join(base, "mount")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	release := filepath.Join(mount, "..2026_11_25_00_00_00.1")
	must(os.MkdirAll(release, 0o700))
	must(os.WriteFile(filepath.Join(release, "docker.md"), []byte("---\ntriggers: [docker]\n---\nText."), 0o600))
	must(os.Symlink(filepath.Base(release), filepath.Join(mount, "..data")))
	must(os.Symlink(filepath.Join("..data", "docker.md"), filepath.Join(mount, "docker.md")))
	link := filepath.Join(base, "link")
	must(os.Symlink(mount, link))
	for _, path := range []string{mount, link} {
		f, err := Open(path, func(error) {})
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if got := f.Topics().all; len(got) != 1 || got[0].Name != "docker" {
			t.Errorf("%s: %+v", path, got)
		}
		must(f.Close())
	}
}
