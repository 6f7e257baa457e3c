package retention

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// StandIn stands in for a summarising model: no model, no chance. Its record is the lines of the prompt, word for word,
// that name the most references for their tokens and what no better line names. Asked for a ranking, it ranks events by
// the same. It remembers what it has read, and is used by one goroutine.
type StandIn struct {
	count func(string) int
	read  map[string]line
}

var _ condense.Summariser = (*StandIn)(nil)

// NewStandIn gives a stand-in.
func NewStandIn(count func(text string) int) *StandIn {
	return &StandIn{count: count, read: map[string]line{}}
}

// longestLine bounds a line of a record, in bytes.
const longestLine = 300

// line is a line of a prompt.
type line struct {
	at, tokens int
	text       string
	references []string
}

// Summarise implements condense.Summariser. It does not fail.
func (s *StandIn) Summarise(_ context.Context, r condense.Request) (condense.Reply, error) {
	reply := condense.Reply{Finish: "stop"}
	if r.Format != nil {
		ids, err := json.Marshal(map[string][]int{"ids": s.rank(r.User)})
		reply.Text = string(ids)
		return reply, err
	}
	found := s.extract(r.User, capOf(r))
	switch {
	case r.Function != nil:
		arguments, err := json.Marshal(map[string]string{"current_state": found})
		reply.Arguments = string(arguments)
		return reply, err
	case found != "":
		reply.Text = "CURRENT_STATE: " + found
	}
	return reply, nil
}

// rank gives the ids of the events in a prompt, best first.
func (s *StandIn) rank(prompt string) []int {
	events := strings.Split(prompt, "<dewpoint_event ")[1:]
	all, ids := make([]line, len(events)), make([]int, len(events))
	for i, e := range events {
		_, _ = fmt.Sscanf(e, "id=\"%d\"", &ids[i]) // 0 is no event's id
		all[i] = s.look(e)
		all[i].at = i
	}
	var ranked []int
	for _, l := range picked(all, math.MaxInt) {
		ranked = append(ranked, ids[l.at])
	}
	return ranked
}

// capOf is the tokens that a request allows: what the model may write, or the words that the prompt asks for.
func capOf(r condense.Request) int {
	limit := r.MaxOutput
	var asked int
	if at := strings.LastIndex(r.User, "at most "); at >= 0 {
		if _, err := fmt.Sscanf(r.User[at:], "at most %d words", &asked); err == nil {
			limit = min(limit, asked*3/2)
		}
	}
	return limit
}

// extract picks lines, and gives them in their order.
func (s *StandIn) extract(text string, limit int) string {
	best := picked(s.lines(text), limit)
	slices.SortFunc(best, func(a, b line) int { return a.at - b.at })
	var b strings.Builder
	for _, l := range best {
		b.WriteString(l.text + "\n")
	}
	return strings.TrimSpace(b.String())
}

// picked is the lines within a number of tokens that name the most for theirs, best first, without those that name
// nothing new.
func picked(all []line, limit int) []line {
	slices.SortStableFunc(all, func(a, b line) int {
		return len(b.references)*a.tokens - len(a.references)*b.tokens
	})
	var out []line
	told := map[string]bool{}
	for _, l := range all {
		if l.tokens > limit || !news(l, told) {
			continue
		}
		limit -= l.tokens
		out = append(out, l)
	}
	return out
}

// lines gives the lines that name anything, each once; the prompt's wrapping and its last words, which are none of the
// conversation's, are left out.
func (s *StandIn) lines(text string) []line {
	text = text[:max(strings.LastIndex(text, "</dewpoint_"), 0)]
	var out []line
	seen := map[string]bool{}
	for l := range strings.Lines(text) {
		l = strings.TrimSpace(l)
		if len(l) > longestLine {
			l = strings.ToValidUTF8(l[:longestLine], "")
		}
		if l == "" || seen[l] || strings.HasPrefix(l, "<dewpoint_") || strings.HasPrefix(l, "</dewpoint_") {
			continue
		}
		seen[l] = true
		if known := s.look(l); len(known.references) > 0 {
			known.at = len(out)
			out = append(out, known)
		}
	}
	return out
}

// look reads a line.
func (s *StandIn) look(text string) line {
	l, known := s.read[text]
	if !known {
		l = line{tokens: s.count(text) + 1, text: text, references: references(text)}
		s.read[text] = l
	}
	return l
}

// news reports whether a line names what was not told yet, and notes what it tells.
func news(l line, told map[string]bool) bool {
	fresh := false
	for _, r := range l.references {
		fresh = fresh || !told[r]
	}
	for _, r := range l.references {
		told[r] = told[r] || fresh
	}
	return fresh
}
