package login

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func plan(t *testing.T, system string, environment map[string]string, words ...string) Plan {
	t.Helper()
	p, err := New(Session{System: system, Getenv: func(name string) string { return environment[name] }, User: 501, Program: words[0], Args: words[1:]})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var home = map[string]string{"HOME": "/home/me"}

// TestUnitIsWhereSystemdLooks: systemd reads a user's units from its configuration folder, and starts those that default.target wants at login.
func TestUnitIsWhereSystemdLooks(t *testing.T) {
	p := plan(t, "linux", home, "/usr/bin/dewpoint")
	if p.Path != "/home/me/.config/systemd/user/dewpoint.service" || p.Link != "/home/me/.config/systemd/user/default.target.wants/dewpoint.service" {
		t.Errorf("%s, %s", p.Path, p.Link)
	}
	p = plan(t, "linux", map[string]string{"HOME": "/home/me", "XDG_CONFIG_HOME": "/conf"}, "/usr/bin/dewpoint")
	if p.Path != "/conf/systemd/user/dewpoint.service" {
		t.Error(p.Path)
	}
	if want := [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "restart", "dewpoint.service"}}; !slices.EqualFunc(p.Start, want, slices.Equal) {
		t.Errorf("%v", p.Start)
	}
}

// TestPathsAreQuoted: systemd would read spaces, specifiers and variables in a path.
func TestPathsAreQuoted(t *testing.T) {
	p := plan(t, "linux", home, "/opt/my tools/100%/dewpoint", "serve", "--config", `/home/me/$x "y"\z.yaml`)
	const want = `ExecStart="/opt/my tools/100%%/dewpoint" "serve" "--config" "/home/me/$$x \"y\"\\z.yaml"` + "\n"
	if !strings.Contains(p.Text, want) {
		t.Errorf("no %s in\n%s", want, p.Text)
	}
}

// TestSystemdAcceptsTheUnit lets systemd check the unit, if it is installed.
func TestSystemdAcceptsTheUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("NOT TESTED: systemd is not installed")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "a program 100%")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "dewpoint.service")
	if err := os.WriteFile(file, []byte(plan(t, "linux", home, program, "serve", "--config", "/etc/$x.yaml").Text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "verify", "--man=no", file).CombinedOutput()
	if err != nil || strings.Contains(string(out), "dewpoint.service") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestPropertyListIsValid: launchd runs the program with these arguments.
func TestPropertyListIsValid(t *testing.T) {
	p := plan(t, "darwin", home, "/Applications/A & B/dewpoint", "serve", "--config", "/Users/me/<x>.yaml")
	if p.Path != "/home/me/Library/LaunchAgents/io.github.dewpoint-proxy.dewpoint.plist" || p.Link != "" {
		t.Errorf("%s, %s", p.Path, p.Link)
	}
	if want := [][]string{{"launchctl", "bootstrap", "gui/501", p.Path}}; !slices.EqualFunc(p.Start, want, slices.Equal) {
		t.Errorf("%v", p.Start)
	}
	var list struct {
		Strings []string `xml:"dict>array>string"`
	}
	if err := xml.Unmarshal([]byte(p.Text), &list); err != nil {
		t.Fatalf("%v\n%s", err, p.Text)
	}
	if want := []string{"/Applications/A & B/dewpoint", "serve", "--config", "/Users/me/<x>.yaml"}; !slices.Equal(list.Strings, want) {
		t.Errorf("%q", list.Strings)
	}
	for dec := xml.NewDecoder(strings.NewReader(p.Text)); ; {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// TestWithoutAPlan: what cannot be installed is refused, with what to do instead.
func TestWithoutAPlan(t *testing.T) {
	f := func(want string, s Session) {
		t.Helper()
		if _, err := New(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	none := func(string) string { return "" }
	f(`schtasks /Create /TN Dewpoint /SC ONLOGON /TR "\"C:\my tools\dewpoint.exe\" serve"`,
		Session{System: "windows", Getenv: none, Program: `C:\my tools\dewpoint.exe`, Args: []string{"serve"}})
	f("$HOME is not set", Session{System: "linux", Getenv: none, Program: "/d"})
	f("line break", Session{System: "linux", Getenv: none, Program: "/d\nExecStart=/bin/rm"})
}
