package platform

import (
	"errors"
	"path/filepath"
	"runtime"
)

// StateFolder returns the folder where the operating system wants a program of this name to keep a user's state. It does not create the
// folder. getenv reads the environment. The error says that the user has no home folder.
//
//   - Linux and others: $XDG_STATE_HOME, or ~/.local/state (https://specifications.freedesktop.org/basedir-spec/latest)
//   - macOS: ~/Library/Application Support
//   - Windows: %LOCALAPPDATA%
func StateFolder(name string, getenv func(string) string) (string, error) {
	return stateFolder(runtime.GOOS, name, getenv)
}

func stateFolder(system, name string, getenv func(string) string) (string, error) {
	home := getenv("HOME")
	switch {
	case system == "windows" && getenv("LOCALAPPDATA") != "":
		return filepath.Join(getenv("LOCALAPPDATA"), name), nil
	case system == "windows":
		return "", errors.New("%LOCALAPPDATA% is not set")
	case system != "darwin" && filepath.IsAbs(getenv("XDG_STATE_HOME")): // a relative path is to be ignored
		return filepath.Join(getenv("XDG_STATE_HOME"), name), nil
	case home == "":
		return "", errors.New("there is no home folder: $HOME is not set")
	case system == "darwin":
		return filepath.Join(home, "Library", "Application Support", name), nil
	}
	return filepath.Join(home, ".local", "state", name), nil
}
