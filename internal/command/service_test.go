package command

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/login"
)

// serviceIn is a service in a folder of the test. Its commands are recorded; with an error they fail.
func serviceIn(t *testing.T, text string, fails error) (s userService, out *bytes.Buffer, commands *[]string) {
	t.Helper()
	dir := t.TempDir()
	out, commands = &bytes.Buffer{}, &[]string{}
	return userService{
		login.Plan{
			Path: filepath.Join(dir, "user", "dewpoint.service"), Link: filepath.Join(dir, "user", "wants", "dewpoint.service"), Text: login.Mark + text,
			Start: [][]string{{"start"}}, Stop: [][]string{{"stop"}}, Status: [][]string{{"status"}},
		},
		out,
		func(_ context.Context, words []string) (string, error) {
			*commands = append(*commands, words...)
			return "said so", fails
		},
	}, out, commands
}

// TestServiceIsInstalledOnce: installing shows what is written, and doing it again changes nothing.
func TestServiceIsInstalledOnce(t *testing.T) {
	s, out, commands := serviceIn(t, "\nExecStart=x\n", nil)
	for n, says := range []string{"ExecStart=x", "is as it should be"} {
		out.Reset()
		if err := s.install(t.Context()); err != nil || !strings.Contains(out.String(), says) || !strings.Contains(out.String(), s.plan.Path) {
			t.Errorf("time %d: %v\n%s", n+1, err, out)
		}
	}
	text, err := os.ReadFile(s.plan.Link)
	if err != nil || string(text) != s.plan.Text || !slices.Equal(*commands, []string{"stop", "start", "status"}) {
		t.Errorf("%v: %s; %v", err, text, *commands)
	}
}

// TestServiceNeedsAManager: on a system that runs nothing at login, no file is written.
func TestServiceNeedsAManager(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no plan")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("PATH", t.TempDir())
	err := serviceCommand(t.Context(), []string{"install"}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("it says %v", err)
	}
	if written, _ := os.ReadDir(home); len(written) > 0 {
		t.Errorf("it wrote %v", written)
	}
}

// TestServiceIsReplacedByAnother: installing with other settings replaces our file, and no other.
func TestServiceIsReplacedByAnother(t *testing.T) {
	s, _, _ := serviceIn(t, " old", nil)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(s.install(t.Context()))
	s.plan.Text = login.Mark + " new"
	ok(s.install(t.Context()))
	if text, _ := os.ReadFile(s.plan.Path); string(text) != s.plan.Text {
		t.Errorf("%s", text)
	}
	ok(os.WriteFile(s.plan.Path, []byte("somebody else's"), 0o600))
	for name, do := range map[string]func(context.Context) error{"install": s.install, "remove": s.remove} {
		if err := do(t.Context()); err == nil || !strings.Contains(err.Error(), s.plan.Path) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, _ := os.ReadFile(s.plan.Path); string(text) != "somebody else's" {
		t.Errorf("%s", text)
	}
}

// TestServiceIsInstalledWithoutASession: where the system's commands fail, as in a container, the service is there for the next login.
func TestServiceIsInstalledWithoutASession(t *testing.T) {
	s, out, _ := serviceIn(t, "", errors.New("exit status 1"))
	if err := s.install(t.Context()); err != nil || !strings.Contains(out.String(), "'start' failed (exit status 1): said so") ||
		!strings.Contains(out.String(), "It starts when you log in") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := s.status(t.Context()); err == nil || !strings.Contains(err.Error(), "it does not run") {
		t.Error(err)
	}
	if err := s.remove(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(s.plan.Link); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the link is still there: %v", err)
	}
}

// TestServiceIsRemovedOnce: removing stops it and leaves nothing, and doing it again is no error.
func TestServiceIsRemovedOnce(t *testing.T) {
	s, out, commands := serviceIn(t, "", nil)
	if err := errors.Join(s.install(t.Context()), s.remove(t.Context())); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := s.remove(t.Context()); err != nil || !strings.Contains(out.String(), "not installed") || !slices.Equal(*commands, []string{"stop", "start", "stop"}) {
		t.Errorf("%v, %v\n%s", err, *commands, out)
	}
	if err := s.status(t.Context()); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Error(err)
	}
}
