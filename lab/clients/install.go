package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// installing bounds the time of a package manager, which may have to download.
const installing = 10 * time.Minute

// installer installs clients into folders of a cache, each once. It names no registry: the package managers use the user's own.
type installer struct {
	root     string
	versions table
}

// missing says why a client cannot be tested on this machine: there is no network, or no such Python. It is no failure.
type missing struct{ error }

func newInstaller(root string, versions table) (*installer, error) {
	if root == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("find the cache folder: %w", err)
		}
		root = filepath.Join(cache, "dewpoint-clients")
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	return &installer{root, versions}, os.MkdirAll(root, 0o700)
}

// install returns the folder of an installed client, and the folder of programs that it needs on its PATH.
func (i *installer) install(ctx context.Context, c client) (folder, programs string, err error) {
	ctx, cancel := context.WithTimeout(ctx, installing)
	defer cancel()
	if c.Registry == "npm" {
		return i.fromNPM(ctx, c)
	}
	folder, err = i.fromPyPI(ctx, c)
	return folder, filepath.Join(folder, "bin"), err
}

func (i *installer) fromNPM(ctx context.Context, c client) (folder, programs string, err error) {
	runtime := "node-" + platform()
	node, err := i.once(ctx, "node", []string{runtime + "@" + i.versions.Node}, npmInstall("npm"))
	if err != nil {
		return "", "", err
	}
	programs = filepath.Join(node, "node_modules", runtime, "bin")
	folder, err = i.once(ctx, c.Name, c.Packages, npmInstall("npm", "PATH="+programs+string(os.PathListSeparator)+os.Getenv("PATH")))
	return folder, programs, err
}

// npmInstall installs packages without running their scripts, which would download from elsewhere.
func npmInstall(npm string, environment ...string) func(context.Context, string, []string) error {
	return func(ctx context.Context, folder string, packages []string) error {
		if err := os.WriteFile(filepath.Join(folder, "package.json"), []byte(`{"private": true}`), 0o600); err != nil {
			return err
		}
		return command(ctx, folder, environment, npm, append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"}, packages...)...)
	}
}

func (i *installer) fromPyPI(ctx context.Context, c client) (string, error) {
	python, err := findPython(ctx, c.Python)
	if err != nil {
		return "", err
	}
	tools, err := i.once(ctx, "uv", []string{"uv==" + i.versions.UV}, func(ctx context.Context, folder string, packages []string) error {
		if err := command(ctx, folder, nil, "python3", "-m", "venv", folder); err != nil {
			return err
		}
		return command(ctx, folder, nil, filepath.Join(folder, "bin", "pip"), append([]string{"install", "--quiet"}, packages...)...)
	})
	if err != nil {
		return "", err
	}
	uv := filepath.Join(tools, "bin", "uv")
	never := []string{"UV_PYTHON_DOWNLOADS=never", "UV_CACHE_DIR=" + filepath.Join(i.root, "uv-cache")}
	return i.once(ctx, c.Name+c.Python, c.Packages, func(ctx context.Context, folder string, packages []string) error {
		if err := command(ctx, folder, never, uv, "venv", "--quiet", "--allow-existing", "--python", python, folder); err != nil {
			return err
		}
		return command(ctx, folder, never, uv, append([]string{"pip", "install", "--quiet", "--python", filepath.Join(folder, "bin", "python")}, packages...)...)
	})
}

// findPython finds an interpreter of a version, as 3.12: on the PATH, or where pyenv keeps them.
func findPython(ctx context.Context, version string) (string, error) {
	candidates := []string{"python" + version}
	if version == "" {
		candidates = []string{"python3"}
	} else if home, err := os.UserHomeDir(); err == nil {
		more, _ := filepath.Glob(filepath.Join(home, ".pyenv", "versions", version+".*", "bin", "python"+version))
		candidates = append(candidates, more...)
	}
	for _, c := range candidates {
		path, err := exec.LookPath(c)
		if err == nil && command(ctx, ".", nil, path, "-c", "import ensurepip, venv") == nil {
			return path, nil
		}
	}
	return "", missing{fmt.Errorf("there is no Python %s with its venv module on this machine", version)}
}

// once returns a folder that install has filled with packages, now or in an earlier run.
func (i *installer) once(ctx context.Context, name string, packages []string, install func(context.Context, string, []string) error) (string, error) {
	sum := sha256.Sum256([]byte(name + "\n" + strings.Join(packages, "\n")))
	folder := filepath.Join(i.root, strings.Map(plain, name)+"-"+hex.EncodeToString(sum[:6]))
	done := filepath.Join(folder, "installed")
	if _, err := os.Stat(done); err == nil {
		return folder, nil
	}
	if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o700)); err != nil { // what an interrupted run has left
		return "", err
	}
	if err := install(ctx, folder, packages); err != nil {
		if unreachable(err.Error()) {
			return "", missing{err}
		}
		return "", fmt.Errorf("install it: %w", err)
	}
	return folder, os.WriteFile(done, nil, 0o600)
}

// unreachable reports whether a package manager's error is that it cannot reach its registry.
func unreachable(text string) bool {
	for _, words := range [...]string{"ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ENETUNREACH", "Failed to establish a new connection", "name resolution",
		"Connection refused", "timed out", "Network is unreachable", "dns error", "error sending request"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
		return r
	}
	return '-'
}

// command runs a program of a package manager. Its error has the end of what that printed.
func command(ctx context.Context, folder string, environment []string, program string, args ...string) error {
	c := exec.CommandContext(ctx, program, args...)
	var printed bytes.Buffer
	c.Dir, c.Env, c.Stdout, c.Stderr = folder, append(process.Environment(), environment...), io.Discard, &printed
	c.SysProcAttr = process.DieWithParent(syscall.SIGKILL)
	if err := c.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
		return fmt.Errorf("%s: %w: %s", filepath.Base(program), err, strings.Join(lines[max(0, len(lines)-6):], " "))
	}
	return nil
}
