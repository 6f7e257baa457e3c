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

// Render writes a view's trimmed results as they are shown. What a result leaves out because an earlier one shows it comes back where
// that one does not show it any more: in the first result that has it. To the others, that one is then the earlier one.
func Render(codec Codec, v *session.View) {
	s := shelf{codec: codec, view: v, results: map[int]result{}, moved: map[int][]session.Copy{}}
	for i := range v.Items {
		if v.Items[i].Trim != nil {
			s.render(&v.Items[i])
		}
	}
}

// shelf is the tool results of a view.
type shelf struct {
	codec   Codec
	view    *session.View
	items   map[int]*session.Item  // by position; nil until one is looked for
	results map[int]result         // likewise, as far as they were read
	moved   map[int][]session.Copy // where parts of a text that is not shown stand instead: From and To are in it, Source and At are that place
}

// result is the text of a tool result, tidied where it is shown so, and which bytes of it are shown.
type result struct {
	text  string
	parts []session.Range
}

// maxMoved is how many places are remembered for a text that is not shown.
const maxMoved = 8

// render writes one item. What cannot be read or written stays as it is.
func (s *shelf) render(item *session.Item) {
	fresh := pristine(s.view, *item)
	if !fresh && len(item.Trim.Copies) == 0 {
		return
	}
	pos := s.view.History.Pos(item.Index)
	text, err := s.text(item)
	if err != nil {
		return
	}
	t := *item.Trim
	if t.Copies = s.resolve(pos, text, t.Copies); fresh || !slices.Equal(t.Copies, item.Trim.Copies) {
		own := s.view.History.Messages[item.Index].Raw
		if raw, err := s.codec.Rewrite(own, renderTrim(s.view.History, text, t)); err == nil {
			item.Raw, item.Trim = raw, &t
		}
	}
	s.results[pos] = result{text, partsOf(text, item.Trim)}
}

// resolve gives those copies of a text whose source is shown, at the place where it is.
func (s *shelf) resolve(pos int, text string, copies []session.Copy) (out []session.Copy) {
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
		m := append(s.moved[c.Source], session.Copy{From: c.At, To: c.At + c.To - c.From, Source: pos, At: c.From})
		s.moved[c.Source] = m[max(len(m)-maxMoved, 0):]
	}
	return out
}

// find looks for a part of a text: where it is, or where it was shown instead.
func (s *shelf) find(source, at int, part string) (pos, from int, ok bool) {
	if s.shows(source, at, part) {
		return source, at, true
	}
	for _, m := range s.moved[source] {
		if m.From <= at && at+len(part) <= m.To {
			return m.Source, m.At + at - m.From, s.shows(m.Source, m.At+at-m.From, part)
		}
	}
	return 0, 0, false
}

// shows reports whether the view shows that part of the text of a position.
func (s *shelf) shows(pos, at int, part string) bool {
	r, known := s.results[pos]
	if !known {
		r = s.read(pos)
		s.results[pos] = r
	}
	return slices.ContainsFunc(r.parts, func(shown session.Range) bool {
		return shown.From <= at && at+len(part) <= shown.To && r.text[at:at+len(part)] == part
	})
}

// read reads the result at a position. Nothing of it is shown where the view has none, or a condenser put something else in its place.
func (s *shelf) read(pos int) result {
	if s.items == nil {
		s.items = map[int]*session.Item{}
		for i := range s.view.Items {
			if item := &s.view.Items[i]; item.Index >= 0 && item.Kind == session.Observation {
				s.items[s.view.History.Pos(item.Index)] = item
			}
		}
	}
	item, ok := s.items[pos]
	if !ok || item.Trim == nil && !pristine(s.view, *item) {
		return result{}
	}
	text, err := s.text(item)
	if err != nil {
		return result{}
	}
	return result{text, partsOf(text, item.Trim)}
}

// text is the text of an item's message, tidied if it is shown so.
func (s *shelf) text(item *session.Item) (string, error) {
	c, err := s.codec.Read(s.view.History.Messages[item.Index].Raw)
	if err == nil && item.Trim != nil && item.Trim.Tidy {
		return tidy.Text(c.Text), nil
	}
	return c.Text, err
}

// partsOf is what a trim shows of a text.
func partsOf(text string, t *session.Trim) (parts []session.Range) {
	from := 0
	switch {
	case t == nil:
	case t.Cut():
		head, tail := bounds(text, *t)
		return []session.Range{{From: 0, To: head}, {From: tail, To: len(text)}}
	default:
		for _, c := range t.Copies {
			parts = append(parts, session.Range{From: from, To: c.From})
			from = c.To
		}
	}
	return append(parts, session.Range{From: from, To: len(text)})
}

// renderTrim is a text as a trim shows it, with a note in the place of each copy.
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

// Bounds of what a note tells, in bytes.
const (
	maxQuoted = 60
	maxCallID = 64
)

// copyNote stands for lines that the result of an earlier call shows, too.
func copyNote(lines, call string) string {
	first := ""
	for line := range strings.Lines(lines) {
		if first = strings.TrimSpace(line); first != "" {
			break
		}
	}
	call = record.Printable(call)
	return fmt.Sprintf("[%d lines left out here, from %s on: they stand unchanged in the result of %s above]",
		strings.Count(lines, "\n")+1, strconv.Quote(clip(first, maxQuoted)), cmp.Or(clip(call, maxCallID), "an earlier call"))
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "..."
}
