package replay

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// A recorded agent cannot show that it misses what was hidden. So the replay counts what an action names (a path, a name of code, an id) that
// stood in an earlier message and stands nowhere in what the model was shown. In a text that the proxy wrote, a bare list of names is no
// memory: there, a name counts only in a line that has at least half of the words of a line in which it stood.

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

// namesIn returns what a text names, each once.
func namesIn(text string) []string {
	var found []string
	for _, name := range nameForm.FindAllString(noEscapes.Replace(text), -1) {
		if name = strings.Trim(name, "./-@_"); len(name) >= shortestName && isName.MatchString(name) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func linesOf(text string) []string { return strings.Split(lineBreaks.Replace(text), "\n") }

// sources are the messages that an agent sent, and where they name what.
type sources struct {
	texts []string         // of messages
	first []int            // of each message, the first one with the same text
	same  map[string]int   // text -> the first message with it
	by    map[string][]int // name -> messages with it, ascending
}

func newSources() *sources { return &sources{same: map[string]int{}, by: map[string][]int{}} }

// learn adds messages of a request, which begins with those of the request before it.
func (s *sources) learn(messages []part) {
	for i := len(s.texts); i < len(messages); i++ {
		text := string(messages[i].raw)
		s.texts = append(s.texts, text)
		if _, known := s.same[text]; !known {
			s.same[text] = i
		}
		s.first = append(s.first, s.same[text])
		for _, name := range namesIn(text) {
			s.by[name] = append(s.by[name], i)
		}
	}
}

// look counts what an action names that stood in the first n messages, and how much of that is missing from what was forwarded.
func (s *sources) look(action []string, n int, forwarded []session.Message, plain func([]byte) []byte) (named, missing int) {
	if len(action) == 0 {
		return 0, 0
	}
	shown := map[int]bool{}
	var written []string // lines of what the agent did not send
	for i := range forwarded {
		text := plain(forwarded[i].Raw)
		if at, ok := s.same[string(text)]; ok && at < n {
			shown[at] = true
		} else {
			written = append(written, linesOf(string(text))...)
		}
	}
	for _, name := range action {
		in := s.by[name]
		in = in[:lowerBound(in, n)]
		if len(in) == 0 {
			continue
		}
		named++
		seen := slices.ContainsFunc(in, func(at int) bool { return shown[s.first[at]] })
		if !seen && !retold(name, written, s.texts[in[len(in)-1]]) {
			missing++
		}
	}
	return named, missing
}

// named counts what an action names that stood in the first n messages.
func (s *sources) named(action []string, n int) (named int) {
	for _, name := range action {
		if in := s.by[name]; len(in) > 0 && in[0] < n {
			named++
		}
	}
	return named
}

// lowerBound returns how many of the ascending numbers are below n.
func lowerBound(numbers []int, n int) int {
	at, _ := slices.BinarySearch(numbers, n)
	return at
}

// retold reports whether a written line holds the name and at least half of the words of a line of the original that holds it.
func retold(name string, written []string, original string) bool {
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

// linesWith returns the words of each line that holds the name.
func linesWith(name, text string) (found []map[string]bool) {
	for _, line := range linesOf(text) {
		if strings.Contains(line, name) {
			found = append(found, wordsOf(line))
		}
	}
	return found
}

func wordsOf(line string) map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(line) {
		words[w] = true
	}
	return words
}
