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

// ConfigFolder returns the folder where the operating system wants a program of this name to look for a user's configuration. It is like
// StateFolder:
//
//   - Linux and others: $XDG_CONFIG_HOME, or ~/.config
//   - macOS: ~/Library/Application Support, or $XDG_CONFIG_HOME if that is set
//   - Windows: %APPDATA%
func ConfigFolder(name string, getenv func(string) string) (string, error) {
	return configFolder(runtime.GOOS, name, getenv)
}

func configFolder(system, name string, getenv func(string) string) (string, error) {
	home := getenv("HOME")
	switch {
	case system == "windows" && getenv("APPDATA") != "":
		return filepath.Join(getenv("APPDATA"), name), nil
	case system == "windows":
		return "", errors.New("%APPDATA% is not set")
	case filepath.IsAbs(getenv("XDG_CONFIG_HOME")):
		return filepath.Join(getenv("XDG_CONFIG_HOME"), name), nil
	case home == "":
		return "", errors.New("there is no home folder: $HOME is not set")
	case system == "darwin":
		return filepath.Join(home, "Library", "Application Support", name), nil
	}
	return filepath.Join(home, ".config", name), nil
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
