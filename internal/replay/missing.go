package replay

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/replay/missing"
	"github.com/dewpoint-proxy/dewpoint/session"
)

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
		for _, name := range missing.Names(text) {
			s.by[name] = append(s.by[name], i)
		}
	}
}

// look counts what an action names that stood in the first n messages, and how much of that is missing from what was forwarded.
func (s *sources) look(action []string, n int, forwarded []session.Message, plain func([]byte) []byte) (named, gone int) {
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
			written = append(written, missing.Lines(string(text))...)
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
		if !seen && !missing.Retold(name, written, s.texts[in[len(in)-1]]) {
			gone++
		}
	}
	return named, gone
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
