package ask

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Action is what an agent does next: its first call, or a text.
type Action struct {
	Tool      string // empty: a text
	Arguments map[string]any
}

// actionOf returns the action of an answer.
func actionOf(c session.Content) Action {
	if len(c.Calls) == 0 {
		return Action{}
	}
	a := Action{Tool: strings.ToLower(c.Calls[0].Name)}
	if json.Unmarshal([]byte(c.Calls[0].Arguments), &a.Arguments) != nil {
		a.Arguments = map[string]any{"": c.Calls[0].Arguments}
	}
	return a
}

// Same reports whether two actions are the same by the rule in docs/does-it-still-work.md: the same tool, the same target, and arguments with the same
// meaning. Two texts are the same: what they say is not judged.
func (a Action) Same(b Action) bool {
	if a.Tool != b.Tool {
		return false
	}
	for _, key := range keysOf(a.Arguments, b.Arguments) {
		if !sameArgument(strings.ToLower(key), a.Arguments[key], b.Arguments[key]) {
			return false
		}
	}
	return true
}

func keysOf(a, b map[string]any) (keys []string) {
	for _, m := range [...]map[string]any{a, b} {
		for key := range m {
			if !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// The kinds of arguments that are not compared as they are, by parts of their names.
var (
	remarks  = []string{"description", "explanation", "reason", "thought", "comment", "summary", "timeout", "limit", "offset"}
	targets  = []string{"path", "file", "url", "uri", "directory", "folder", "cwd", "workdir"}
	commands = []string{"command", "cmd", "script"}
	texts    = []string{"content", "string", "text", "patch", "diff", "query", "prompt", "message", "code", "todo"}
)

// sameArgument compares two values of an argument, nil if it is not given.
func sameArgument(key string, a, b any) bool {
	named := func(parts []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(key, part) })
	}
	textA, textB := plain(a), plain(b)
	switch {
	case named(remarks):
		return true
	case textA == textB:
		return true
	case named(targets):
		return sameTarget(textA, textB)
	case named(commands):
		return sameCommand(textA, textB)
	case named(texts):
		return alike(textA, textB)
	}
	return false
}

// plain returns a value as text, with single spaces. What is empty, false or not given is the same.
func plain(v any) string {
	text, is := v.(string)
	if !is {
		encoded, _ := json.Marshal(v) // was decoded from JSON: cannot fail
		text = string(encoded)
	}
	if text == "null" || text == "false" || text == "[]" || text == "{}" {
		return ""
	}
	return strings.Join(strings.Fields(text), " ")
}

// sameTarget compares two paths or URLs. A relative path is the same as an absolute one that ends with it.
func sameTarget(a, b string) bool {
	a, b = target(a), target(b)
	long, short := a, b
	if len(short) > len(long) {
		long, short = short, long
	}
	return long == short || short != "" && !strings.HasPrefix(short, "/") && strings.HasSuffix(long, "/"+short)
}

func target(text string) string {
	text = strings.Trim(text, `"'`)
	if scheme, rest, is := strings.Cut(text, "://"); is {
		return strings.ToLower(scheme) + "://" + strings.TrimSuffix(rest, "/")
	}
	if text == "" {
		return ""
	}
	return path.Clean(text)
}

// sameCommand compares two commands by their words in any order, without a change of folder before them.
func sameCommand(a, b string) bool {
	words := func(text string) []string {
		if before, after, is := strings.Cut(text, "&&"); is && strings.HasPrefix(strings.TrimSpace(before), "cd ") {
			text = after
		}
		all := strings.Fields(strings.NewReplacer(`"`, "", "'", "", "./", "").Replace(text))
		slices.Sort(all)
		return all
	}
	return slices.Equal(words(a), words(b))
}

// alikeShare is the percentage of the words of two texts that they must have in common to be alike.
const alikeShare = 80

func alike(a, b string) bool {
	set := func(text string) map[string]bool {
		all := map[string]bool{}
		for word := range strings.FieldsSeq(strings.ToLower(text)) {
			all[strings.Trim(word, `.,;:!?"'()[]{}`)] = true
		}
		return all
	}
	wordsA, wordsB := set(a), set(b)
	both := 0
	for word := range wordsA {
		if wordsB[word] {
			both++
		}
	}
	return 100*both >= alikeShare*(len(wordsA)+len(wordsB)-both)
}
