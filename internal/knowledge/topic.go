// Package knowledge reads what an operator wants models told: Markdown files with triggers, as OpenHands' microagents are written.
package knowledge

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Topic is one file.
type Topic struct {
	Name     string
	Triggers []string // in lower case; none: it is told always
	Text     string
}

// The values of type in a file's front matter.
const (
	typeKnowledge = "knowledge"
	typeRepo      = "repo"
)

// mostBytes bounds a file.
const mostBytes = 1 << 20

// read reads a folder's Markdown files, those of folders in it as well. It reports all that is wrong with them at once.
func read(folder string) (topics []Topic, err error) {
	var problems []error
	names := map[string]string{}
	err = walk(folder, func(path string, d fs.DirEntry) error {
		if d.IsDir() || !strings.EqualFold(filepath.Ext(path), ".md") || strings.EqualFold(d.Name(), "README.md") {
			return nil
		}
		t, err := readFile(path)
		if first, taken := names[t.Name]; err == nil && taken {
			err = fmt.Errorf("name: is also that of %s: give each its own", first)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", path, err))
			return nil
		}
		names[t.Name] = path
		topics = append(topics, t)
		return nil
	})
	return topics, errors.Join(append(problems, err)...)
}

// walk visits what is in a folder, which may be a link to one. Folders that begin with two dots are left out: a volume that Kubernetes
// mounts keeps its files in one, and has links to them.
func walk(folder string, visit func(path string, d fs.DirEntry) error) error {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".."):
			return fs.SkipDir
		}
		return visit(path, d)
	})
}

func readFile(path string) (Topic, error) {
	info, err := os.Stat(path) // where it is a link, what that leads to
	if err != nil {
		return Topic{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > mostBytes {
		return Topic{}, fmt.Errorf("is no file, or larger than %d bytes", mostBytes)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the folder
	if err != nil {
		return Topic{}, err
	}
	return parse(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), string(text))
}

// parse reads a file. Its front matter may be missing, and may have other keys: OpenHands' own are of no use here.
func parse(name, text string) (Topic, error) {
	var head struct {
		Name     string   `yaml:"name"`
		Type     string   `yaml:"type"`
		Triggers []string `yaml:"triggers"`
	}
	t := Topic{Name: name}
	front, body, found := cutFront(strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff"))
	if found {
		if err := yaml.Unmarshal([]byte(front), &head); err != nil {
			return t, fmt.Errorf("the front matter is not YAML: %s", yaml.FormatError(err, false, false))
		}
	}
	if head.Name != "" {
		t.Name = head.Name
	}
	for _, trigger := range head.Triggers {
		if trigger = strings.ToLower(strings.TrimSpace(trigger)); trigger != "" {
			t.Triggers = append(t.Triggers, trigger)
		}
	}
	t.Text = strings.TrimSpace(body)
	switch {
	case head.Type == typeKnowledge && len(t.Triggers) == 0:
		return t, errors.New("triggers: are missing: a file of type knowledge is told of by nothing else")
	case head.Type == typeRepo && len(t.Triggers) > 0:
		return t, errors.New("triggers: are there, and a file of type repo is always told of: remove them, or make it knowledge")
	case t.Text == "":
		return t, errors.New("has no text")
	}
	return t, nil
}

// cutFront parts a file's front matter, between lines of three hyphens, from its text.
func cutFront(text string) (front, body string, found bool) {
	rest, found := strings.CutPrefix(text, "---\n")
	if !found {
		return "", text, false
	}
	if body, found = strings.CutPrefix(rest, "---\n"); found {
		return "", body, true
	}
	if front, body, found = strings.Cut(rest, "\n---\n"); found {
		return front, body, true
	}
	if front, found = strings.CutSuffix(rest, "\n---"); found {
		return front, "", true
	}
	return "", text, false
}

// Called reports whether a text that a person typed calls for a topic: whether it holds a trigger, in upper or lower case, as in
// OpenHands.
func (t *Topic) Called(lower string) bool { return len(t.Triggers) == 0 || t.trigger(lower) != "" }

func (t *Topic) trigger(lower string) string {
	if i := slices.IndexFunc(t.Triggers, func(trigger string) bool { return strings.Contains(lower, trigger) }); i >= 0 {
		return t.Triggers[i]
	}
	return ""
}

// Told is the text as a model is told it, for a text that calls for it.
func (t *Topic) Told(lower string) string {
	why := "The following are instructions for this repository."
	if trigger := t.trigger(lower); trigger != "" {
		why = fmt.Sprintf("The following information has been included based on a keyword match for %q.\n"+
			"It may or may not be relevant to the user's request.", trigger)
	}
	return "\n\n" + infoOpen + "\n" + why + "\n\n" + strings.ReplaceAll(t.Text, infoClose, "") + "\n" + infoClose
}

// The marks around what is told, as OpenHands has them.
const (
	infoOpen  = "<EXTRA_INFO>"
	infoClose = "</EXTRA_INFO>"
)
