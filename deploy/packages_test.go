package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestSystemdAcceptsThePackagedUnit lets systemd check the unit of the packages, if it is installed.
func TestSystemdAcceptsThePackagedUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT TESTED: systemd is not installed")
	}
	dir := t.TempDir()
	program, unit := filepath.Join(dir, "dewpoint"), filepath.Join(dir, "dewpoint.service")
	const installed = "/usr/bin/dewpoint "
	text := string(read(t, "packages/dewpoint.service"))
	if strings.Count(text, installed) != 1 {
		t.Fatalf("the unit does not run %s", installed)
	}
	for name, content := range map[string]string{program: "#!/bin/sh\n", unit: strings.Replace(text, installed, program+" ", 1)} {
		if err := os.WriteFile(name, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), "dewpoint.service:") {
		t.Errorf("%v\n%s", err, out)
	}
}
