package condense

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// span is what a summary has to stand for, decoded.
type span struct {
	previous record.Summary // the one it replaces
	events   []event        // newly forgotten
	ledger   *record.Ledger // of everything forgotten so far
	words    *record.Words  // of the user, in everything forgotten so far
	weights  weights        // of the whole conversation
	tokens   int            // of everything forgotten so far
	missing  missing
	late     int  // tokens of what provisional condensations hid and this one is to summarise too
	noted    bool // the previous record tells what is missing from it
}

// missing is what no model has summarised: the new events, and those of earlier condensations without a model.
type missing struct {
	first, last, count int
}

func readSpan(in Input, c Cut) *span {
	s := &span{ledger: record.NewLedger(), words: &record.Words{}, tokens: c.Tokens}
	fresh := map[int]bool{}
	for _, p := range c.Positions() {
		fresh[p] = true
		s.missing.add(p)
	}
	gone, late := in.View.Forgotten(), s.history(in.View.Applied)
	for p := 1; p <= in.View.History.Len(); p++ {
		if !fresh[p] && !gone[p] {
			continue
		}
		m := in.View.History.Message(p)
		content := read(in.Codec, m.Raw)
		s.ledger.Forget(content)
		s.words.Forget(m.Kind, content)
		s.weights.add(content)
		if fresh[p] || late[p] {
			s.events = append(s.events, event{id: p, kind: m.Kind, content: content})
		}
	}
	s.keep(in, fresh)
	return s
}

// keep takes in what the view goes on to show.
func (s *span) keep(in Input, fresh map[int]bool) {
	for _, item := range in.View.Items {
		switch {
		case item.Index < 0:
			s.previous = record.Parse(item.Summary)
		case !fresh[in.View.History.Pos(item.Index)]:
			content := read(in.Codec, item.Raw)
			s.ledger.Keep(content)
			s.weights.add(content)
		}
	}
}

// history takes in the earlier condensations. It gives the positions that were hidden without the summary that was due: they are
// summarised now, since the client still sends them.
func (s *span) history(applied []session.Condensation) (late map[int]bool) {
	late = map[int]bool{}
	for _, c := range applied {
		s.tokens += c.ForgottenTokens
	}
	for i := len(applied) - 1; i >= 0 && unsummarised(applied[i]); i-- {
		s.noted = s.noted || applied[i].SummaryTokens > 0
		if applied[i].Provisional {
			s.late += applied[i].ForgottenTokens
		}
		for _, r := range applied[i].Forgotten {
			for p := r.From; p < r.To; p++ {
				s.missing.add(p)
				if applied[i].Provisional {
					late[p] = true
				}
			}
		}
	}
	return late
}

// unsummarised reports whether no model has summarised what a condensation forgot. Registries leave out the text of
// summaries that are not shown, so only their size tells.
func unsummarised(c session.Condensation) bool {
	return c.Model == "" || c.SummaryTokens == 0
}

func (m *missing) add(p int) {
	if m.count == 0 {
		m.first, m.last = p, p
	}
	m.first, m.last, m.count = min(m.first, p), max(m.last, p), m.count+1
}

// read decodes a message; one that can not be decoded is its own text.
func read(codec Codec, raw []byte) session.Content {
	c, err := codec.Read(raw)
	if err != nil {
		return session.Content{Text: string(raw)}
	}
	return c
}

// noteMark begins the line which says that events are missing from a record.
const noteMark = "NOT_SUMMARISED: "

// recorded is the previous record without the note of what is missing from it.
func (s *span) recorded() string {
	var kept []string
	for line := range strings.Lines(s.previous.Record) {
		if !s.noted || !strings.HasPrefix(line, noteMark) {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, ""))
}

// unsummarised is a record made without a model: the previous one, with one note of all that is missing from it.
func (s *span) unsummarised() string {
	m := s.missing
	note := fmt.Sprintf("%s%d messages (ids %d to %d) were removed without a summary.", noteMark, m.count, m.first, m.last)
	text := s.recorded()
	if text == "" {
		return note
	}
	return text + "\n\n" + note
}
