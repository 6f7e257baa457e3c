package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/login"
)

// serviceCommand installs, removes, or asks about the service that runs the proxy when its user logs in.
func serviceCommand(ctx context.Context, args []string, out, errs io.Writer) error {
	set := flags("service", errs)
	config := set.String("config", "", "configuration that the service reads, YAML or TOML")
	if err := parse(set, args, out); err != nil {
		return err
	}
	if set.NArg() != 1 {
		return usageError{errors.New("dewpoint: service takes one of install, remove, status")}
	}
	plan, err := servicePlan(*config)
	if err != nil {
		return err
	}
	s := userService{plan, out, execute}
	switch set.Arg(0) {
	case "install":
		if manager := plan.Start[0][0]; !installed(manager) {
			return fmt.Errorf("this system has no %s, which would run it at login, so nothing was written: start 'dewpoint' as your system starts services, "+
				"or use 'dewpoint run -- AGENT', which needs none", manager)
		}
		return s.install(ctx)
	case "remove":
		return s.remove(ctx)
	case "status":
		return s.status(ctx)
	}
	return usageError{fmt.Errorf("dewpoint: service knows install, remove and status, not %q", set.Arg(0))}
}

func installed(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

// servicePlan is this system's plan for this program.
func servicePlan(config string) (login.Plan, error) {
	program, err := ownPath()
	if err != nil {
		return login.Plan{}, err
	}
	words := []string{"serve"}
	if config != "" {
		if config, err = filepath.Abs(config); err != nil {
			return login.Plan{}, err
		}
		words = append(words, "--config", config)
	}
	return login.New(login.Session{System: runtime.GOOS, Getenv: os.Getenv, User: os.Getuid(), Program: program, Args: words})
}

// ownPath is the path of this program: that on the PATH if it is the same file, since a package manager keeps that path when it installs
// another version.
func ownPath() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program: %w", err)
	}
	found, err := exec.LookPath(login.Name)
	if err != nil {
		return own, nil //nolint:nilerr // it is not on the PATH
	}
	found, err = filepath.Abs(found)
	if err != nil {
		return own, nil //nolint:nilerr // the folder is gone, so a path within it is no use
	}
	a, errA := os.Stat(own)
	b, errB := os.Stat(found)
	if errA == nil && errB == nil && os.SameFile(a, b) {
		return found, nil
	}
	return own, nil
}

// userService is a service of a user, by its plan.
type userService struct {
	plan login.Plan
	out  io.Writer
	run  func(context.Context, []string) (string, error)
}

// execute runs a command and returns what it printed.
func execute(ctx context.Context, words []string) (string, error) {
	printed, err := exec.CommandContext(ctx, words[0], words[1:]...).CombinedOutput() //nolint:gosec // commands of a plan
	return strings.TrimSpace(string(printed)), err
}

// install writes the file and starts the service, unless it runs as it should. Where the system's commands fail, as without a session of systemd, the service starts at the
// next login.
func (s userService) install(ctx context.Context) error {
	written, err := s.write()
	if err != nil {
		return err
	}
	if written {
		fmt.Fprintf(s.out, "Wrote %s:\n\n%s\n", s.plan.Path, s.plan.Text)
	} else {
		fmt.Fprintf(s.out, "%s is as it should be.\n", s.plan.Path)
	}
	if err := s.link(); err != nil {
		return err
	}
	if !written && s.succeed(ctx, s.plan.Status) {
		fmt.Fprintln(s.out, "Dewpoint runs, and starts when you log in.")
		return nil
	}
	s.succeed(ctx, s.plan.Stop) // one with other settings; there may be none
	if !s.all(ctx, s.plan.Start) {
		fmt.Fprintln(s.out, "Dewpoint was not started now. It starts when you log in.")
		return nil
	}
	fmt.Fprintln(s.out, "Dewpoint is started, and starts when you log in. 'dewpoint service remove' undoes this.")
	return nil
}

// write writes the file, unless it is there with the same text. A file that somebody else wrote is an error.
func (s userService) write() (bool, error) {
	old, err := os.ReadFile(s.plan.Path)
	switch {
	case err == nil && string(old) == s.plan.Text:
		return false, nil
	case err == nil && !bytes.Contains(old, []byte(login.Mark)):
		return false, fmt.Errorf("%s was not written by this command: remove it first, if you do not need it", s.plan.Path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(s.plan.Path), 0o755); err != nil { //nolint:gosec // the folder of all the user's services
		return false, err
	}
	return true, os.WriteFile(s.plan.Path, []byte(s.plan.Text), 0o644) //nolint:gosec // it has no secrets
}

// link makes the link by which the system finds the file at login.
func (s userService) link() error {
	if s.plan.Link == "" {
		return nil
	}
	if target, err := os.Readlink(s.plan.Link); err == nil && target == s.plan.Path {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(s.plan.Link), 0o755); err != nil { //nolint:gosec // as above
		return err
	}
	if err := os.Remove(s.plan.Link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(s.plan.Path, s.plan.Link)
}

// all runs commands and says what fails. It stops at the first failure.
func (s userService) all(ctx context.Context, commands [][]string) bool {
	for _, words := range commands {
		if printed, err := s.run(ctx, words); err != nil {
			fmt.Fprintf(s.out, "'%s' failed (%v): %s\n", strings.Join(words, " "), err, printed)
			return false
		}
	}
	return true
}

// succeed runs commands and reports whether all of them succeed.
func (s userService) succeed(ctx context.Context, commands [][]string) bool {
	for _, words := range commands {
		if _, err := s.run(ctx, words); err != nil {
			return false
		}
	}
	return true
}

// remove stops the service and removes its file.
func (s userService) remove(ctx context.Context) error {
	old, err := os.ReadFile(s.plan.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		fmt.Fprintf(s.out, "Dewpoint is not installed as a service: there is no %s.\n", s.plan.Path)
		return nil
	case err != nil:
		return err
	case !bytes.Contains(old, []byte(login.Mark)):
		return fmt.Errorf("%s was not written by 'dewpoint service install': it stays", s.plan.Path)
	}
	s.all(ctx, s.plan.Stop)
	for _, path := range []string{s.plan.Link, s.plan.Path} {
		if path == "" {
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		fmt.Fprintf(s.out, "Removed %s.\n", path)
	}
	return nil
}

// status prints whether the service is installed, and what the system says of it.
func (s userService) status(ctx context.Context) error {
	if _, err := os.Stat(s.plan.Path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("not installed as a service: there is no %s. 'dewpoint service install' installs it", s.plan.Path)
	} else if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "Installed: %s\n", s.plan.Path)
	for _, words := range s.plan.Status {
		printed, err := s.run(ctx, words)
		fmt.Fprintln(s.out, printed)
		if err != nil {
			return fmt.Errorf("it does not run: '%s' says %w", strings.Join(words, " "), err)
		}
	}
	return nil
}
