package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// patience bounds every wait for an immediate event. Only a defect uses it up.
const patience = 60 * time.Second

// binary is the program under test, built once for all tests.
var binary string

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) != "" {
		os.Exit(playAgent(os.Args[1:]))
	}
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "dewpoint-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "dewpoint")
	build := exec.Command("go", "build", "-o", binary, "github.com/dewpoint-proxy/dewpoint/cmd/proxy")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "e2e: the binary does not build:", err)
		return 1
	}
	return m.Run()
}

// built returns the path of the binary for a test to run. It lists the module's folders, since go test takes a result from its cache unless a
// file that the test has opened or a folder that it has listed is another one: it does not know that the binary is built from them.
func built(t testing.TB) string {
	t.Helper()
	ok(t, listFolders())
	return binary
}

var listFolders = sync.OnceValue(func() error {
	return filepath.WalkDir("../../..", func(path string, entry fs.DirEntry, err error) error {
		if name := entry.Name(); err == nil && entry.IsDir() && (name == "bin" || name[0] == '.' && name != "..") {
			return fs.SkipDir
		}
		return err
	})
})

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
