// Package knowledge reads texts that an operator wants to add to conversations: Markdown files with triggers, in the format of OpenHands'
// microagents.
package knowledge

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
)

// Topic is the content of one file.
type Topic struct {
	Name     string
	Triggers []string // in lower case; none: it always applies
	Text     string
}

// Bounds of a file and of its front matter, in bytes. The YAML library takes time and memory that are quadratic in brackets.
const maxFileSize, maxFront = 1 << 20, 8 << 10

// read reads the Markdown files of a folder, which may be a symbolic link, and of its subfolders. It calls watch for each folder before it
// reads the folder, so that no change is missed. It skips folders whose names begin with two dots: a volume mounted by Kubernetes has its
// files in such a folder, and links to them. The error joins all problems found.
func read(folder string, watch func(folder string) error) (topics []Topic, err error) {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	var problems []error
	names := map[string]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".."):
			return fs.SkipDir
		case d.IsDir():
			return watch(path)
		case !strings.EqualFold(filepath.Ext(path), ".md") || strings.EqualFold(d.Name(), "README.md"):
			return nil
		}
		t, err := readFile(path)
		if first, taken := names[t.Name]; err == nil && taken {
			err = fmt.Errorf("name: is already used by %s: give each file its own", first)
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

func readFile(path string) (Topic, error) {
	info, err := os.Stat(path) // follows links
	if err != nil {
		return Topic{}, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxFileSize {
		return Topic{}, fmt.Errorf("is not a regular file, or is larger than %d bytes", maxFileSize)
	}
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the folder
	if err != nil {
		return Topic{}, err
	}
	return parse(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)), string(text))
}

// parse parses a file. The front matter is optional. Unknown keys are ignored, since OpenHands has other keys as well.
func parse(name, text string) (Topic, error) {
	var head struct {
		Name     string   `yaml:"name"`
		Type     string   `yaml:"type"`
		Triggers []string `yaml:"triggers"`
	}
	front, body, found := cutFront(strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff"))
	if len(front) > maxFront {
		return Topic{}, fmt.Errorf("the front matter is longer than %d bytes: shorten it", maxFront)
	}
	if found {
		if err := yaml.Unmarshal([]byte(front), &head); err != nil {
			return Topic{}, fmt.Errorf("the front matter is not YAML: %s", yaml.FormatError(err, false, false))
		}
	}
	t := Topic{Name: cmp.Or(head.Name, name), Text: strings.TrimSpace(body)}
	for _, trigger := range head.Triggers {
		trigger = strings.ToLower(strings.TrimSpace(trigger))
		if trigger != "" {
			t.Triggers = append(t.Triggers, trigger)
		}
	}
	switch {
	case !slices.Contains([]string{"", "knowledge", "repo", "task"}, head.Type):
		return t, fmt.Errorf("type: is %q: use knowledge, repo or task, or leave it out", head.Type)
	case (head.Type == "knowledge" || head.Type == "task") && len(t.Triggers) == 0:
		return t, fmt.Errorf("triggers: are missing: a file of type %s needs at least one", head.Type)
	case head.Type == "repo" && len(t.Triggers) > 0:
		return t, errors.New("triggers: are not allowed in a file of type repo, which always applies: remove them, or set type to knowledge")
	case t.Text == "":
		return t, errors.New("has no text")
	}
	return t, nil
}

// cutFront splits a file into its front matter, which stands between lines of three hyphens, and its text.
func cutFront(text string) (front, body string, found bool) {
	rest, opened := strings.CutPrefix(text, "---\n")
	front, body, closed := strings.Cut("\n"+rest+"\n", "\n---\n")
	if !opened || !closed {
		return "", text, false
	}
	return strings.TrimPrefix(front, "\n"), body, true
}

// TriggeredBy reports whether a text typed by a user, in lower case, contains a trigger. A topic without triggers always applies.
func (t *Topic) TriggeredBy(lower string) bool { return len(t.Triggers) == 0 || t.trigger(lower) != "" }

// trigger returns the first trigger that a text contains, empty if none.
func (t *Topic) trigger(lower string) string {
	if i := slices.IndexFunc(t.Triggers, func(trigger string) bool { return strings.Contains(lower, trigger) }); i >= 0 {
		return t.Triggers[i]
	}
	return ""
}

// Render returns the text to add to a message whose text, in lower case, triggers the topic.
func (t *Topic) Render(lower string) string {
	why := "The following are instructions for this repository."
	if trigger := t.trigger(lower); trigger != "" {
		why = fmt.Sprintf("The following information has been included based on a keyword match for %q.\n"+
			"It may or may not be relevant to the user's request.", trigger)
	}
	return "\n\n" + infoOpen + "\n" + why + "\n\n" + strings.ReplaceAll(t.Text, infoClose, "") + "\n" + infoClose
}

// The tags around an added text, as in OpenHands.
const (
	infoOpen  = "<EXTRA_INFO>"
	infoClose = "</EXTRA_INFO>"
)
