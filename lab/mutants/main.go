// Command mutants breaks rules of the product, one at a time, and checks that tests notice. Each entry of mutants.txt replaces a text in a file;
// the tests of a package must then fail. The compiler reads the changed file from a temporary folder, so the work tree stays as it is.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	only := flag.String("only", "", "try only entries whose package and file match this regular expression")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, *only)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run tries the mutants whose package and file match only, and lists those that were not caught.
func run(ctx context.Context, only string) error {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	mutants, err := readList()
	if err != nil {
		return err
	}
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !chosen.MatchString(m.pkg + " " + m.path()) })
	begun, uncaught, tried := time.Now(), "", 0
	if err := testUnchanged(ctx, mutants); err != nil {
		return err
	}
	for _, m := range mutants {
		started, verdict := time.Now(), "caught"
		err := m.try(ctx)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			verdict = err.Error()
			uncaught += fmt.Sprintf("\n%s: %s\n- %s\n+ %s\n", m.path(), verdict, m.old, m.changed)
		}
		tried++
		fmt.Printf("%3d/%d %5.1f s  %s: %s\n", tried, len(mutants), time.Since(started).Seconds(), m.path(), verdict)
	}
	fmt.Printf("%s\n%d of %d mutants tried in %.0f s\n", uncaught, tried, len(mutants), time.Since(begun).Seconds())
	if uncaught != "" || tried < len(mutants) || tried == 0 {
		return errors.New("not all mutants were caught")
	}
	return nil
}

// testUnchanged checks that the tests pass without a mutant, run as they are with one. If they did not, they would seem to catch each one.
func testUnchanged(ctx context.Context, mutants []mutant) error {
	patterns := map[string][]string{}
	for _, m := range mutants {
		patterns[m.pkg] = append(patterns[m.pkg], m.tests)
	}
	for pkg, tests := range patterns {
		passed, out, err := test(ctx, trial{pkg: pkg, tests: strings.Join(tests, "|"), timeout: 10 * time.Minute})
		if err == nil && !passed {
			err = fmt.Errorf("they fail:\n%s", out)
		}
		if err != nil {
			return fmt.Errorf("test %s without a mutant: %w", pkg, err)
		}
	}
	return nil
}

// mutant is an entry of the list. The file is relative to the package, whose tests must fail.
type mutant struct{ pkg, file, tests, old, changed string }

func (m mutant) path() string { return filepath.Join(m.pkg, m.file) }

var comment = regexp.MustCompile(`(?m)^#.*\n`)

func readList() ([]mutant, error) {
	list, err := os.ReadFile("lab/mutants/mutants.txt") // in the root of the module
	if err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	return parse(comment.ReplaceAllString(string(list), ""))
}

func parse(list string) (mutants []mutant, err error) {
	for entry := range strings.SplitSeq(list, "\n\n") {
		head, change, _ := strings.Cut(strings.Trim(entry, "\n"), "\n")
		words, lines := append(strings.Fields(head), ""), map[byte][]string{}
		for line := range strings.SplitSeq(change, "\n") {
			if len(line) > 1 && line[1] == ' ' {
				lines[line[0]] = append(lines[line[0]], line[2:])
			}
		}
		n := len(lines['-']) + len(lines['+'])
		switch {
		case head == "":
			continue
		case len(words) < 3 || len(words) > 4 || len(lines['-']) == 0 || n != strings.Count(change, "\n")+1:
			return nil, fmt.Errorf("want PACKAGE FILE [TESTS], lines that begin with -, and lines that begin with +, not:\n%s", entry)
		}
		mutants = append(mutants, mutant{words[0], words[1], words[2], strings.Join(lines['-'], "\n"), strings.Join(lines['+'], "\n")})
	}
	return mutants, nil
}

// apply returns the text of the file with the mutant. It fails unless the old text occurs exactly once: the list must not rot.
func (m mutant) apply() (string, error) {
	text, err := os.ReadFile(m.path())
	if err != nil {
		return "", fmt.Errorf("read what to change: %w", err)
	}
	if n := strings.Count(string(text), m.old); n != 1 || m.old == m.changed {
		return "", fmt.Errorf("%s: the old text occurs %d times, want once, and a change:\n%s", m.path(), n, m.old)
	}
	return strings.Replace(string(text), m.old, m.changed, 1), nil
}

// try builds the tests of the mutant's package with it and runs them. The error says why it was not caught.
func (m mutant) try(ctx context.Context) error {
	text, err := m.apply()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	path, err := filepath.Abs(m.path())
	replaced, _ := json.Marshal(map[string]map[string]string{"Replace": {path: changed}}) // strings always encode
	if err = errors.Join(err, os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, replaced, 0o600)); err != nil {
		return fmt.Errorf("write the mutant: %w", err)
	}
	passed, _, err := test(ctx, trial{pkg: m.pkg, tests: m.tests, overlay: overlay, timeout: 2 * time.Minute})
	if err == nil && passed {
		return errors.New("SURVIVED")
	}
	return err
}

// trial is a run of the tests of a package whose names match a pattern. The overlay names what the compiler reads in place of files; it may be
// empty.
type trial struct {
	pkg, tests, overlay string
	timeout             time.Duration
}

// test builds and runs the tests of a trial. It returns whether they pass, and what they print. Tests that cannot be built, do not exist or
// do not end prove nothing: that is an error.
func test(ctx context.Context, t trial) (passed bool, out string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return false, "", fmt.Errorf("make a temporary folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tests := filepath.Join(dir, "tests")
	out, err = command(ctx, "", "go", "test", "-c", "-ldflags=-w", "-overlay="+t.overlay, "-o", tests, "./"+t.pkg)
	if err != nil {
		return false, out, fmt.Errorf("the tests cannot be built: %w\n%s", err, out)
	}
	out, err = command(ctx, t.pkg, tests, "-test.short", "-test.failfast", "-test.timeout="+t.timeout.String(), "-test.run="+t.tests)
	_, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case failed && strings.Contains(out, "panic: test timed out after"):
		return false, out, fmt.Errorf("TIMED OUT after %v: the tests hang, or the machine is too busy", t.timeout)
	case failed:
		return false, out, nil
	case err != nil:
		return false, out, err
	case strings.Contains(out, "no tests to run"):
		return false, out, fmt.Errorf("no test matches %s", t.tests)
	}
	return true, out, nil
}

// command runs a program in a folder and returns its output. If ctx ends, the program is interrupted.
func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.WaitDelay = dir, 10*time.Second
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	out, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return string(out), err
}
