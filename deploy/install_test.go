package deploy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// release has the files of a release by path, as a release page serves them.
func release(t *testing.T, platform, version string) map[string][]byte {
	t.Helper()
	name := "dewpoint_" + version + "_" + platform
	var packed bytes.Buffer
	zip := gzip.NewWriter(&packed)
	tape := tar.NewWriter(zip)
	program := []byte("#!/bin/sh\necho dewpoint " + version + "\n")
	if err := tape.WriteHeader(&tar.Header{Name: name + "/dewpoint", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	tape.Write(program)
	tape.Close()
	zip.Close()
	sums := fmt.Appendf(nil, "%064d  dewpoint_%s_plan9_amd64.tar.gz\n%x  %s.tar.gz\n", 7, version, sha256.Sum256(packed.Bytes()), name)
	return map[string][]byte{"SHA256SUMS": sums, name + ".tar.gz": packed.Bytes()}
}

// install runs the script against a server that has these files below a folder.
func install(t *testing.T, folder string, files map[string][]byte, environment ...string) (out, home string, err error) {
	t.Helper()
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file, found := files[strings.TrimPrefix(r.URL.Path, folder)]
		if !found {
			http.NotFound(w, r)
			return
		}
		w.Write(file)
	}))
	t.Cleanup(pages.Close)
	home = t.TempDir()
	script := exec.Command("sh", "../scripts/install.sh")
	script.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "no_proxy=127.0.0.1", "DEWPOINT_BASE_URL=" + pages.URL}, environment...)
	text, err := script.CombinedOutput()
	return string(text), home, err
}

func platform(t *testing.T) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("SKIPPED: the script is for systems with sh")
	}
	return runtime.GOOS + "_" + runtime.GOARCH
}

// TestInstallScript: the newest release or a given one is installed, and whoever has no such folder on the PATH is told what to do.
func TestInstallScript(t *testing.T) {
	files := release(t, platform(t), "1.2.3")
	out, home, err := install(t, "/latest/download/", files)
	if want := filepath.Join(home, ".local", "bin"); err != nil || !strings.Contains(out, "Installed dewpoint 1.2.3, in "+want) ||
		!strings.Contains(out, `export PATH="`+want+`:$PATH"`) {
		t.Errorf("%v\n%s", err, out)
	}
	bin := t.TempDir()
	out, _, err = install(t, "/download/v1.2.3/", files, "DEWPOINT_VERSION=v1.2.3", "DEWPOINT_BIN="+bin, "PATH="+bin+":"+os.Getenv("PATH"))
	if err != nil || !strings.Contains(out, "Start it with: dewpoint") {
		t.Errorf("%v\n%s", err, out)
	}
	if left, _ := os.ReadDir(bin); len(left) != 1 || left[0].Name() != "dewpoint" {
		t.Errorf("the folder has %v", left)
	}
}

// TestInstallScriptInstallsNothingUnverified: what is not as the checksums say, or is not there, is not installed.
func TestInstallScriptInstallsNothingUnverified(t *testing.T) {
	own := platform(t)
	f := func(want string, change func(files map[string][]byte)) {
		t.Helper()
		files := release(t, own, "1.2.3")
		change(files)
		out, home, err := install(t, "/latest/download/", files)
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v: %s, want %s", err, out, want)
		}
		if left, _ := os.ReadDir(filepath.Join(home, ".local", "bin")); len(left) > 0 {
			t.Errorf("%s: installed %v", want, left)
		}
	}
	f("has another checksum", func(files map[string][]byte) { files["dewpoint_1.2.3_"+own+".tar.gz"] = []byte("another") })
	f("no archive for "+own, func(files map[string][]byte) {
		files["SHA256SUMS"] = bytes.ReplaceAll(files["SHA256SUMS"], []byte(own), []byte("beos_ppc"))
	})
	f("cannot download", func(files map[string][]byte) { delete(files, "SHA256SUMS") })
	f("cannot download", func(files map[string][]byte) { delete(files, "dewpoint_1.2.3_"+own+".tar.gz") })
}
