// Package missing measures what a condensed history lacks. A recorded agent cannot show that it misses what was hidden. So replays count what an
// action names (a path, a name of code, an id) that stood in an earlier message and stands nowhere in what the model was shown. In a text that
// the proxy wrote, a bare list of names is no memory: there, a name counts only in a line that has at least half of the words of a line in which
// it stood.
package missing

import (
	"regexp"
	"slices"
	"strings"
)

var (
	nameForm = regexp.MustCompile(`[A-Za-z0-9_./@-]{6,120}`)
	isName   = regexp.MustCompile(`[/._@]|[a-z][A-Z]|[0-9]{4}`) // rather than an ordinary word
)

const shortestName = 6

// Escape sequences of JSON, also of JSON within JSON.
var (
	noEscapes  = strings.NewReplacer(`\\n`, " ", `\\t`, " ", `\\r`, " ", `\\\"`, " ", `\n`, " ", `\t`, " ", `\r`, " ", `\"`, " ", `\\`, " ")
	lineBreaks = strings.NewReplacer(`\\n`, "\n", `\n`, "\n", `\t`, " ", `\\t`, " ", `\\\"`, " ", `\"`, " ", `\\`, " ")
)

// Names returns what a text names, each once, in order.
func Names(text string) []string {
	var found []string
	for _, name := range nameForm.FindAllString(noEscapes.Replace(text), -1) {
		if name = strings.Trim(name, "./-@_"); len(name) >= shortestName && isName.MatchString(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// Lines returns the lines of a message, even if JSON escapes them.
func Lines(text string) []string { return strings.Split(lineBreaks.Replace(text), "\n") }

// Retold reports whether a written line has a name and at least half of the words of a line of the original that has it.
func Retold(name string, written []string, original string) bool {
	var from []map[string]bool
	for _, line := range written {
		if !strings.Contains(line, name) {
			continue
		}
		if from == nil {
			from = linesWith(name, original)
		}
		have := wordsOf(line)
		for _, want := range from {
			kept := 0
			for word := range want {
				if have[word] {
					kept++
				}
			}
			if 2*kept >= len(want) {
				return true
			}
		}
	}
	return false
}

// linesWith returns the words of each line that has the name.
func linesWith(name, text string) (found []map[string]bool) {
	for _, line := range Lines(text) {
		if strings.Contains(line, name) {
			found = append(found, wordsOf(line))
		}
	}
	return found
}

func wordsOf(line string) map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(line) {
		words[w] = true
	}
	return words
}
