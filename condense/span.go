package condense

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// span holds, decoded, everything that a summary has to stand for.
type span struct {
	previous   record.Summary // the summary that it replaces
	events     []event        // hidden now, to be summarised
	history    []excerpt.Message
	typed      []string      // the texts of those messages of the history that the user wrote, otherwise ""
	words      *record.Words // the user's words in everything hidden so far
	weights    weights       // of the whole conversation
	tokens     int           // of everything hidden so far
	missing    int           // hidden messages that no model has summarised, now or in earlier condensations
	lateTokens int           // tokens that provisional condensations hid and this one summarises as well
	noted      bool          // the previous record may contain a note of what is missing
	rules      string        // what the record repeats at its end
	asked      string        // what the user asks of the record
	hidden     record.Events // numbers of everything hidden so far, if the model can recall it
}

// readSpan reads a history, and collects what a cut and the condensations before it hide. It fails if ctx ends.
func readSpan(ctx context.Context, in Input, c Cut) (*span, error) {
	s := &span{words: &record.Words{}, tokens: c.ForgottenTokens, asked: in.Thread.Asked}
	gone := in.View.Forgotten()      // by position: hidden before or by the cut
	fresh := make([]bool, len(gone)) // by position: hidden by the cut
	for _, r := range c.Forgotten {
		s.missing += r.To - r.From
		for p := r.From; p < r.To; p++ {
			gone[p], fresh[p] = true, true
		}
	}
	late := s.readApplied(in.View.Applied)
	shown := s.readView(in.View)
	heads := make([]string, len(in.View.History.Messages)) // beginnings of the hidden user messages
	for i := range in.View.History.Messages {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read hidden messages: %w", err)
		}
		m := &in.View.History.Messages[i]
		p := in.View.History.Pos(i)
		raw := m.Raw
		if shown[i] != nil && !gone[p] {
			raw = shown[i]
		}
		content, kind := read(in.Codec, raw), m.Kind
		if m.Relayed {
			kind = session.Observation
		}
		s.weights.add(kind, content)
		quoted := content
		quoted.Text = record.Attached(content.Text, content)
		message := excerpt.Message{
			Kind: kind, Content: quoted, Shown: !gone[p], Injected: kind == session.User && record.HasInjected(content),
		}
		if gone[p] {
			heads[i] = s.words.Add(kind, content)
			if in.Thread.Recall {
				message.Event = p
				s.hidden = record.Events{First: cmp.Or(s.hidden.First, p), Last: p}
			}
		}
		s.history, s.typed = append(s.history, message), append(s.typed, "")
		if in.View.History.ByUser(i) {
			s.typed[i] = content.Text
		}
		if fresh[p] || late[p] {
			s.events = append(s.events, event{id: p, kind: kind, content: content})
		}
	}
	for i, head := range heads {
		if s.words.IsTemplate(head) {
			s.history[i].Kind = session.Observation
		}
	}
	return s, nil
}

// readView reads the summary that the view shows, and returns each message as shown, or nil if it is not.
func (s *span) readView(v *session.View) [][]byte {
	raw := make([][]byte, len(v.History.Messages))
	for _, item := range v.Items {
		if item.Index < 0 {
			s.previous = record.Parse(item.Summary)
		} else {
			raw[item.Index] = item.Raw
		}
	}
	return raw
}

// readApplied counts what earlier condensations hid. It returns the positions that were hidden without the summary that was
// due: since the client still sends these messages, they are summarised now.
func (s *span) readApplied(applied []session.Condensation) (late map[int]bool) {
	late = map[int]bool{}
	for _, c := range applied {
		s.tokens += c.ForgottenTokens
	}
	for _, c := range slices.Backward(applied) {
		switch {
		case c.Model != "" && c.SummaryTokens > 0: // by the size, since registries drop the text of summaries that are not shown
			return late
		case c.Added > 0:
			continue
		case c.Provisional:
			s.lateTokens += c.ForgottenTokens
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

// read decodes a message. A message that cannot be decoded is taken for plain text.
func read(codec Codec, raw []byte) session.Content {
	c, err := codec.Read(raw)
	if err != nil {
		return session.Content{Text: string(raw)}
	}
	return c
}

// noteMark begins the line of a record that says how many messages it is missing.
const noteMark = "NOT_SUMMARISED: "

// previousRecord returns the previous record without its note of missing messages.
func (s *span) previousRecord() string {
	lines := slices.DeleteFunc(strings.SplitAfter(s.previous.Record, "\n"), func(line string) bool {
		return s.noted && strings.HasPrefix(line, noteMark)
	})
	return strings.TrimSpace(strings.Join(lines, ""))
}
