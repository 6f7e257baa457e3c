package condense

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// span is what a summary has to stand for, decoded.
type span struct {
	previous record.Summary // the one it replaces
	events   []event        // newly forgotten
	history  []excerpt.Message
	words    *record.Words // of the user, in everything forgotten so far
	weights  weights       // of the whole conversation
	tokens   int           // of everything forgotten so far
	missing  int           // messages that no model has summarised: the new ones, and those of earlier condensations without a model
	late     int           // tokens of what provisional condensations hid and this one is to summarise too
	noted    bool          // the previous record tells what is missing from it
	named    record.Events // numbers of everything forgotten so far, where they are told
}

// readSpan reads a history for what a cut and the condensations before it forget, until ctx ends.
func readSpan(ctx context.Context, in Input, c Cut) (*span, error) {
	s := &span{words: &record.Words{}, tokens: c.ForgottenTokens}
	gone := in.View.Forgotten()
	fresh := make([]bool, len(gone))
	for _, r := range c.Forgotten {
		s.missing += r.To - r.From
		for p := r.From; p < r.To; p++ {
			gone[p], fresh[p] = true, true
		}
	}
	heads := make([]string, len(in.View.History.Messages))
	late, shown := s.earlier(in.View.Applied), s.shown(in.View)
	for i := range in.View.History.Messages {
		m, p := &in.View.History.Messages[i], in.View.History.Pos(i)
		raw := m.Raw
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read what is forgotten: %w", err)
		}
		if shown[i] != nil && !gone[p] {
			raw = shown[i]
		}
		content := read(in.Codec, raw)
		s.weights.add(m.Kind, content)
		quoted := content
		quoted.Text = record.Attached(content.Text, content)
		message := excerpt.Message{
			Kind: m.Kind, Content: quoted, Shown: !gone[p], Injected: m.Kind == session.User && record.Injected(content),
		}
		if gone[p] {
			heads[i] = s.words.Forget(m.Kind, content)
			if in.Thread.Recall {
				message.Event = p
				s.named.Add(p)
			}
		}
		s.history = append(s.history, message)
		if fresh[p] || late[p] {
			s.events = append(s.events, event{id: p, kind: m.Kind, content: content})
		}
	}
	for i, head := range heads {
		if s.words.Template(head) {
			s.history[i].Kind = session.Observation
		}
	}
	return s, nil
}

// shown takes in the summary that the view shows, and gives its messages as it shows them.
func (s *span) shown(v *session.View) [][]byte {
	raw := make([][]byte, len(v.History.Messages))
	for _, item := range v.Items {
		if item.Index < 0 {
			s.previous = record.Parse(item.Summary)
			continue
		}
		raw[item.Index] = item.Raw
	}
	return raw
}

// earlier takes in the earlier condensations. It gives the positions that were hidden without the summary that was due: they are
// summarised now, since the client still sends them.
func (s *span) earlier(applied []session.Condensation) (late map[int]bool) {
	late = map[int]bool{}
	for _, c := range applied {
		s.tokens += c.ForgottenTokens
	}
	for _, c := range slices.Backward(applied) {
		switch {
		case !unsummarised(c):
			return late
		case c.Added > 0:
			continue
		case c.Provisional:
			s.late += c.ForgottenTokens
		}
		s.noted = s.noted || c.SummaryTokens > 0
		for _, r := range c.Forgotten {
			s.missing += r.To - r.From
			for p := r.From; p < r.To && c.Provisional; p++ {
				late[p] = true
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

// read decodes a message; one that cannot be decoded is its own text.
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
	lines := slices.DeleteFunc(strings.SplitAfter(s.previous.Record, "\n"), func(line string) bool {
		return s.noted && strings.HasPrefix(line, noteMark)
	})
	return strings.TrimSpace(strings.Join(lines, ""))
}

// unsummarised is a record made without a model: the previous one, with one note of all that is missing from it.
func (s *span) unsummarised() string {
	return strings.TrimSpace(fmt.Sprintf("%s\n\n%s%d messages were removed without a summary.", s.recorded(), noteMark, s.missing))
}
