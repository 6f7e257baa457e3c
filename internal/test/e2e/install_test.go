package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	running "github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// noClients is the environment variable that lets tests pass if the clients cannot be installed.
const noClients = "DEWPOINT_TEST_NO_CLIENTS"

// installing bounds the time of a package manager, which may have to download.
const installing = 5 * time.Minute

// missing ends a test that lacks a program, unless it may be skipped. The details are the output of programs.
func missing(t testing.TB, what, advice string, details ...string) {
	t.Helper()
	if os.Getenv(noClients) == "1" {
		t.Skipf("NOT TESTED: %s, and %s=1 allows to go on without it", what, noClients)
	}
	t.Fatalf("%s: %s, or set %s=1 to skip the tests with real clients\n%s", what, advice, noClients, strings.Join(details, "\n"))
}

// installBy runs a package manager. If it cannot reach its registry the test is skipped, which the gate reports; any other error
// is a failure.
func installBy(t testing.TB, dir, program string, args ...string) {
	t.Helper()
	_, errs, err := runIn(t, dir, nil, program, args...)
	switch {
	case err == nil:
	case unreachable(errs):
		t.Skipf("NOT TESTED: %s cannot reach its registry", filepath.Base(program))
	default:
		missing(t, program+" "+strings.Join(args, " ")+" fails", "see below", errs)
	}
}

// unreachable reports whether a package manager's error is that it has no network.
func unreachable(errs string) bool {
	for _, words := range [...]string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "Failed to establish a new connection",
		"name resolution", "Connection refused", "timed out", "Network is unreachable"} {
		if strings.Contains(errs, words) {
			return true
		}
	}
	return false
}

func need(t testing.TB, program, advice string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, program+" is not installed", advice)
	}
	return path
}

// inCache returns a folder that install fills once. Later runs find it again as long as its inputs, the files of the clients
// folder and the program's version, stay the same.
func inCache(t testing.TB, kind, version string, files []string, install func(dir string)) string {
	t.Helper()
	sum := sha256.New()
	sum.Write([]byte(version))
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join("clients", name))
		ok(t, err)
		sum.Write(content)
	}
	root, err := os.UserCacheDir()
	if err != nil {
		root = os.TempDir()
	}
	dir := filepath.Join(root, "dewpoint-e2e", kind+"-"+hex.EncodeToString(sum.Sum(nil)[:8]))
	ok(t, os.MkdirAll(filepath.Dir(dir), 0o700))
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	ok(t, err)
	defer lock.Close()
	ok(t, syscall.Flock(int(lock.Fd()), syscall.LOCK_EX)) // tests that need the same folder run at the same time
	done := filepath.Join(dir, "installed")
	if _, err := os.Stat(done); err == nil {
		return dir
	}
	ok(t, os.RemoveAll(dir)) // remove the files of an interrupted run
	ok(t, os.MkdirAll(dir, 0o700))
	for _, name := range files {
		content, err := os.ReadFile(filepath.Join("clients", name))
		ok(t, err)
		ok(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
		ok(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
	}
	install(dir)
	ok(t, os.WriteFile(done, nil, 0o600))
	return dir
}

// runIn runs a program in a folder and returns its output.
func runIn(t testing.TB, dir string, environment []string, program string, args ...string) (out, errs string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), installing)
	defer cancel()
	var stdout, stderr bytes.Buffer
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env, c.SysProcAttr = dir, append(os.Environ(), environment...), running.DieWithParent(syscall.SIGKILL)
	c.Stdout, c.Stderr = &stdout, &stderr
	err = c.Run()
	return stdout.String(), stderr.String(), err
}

func versionOf(t testing.TB, program string) string {
	t.Helper()
	out, errs, err := runIn(t, ".", nil, program, "--version")
	if err != nil {
		missing(t, program+" does not run", "repair its installation", errs)
	}
	return out
}

// nodeClient installs the npm packages, and returns how to run a script with them.
func nodeClient(t testing.TB) (script func(name string) []string) {
	t.Helper()
	node := need(t, "node", "install Node.js 20 or newer")
	npm := need(t, "npm", "install npm")
	files := []string{"package.json", "package-lock.json", ".npmrc", "loop.mjs", "items.mjs", "turns.mjs", "steps.mjs"}
	dir := inCache(t, "node", versionOf(t, node), files, func(dir string) {
		installBy(t, dir, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	return func(name string) []string { return []string{node, filepath.Join(dir, name+".mjs")} }
}

// pythonClient is nodeClient for the PyPI packages.
func pythonClient(t testing.TB) (script func(name string) []string) {
	t.Helper()
	python := need(t, "python3", "install Python 3.11 or newer with its venv module")
	files := []string{"requirements.txt", "loop.py", "items.py", "turns.py", "runner.py", "memory.py"}
	dir := inCache(t, "python", versionOf(t, python), files, func(dir string) {
		if _, errs, err := runIn(t, dir, nil, python, "-m", "venv", "venv"); err != nil {
			missing(t, "python3 cannot make a virtual environment", "install its venv module", errs)
		}
		installBy(t, dir, filepath.Join(dir, "venv", "bin", "python"), "-m", "pip", "install", "--quiet",
			"--disable-pip-version-check", "-r", "requirements.txt")
	})
	return func(name string) []string {
		return []string{filepath.Join(dir, "venv", "bin", "python"), filepath.Join(dir, name+".py")}
	}
}

func TestUnreachable(t *testing.T) {
	for errs, want := range map[string]bool{
		"npm error code ENOTFOUND\nnpm error network request to https://registry.example failed":                           true,
		"WARNING: Retrying ... NewConnectionError('Failed to establish a new connection: [Errno 111] Connection refused')": true,
		"npm error code EUSAGE\nnpm error `npm ci` can only install packages with an existing package-lock.json":           false,
		"ERROR: Could not find a version that satisfies the requirement openai==0":                                         false,
	} {
		if got := unreachable(errs); got != want {
			t.Errorf("%q: %v", errs, got)
		}
	}
}
