package condense

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/condense/tidy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Render renders the trimmed results of a view. Where a result leaves out lines because an earlier result shows them, and
// that one no longer does, the lines come back in the first result that has them. The later ones then refer to that one.
func Render(codec Codec, v *session.View) {
	s := resultSet{codec: codec, view: v, results: map[int]result{}, moved: map[int][]session.Copy{}}
	for i := range v.Items {
		if v.Items[i].Trim != nil {
			s.render(&v.Items[i])
		}
	}
}

// resultSet gives access to the tool results of a view.
type resultSet struct {
	codec   Codec
	view    *session.View
	itemAt  map[int]int            // index of each item by position; nil until needed
	results map[int]result         // by position, as far as they have been read
	moved   map[int][]session.Copy // by position of a result that is not shown: its parts [From, To) that the result at Source shows from At on
}

// result is the text of a tool result, tidied if it is shown tidied, and the parts of it that are shown.
type result struct {
	text  string
	parts []session.Range
}

// maxMoved is the maximum number of places that are remembered for one result that is not shown.
const maxMoved = 8

// render renders one item. An item that cannot be read or written stays as it is.
func (s *resultSet) render(item *session.Item) {
	fresh := s.view.Verbatim(item)
	if !fresh && len(item.Trim.Copies) == 0 {
		return
	}
	pos := s.view.History.Pos(item.Index)
	content, err := readResult(s.codec, s.view, item)
	if err != nil {
		return
	}
	t, text := *item.Trim, content.Text
	t.Copies = s.resolve(pos, text, t.Copies)
	if fresh || !slices.Equal(t.Copies, item.Trim.Copies) {
		own := s.view.History.Messages[item.Index].Raw
		shown := renderTrim(s.view.History, text, t)
		if t.Bare {
			shown = bare(shown, content)
		}
		if raw, err := s.codec.Rewrite(own, shown); err == nil {
			item.Raw, item.Trim = raw, &t
		}
	}
	s.results[pos] = result{text, shownParts(text, item.Trim)}
}

// resolve returns those copies of a text whose source is shown, with the place where it is shown now.
func (s *resultSet) resolve(pos int, text string, copies []session.Copy) (out []session.Copy) {
	last := 0
	for _, c := range copies {
		if c.From < last || c.To <= c.From || c.To > len(text) || c.Source >= pos {
			continue
		}
		last = c.To
		if source, at, ok := s.find(c.Source, c.At, text[c.From:c.To]); ok {
			out = append(out, session.Copy{From: c.From, To: c.To, Source: source, At: at})
			continue
		}
		moved := append(s.moved[c.Source], session.Copy{From: c.At, To: c.At + c.To - c.From, Source: pos, At: c.From})
		s.moved[c.Source] = moved[max(len(moved)-maxMoved, 0):]
	}
	return out
}

// find returns where part, which was in the result at source from at on, is shown now.
func (s *resultSet) find(source, at int, part string) (pos, from int, ok bool) {
	if s.shows(source, at, part) {
		return source, at, true
	}
	for _, m := range s.moved[source] {
		if m.From <= at && at+len(part) <= m.To {
			from = m.At + at - m.From
			return m.Source, from, s.shows(m.Source, from, part)
		}
	}
	return 0, 0, false
}

// shows reports whether the view shows part in the result at pos, from at on.
func (s *resultSet) shows(pos, at int, part string) bool {
	r, known := s.results[pos]
	if !known {
		r = s.read(pos)
		s.results[pos] = r
	}
	return slices.ContainsFunc(r.parts, func(shown session.Range) bool {
		return shown.From <= at && at+len(part) <= shown.To && r.text[at:at+len(part)] == part
	})
}

// read reads the result at a position. It is empty if the view does not have the result or shows a replacement.
func (s *resultSet) read(pos int) result {
	if s.itemAt == nil {
		s.itemAt = itemsByPosition(s.view)
	}
	i, ok := s.itemAt[pos]
	if !ok {
		return result{}
	}
	item := &s.view.Items[i]
	if item.Kind != session.Observation || item.Trim == nil && !s.view.Verbatim(item) {
		return result{}
	}
	content, err := readResult(s.codec, s.view, item)
	if err != nil {
		return result{}
	}
	return result{content.Text, shownParts(content.Text, item.Trim)}
}

// readResult returns the content of an item's message, its text tidied if it is shown tidied.
func readResult(codec Codec, v *session.View, item *session.Item) (session.Content, error) {
	c, err := codec.Read(v.History.Messages[item.Index].Raw)
	if err == nil && item.Trim != nil && item.Trim.Tidy {
		c.Text = tidy.Text(c.Text)
	}
	return c, err
}

// shownParts returns the parts of a text that a trim shows.
func shownParts(text string, t *session.Trim) (parts []session.Range) {
	if t == nil {
		return []session.Range{{From: 0, To: len(text)}}
	}
	if t.Cut() {
		head, tail := bounds(text, *t)
		return []session.Range{{From: 0, To: head}, {From: tail, To: len(text)}}
	}
	from := 0
	for _, c := range t.Copies {
		parts = append(parts, session.Range{From: from, To: c.From})
		from = c.To
	}
	return append(parts, session.Range{From: from, To: len(text)})
}

// renderTrim returns a text as a trim shows it, with a note in place of each copy.
func renderTrim(h *session.History, text string, t session.Trim) string {
	if t.Cut() || len(t.Copies) == 0 {
		return RenderTrim(text, t)
	}
	var b strings.Builder
	from := 0
	for _, c := range t.Copies {
		b.WriteString(text[from:c.From])
		b.WriteString(copyNote(text[c.From:c.To], h.Message(c.Source).Result))
		from = c.To
	}
	b.WriteString(text[from:])
	return b.String()
}

// Maximum lengths in a note, in bytes.
const (
	maxQuoted = 60
	maxCallID = 64
)

// copyNote returns the note that replaces lines which the result of an earlier call shows as well.
func copyNote(lines, call string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(lines), "\n")
	call = record.Printable(call)
	return fmt.Sprintf("[%d lines left out here, from %s on: they stand unchanged in the result of %s above]",
		strings.Count(lines, "\n")+1, strconv.Quote(clip(strings.TrimSpace(first), maxQuoted)), cmp.Or(clip(call, maxCallID), "an earlier call"))
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
