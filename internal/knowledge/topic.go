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

	"github.com/dewpoint-proxy/dewpoint/internal/yamlfile"
)

// Topic is the content of one file.
type Topic struct {
	Name     string
	Triggers []string // in lower case; none: it always applies
	Text     string
}

// Bounds of a file and of its front matter, in bytes.
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
	front, body, found := cutFront(strings.TrimPrefix(strings.ReplaceAll(text, "\r\n", "\n"), "\ufeff"))
	if len(front) > maxFront {
		return Topic{}, fmt.Errorf("the front matter is longer than %d bytes: shorten it", maxFront)
	}
	var head head
	if found {
		var err error
		if head, err = readFront(front); err != nil {
			return Topic{}, err
		}
	}
	t := Topic{Name: cmp.Or(head.name, name), Text: strings.TrimSpace(body)}
	for _, trigger := range head.triggers {
		trigger = strings.ToLower(strings.TrimSpace(trigger))
		if len(trigger) > maxTrigger {
			return t, fmt.Errorf("triggers: one is longer than %d bytes: shorten it", maxTrigger)
		}
		if trigger != "" {
			t.Triggers = append(t.Triggers, trigger)
		}
	}
	switch {
	case !slices.Contains([]string{"", "knowledge", "repo", "task"}, head.kind):
		return t, fmt.Errorf("type: is %q: use knowledge, repo or task, or leave it out", head.kind)
	case (head.kind == "knowledge" || head.kind == "task") && len(t.Triggers) == 0:
		return t, fmt.Errorf("triggers: are missing: a file of type %s needs at least one", head.kind)
	case head.kind == "repo" && len(t.Triggers) > 0:
		return t, errors.New("triggers: are not allowed in a file of type repo, which always applies: remove them, or set type to knowledge")
	case t.Text == "":
		return t, errors.New("has no text")
	}
	return t, nil
}

// head is what the front matter of a file says.
type head struct {
	name, kind string
	triggers   []string
}

// readFront reads the front matter. Problems of keys that it does not use are ignored.
func readFront(text string) (h head, err error) {
	front, err := yamlfile.Parse([]byte(text))
	switch e, _ := errors.AsType[yamlfile.Error](err); {
	case err == nil && front.Kind != yamlfile.Table:
		return h, fmt.Errorf("the front matter must be a section of keys, not %s: write it as name: NAME", front.Kind)
	case e.Line > 0:
		return h, fmt.Errorf("the front matter %w (line %d)", err, e.Line+1) // the first line of the file is the mark before it
	case err != nil:
		return h, fmt.Errorf("the front matter %w", err)
	}
	for _, f := range front.Fields {
		switch f.Name {
		case "name":
			h.name, err = textOf(f.Value)
		case "type":
			h.kind, err = textOf(f.Value)
		case "triggers":
			h.triggers, err = textsOf(f.Value)
		}
		if err != nil {
			return h, fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	return h, nil
}

// textOf returns a scalar as it is written.
func textOf(v *yamlfile.Value) (string, error) {
	switch v.Kind {
	case yamlfile.Broken:
		return "", errors.New(v.Problem)
	case yamlfile.List, yamlfile.Table:
		return "", fmt.Errorf("must be a string, not %s: write one word or phrase", v.Kind)
	}
	return cmp.Or(v.Written, v.Text), nil
}

func textsOf(v *yamlfile.Value) (all []string, err error) {
	switch v.Kind {
	case yamlfile.Null:
		return nil, nil
	case yamlfile.Broken:
		return nil, errors.New(v.Problem)
	case yamlfile.List:
	default:
		return nil, fmt.Errorf("must be a list, not %s: write it in brackets, as [A, B]", v.Kind)
	}
	for _, item := range v.Items {
		text, err := textOf(item)
		if err != nil {
			return nil, err
		}
		all = append(all, text)
	}
	return all, nil
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

// Render returns the text to add to the message that triggers the topic.
func (t Triggered) Render() string {
	why := "The following are instructions for this repository."
	if t.Trigger != "" {
		why = fmt.Sprintf("The following information has been included based on a keyword match for %q.\n"+
			"It may or may not be relevant to the user's request.", t.Trigger)
	}
	return "\n\n" + infoOpen + "\n" + why + "\n\n" + strings.ReplaceAll(t.Text, infoClose, "") + "\n" + infoClose
}

// The tags around an added text, as in OpenHands.
const (
	infoOpen  = "<EXTRA_INFO>"
	infoClose = "</EXTRA_INFO>"
)
