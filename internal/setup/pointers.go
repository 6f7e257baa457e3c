package setup

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Pointer is a setting that says where an agent sends its requests.
type Pointer struct {
	Setting string // such as ANTHROPIC_BASE_URL
	Where   string // such as ~/.zshrc line 12
	URL     string // without credentials and query
}

// Host returns the host and port of the address.
func (p Pointer) Host() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return ""
	}
	return u.Host
}

// variables point agents and SDKs at a server.
var variables = []string{"OPENAI_BASE_URL", "OPENAI_API_BASE", "ANTHROPIC_BASE_URL"}

// shells lists files in which shells set variables, below the home folder.
var shells = []string{".bashrc", ".bash_profile", ".profile", ".zshrc", ".zshenv", ".zprofile", ".config/fish/config.fish"}

// assignment matches a line of a shell's file that sets a variable to an address.
var assignment = regexp.MustCompile(`^\s*(?:export\s+|set\s+(?:-\w+\s+)*)?(` + strings.Join(variables, "|") + `)[=\s]\s*["']?(https?://[^\s"'#;]+)`)

// codex matches the keys of Codex' settings that name a server.
var codex = regexp.MustCompile(`^\s*((?:openai_|chatgpt_)?base_url)\s*=\s*["'](https?://[^"']+)["']`)

// Pointers finds the settings of agents in the environment, the files of shells, and those of Claude Code and Codex. Files that cannot be read are
// passed over.
func Pointers(home string, getenv func(string) string) (found []Pointer) {
	for _, name := range variables {
		if value := getenv(name); value != "" {
			found = append(found, Pointer{name, "the environment", plainURL(value)})
		}
	}
	if home == "" {
		return found
	}
	for _, name := range shells {
		found = append(found, lines(home, name, assignment)...)
	}
	found = append(found, claude(home)...)
	return append(found, lines(home, ".codex/config.toml", codex)...)
}

// lines returns what the lines of a file set. The last one of a setting wins in a shell.
func lines(home, name string, pattern *regexp.Regexp) (found []Pointer) {
	text, err := os.ReadFile(filepath.Join(home, filepath.FromSlash(name))) //nolint:gosec // a fixed name in the user's own folder
	if err != nil {
		return nil
	}
	for i, line := range strings.Split(string(text), "\n") {
		if m := pattern.FindStringSubmatch(line); m != nil {
			p := Pointer{m[1], fmt.Sprintf("~/%s line %d", name, i+1), plainURL(m[2])}
			found = append(slices.DeleteFunc(found, func(earlier Pointer) bool { return earlier.Setting == p.Setting }), p)
		}
	}
	return found
}

// claude returns what the settings of Claude Code set.
func claude(home string) (found []Pointer) {
	const name = ".claude/settings.json"
	text, err := os.ReadFile(filepath.Join(home, filepath.FromSlash(name))) //nolint:gosec // a fixed name in the user's own folder
	var settings struct{ Env map[string]any }
	if err != nil || json.Unmarshal(text, &settings) != nil {
		return nil
	}
	if value, ok := settings.Env["ANTHROPIC_BASE_URL"].(string); ok && value != "" {
		found = append(found, Pointer{"ANTHROPIC_BASE_URL", "~/" + name, plainURL(value)})
	}
	return found
}

// plainURL returns an address without what may be a secret in it.
func plainURL(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
