package setup

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/yamlfile"
)

// OwnServer is where a file of an agent's user sends the requests to a provider.
type OwnServer struct {
	Setting  string // such as openai_base_url
	Where    string // the file, as ~/.codex/config.toml; empty: the environment
	Provider string
	URL      string // with its version
}

// String names what names the server.
func (s OwnServer) String() string {
	if s.Where == "" {
		return s.Setting // of the environment
	}
	return s.Setting + " in " + s.Where
}

// OwnServers returns the servers that files of the user's name, in the current folder and in the home folder, and that a launch of an agent would
// replace. A file that is damaged is an error: it may name one.
func OwnServers(l agents.Launch, home string, getenv func(string) string) (found []OwnServer, err error) {
	for _, name := range append([]string{".env"}, l.EnvFiles...) {
		for _, v := range l.Env {
			if value := assigned(text(name, home, getenv), v.Name); value != "" && v.Provider != "" && getenv(v.Name) == "" {
				found = append(found, OwnServer{v.Name, name, v.Provider, v.Upstream(value)})
			}
		}
	}
	for _, s := range l.Settings {
		for _, name := range s.Files {
			value, err := valueOf(name, text(name, home, getenv), s.Key)
			if err != nil {
				return nil, fmt.Errorf("correct %s, which cannot be read: it may name a server in %s", name, s.Key)
			}
			if value != "" {
				found = append(found, OwnServer{s.Key, name, s.Provider, replaced(l, s).Upstream(value)})
			}
		}
	}
	return found, nil
}

// replaced returns the variable of a launch that has the name of a setting. Without one, the setting's form is that of a URL with its version.
func replaced(l agents.Launch, s agents.Setting) agents.Variable {
	at := slices.IndexFunc(l.Env, func(v agents.Variable) bool { return v.Name == s.Key })
	if at < 0 {
		return agents.Variable{}
	}
	return l.Env[at]
}

// text returns a file that an agent reads. It is empty if there is none.
func text(name, home string, getenv func(string) string) []byte {
	if variable, rest, is := strings.Cut(strings.TrimPrefix(name, "$"), "/"); is && strings.HasPrefix(name, "$") {
		folder := getenv(variable)
		if folder == "" {
			return nil
		}
		name = filepath.Join(folder, rest)
	} else if rest, is := strings.CutPrefix(name, "~/"); is {
		if home == "" {
			return nil
		}
		name = filepath.Join(home, filepath.FromSlash(rest))
	}
	content, err := os.ReadFile(name) //nolint:gosec // a file that the agent reads, too
	if err != nil {
		return nil
	}
	return content
}

// assigned returns what a file of variables sets one to, the last time.
func assigned(text []byte, name string) string {
	found := regexp.MustCompile(`(?m)^\s*(?:export\s+)?`+name+`\s*=\s*["']?([^\s"'#]+)`).FindAllSubmatch(text, -1)
	if found == nil {
		return ""
	}
	return string(found[len(found)-1][1])
}

// valueOf returns the text at a path of keys, "" if there is none. In TOML, the path is a key outside of all tables.
func valueOf(name string, text []byte, path string) (string, error) {
	if filepath.Ext(name) == ".toml" {
		before, _, _ := bytes.Cut(append([]byte("\n"), text...), []byte("\n["))
		return assigned(before, path), nil
	}
	value, err := yamlfile.Parse(withoutComments(text, filepath.Ext(name))) // JSON is YAML
	if err != nil {
		return "", err
	}
	for key := range strings.SplitSeq(path, ".") {
		value = field(value, key)
	}
	if value == nil || value.Kind != yamlfile.String {
		return "", nil
	}
	return value.Text, nil
}

func field(of *yamlfile.Value, name string) *yamlfile.Value {
	if of == nil {
		return nil
	}
	for _, f := range of.Fields {
		if f.Name == name {
			return f.Value
		}
	}
	return nil
}

// comments matches a string of JSON, or a comment.
var comments = regexp.MustCompile(`(?s)"(?:[^"\\]|\\.)*"|//[^\n]*|/\*.*?\*/`)

// withoutComments removes comments, which agents accept in JSON.
func withoutComments(text []byte, ending string) []byte {
	if ending != ".json" && ending != ".jsonc" {
		return text
	}
	return comments.ReplaceAllFunc(text, func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return nil
	})
}
