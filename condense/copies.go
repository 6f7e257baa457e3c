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
	s := shelf{codec: codec, view: v, texts: map[int]string{}, shown: map[int][]session.Range{}, moved: map[int][]session.Copy{}}
	for i := range v.Items {
		if v.Items[i].Trim != nil {
			s.render(&v.Items[i])
		}
	}
}

// shelf is the tool results of a view, by position: their texts, tidied where they are shown so, and what is shown of them.
type shelf struct {
	codec Codec
	view  *session.View
	items map[int]session.Item // nil until one is looked for
	texts map[int]string
	shown map[int][]session.Range // bytes of the text
	moved map[int][]session.Copy  // where parts of a text that is not shown stand instead: From and To are in it, Source and At are that place
}

// maxMoved is how many places are remembered for a text that is not shown.
const maxMoved = 8

// render writes one item. What cannot be read or written stays as it is.
func (s *shelf) render(item *session.Item) {
	fresh := pristine(s.view, *item)
	if !fresh && len(item.Trim.Copies) == 0 {
		return
	}
	pos, own := s.view.History.Pos(item.Index), s.view.History.Messages[item.Index].Raw
	text, err := s.text(pos, *item)
	if err != nil {
		return
	}
	copies := s.resolve(pos, text, item.Trim.Copies)
	if !fresh && slices.Equal(copies, item.Trim.Copies) {
		return
	}
	t := *item.Trim
	t.Copies = copies
	if raw, err := s.codec.Rewrite(own, renderTrim(s.view.History, text, t)); err == nil {
		item.Raw, item.Trim = raw, &t
	}
	if s.items != nil {
		s.items[pos] = *item
	}
}

// resolve gives those copies of a text whose source is shown, at the place where it is.
func (s *shelf) resolve(pos int, text string, copies []session.Copy) []session.Copy {
	var out []session.Copy
	last := 0
	for _, c := range copies {
		if c.From < last || c.To <= c.From || c.To > len(text) {
			continue
		}
		last = c.To
		if source, at, ok := s.find(c.Source, c.At, text[c.From:c.To]); ok && source < pos {
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
	for range maxMoved {
		if s.shows(source, at, part) {
			return source, at, true
		}
		i := slices.IndexFunc(s.moved[source], func(m session.Copy) bool { return m.From <= at && at+len(part) <= m.To })
		if i < 0 {
			break
		}
		m := s.moved[source][i]
		source, at = m.Source, m.At+at-m.From
	}
	return 0, 0, false
}

// shows reports whether the view shows that part of the text of a position.
func (s *shelf) shows(pos, at int, part string) bool {
	for _, r := range s.parts(pos) {
		if r.From <= at && at+len(part) <= r.To {
			return s.texts[pos][at:at+len(part)] == part
		}
	}
	return false
}

// parts is what the view shows of the text of a position, as ranges of bytes.
func (s *shelf) parts(pos int) []session.Range {
	if parts, known := s.shown[pos]; known {
		return parts
	}
	if s.items == nil {
		s.items = map[int]session.Item{}
		for _, item := range s.view.Items {
			if item.Index >= 0 && item.Kind == session.Observation {
				s.items[s.view.History.Pos(item.Index)] = item
			}
		}
	}
	var parts []session.Range
	if item, ok := s.items[pos]; ok {
		parts = s.partsOf(pos, item)
	}
	s.shown[pos] = parts
	return parts
}

func (s *shelf) partsOf(pos int, item session.Item) []session.Range {
	if item.Trim == nil && !pristine(s.view, item) {
		return nil // a condenser put something else in its place
	}
	text, err := s.text(pos, item)
	switch {
	case err != nil:
		return nil
	case item.Trim == nil:
		return []session.Range{{From: 0, To: len(text)}}
	case item.Trim.Cut():
		head, tail := bounds(text, *item.Trim)
		return []session.Range{{From: 0, To: head}, {From: tail, To: len(text)}}
	}
	var parts []session.Range
	from := 0
	for _, c := range item.Trim.Copies {
		parts = append(parts, session.Range{From: from, To: c.From})
		from = c.To
	}
	return append(parts, session.Range{From: from, To: len(text)})
}

// text is the text of an item's message, tidied if it is shown so.
func (s *shelf) text(pos int, item session.Item) (string, error) {
	if text, known := s.texts[pos]; known {
		return text, nil
	}
	c, err := s.codec.Read(s.view.History.Messages[item.Index].Raw)
	if err != nil {
		return "", fmt.Errorf("read a result: %w", err)
	}
	if item.Trim != nil && item.Trim.Tidy {
		c.Text = tidy.Text(c.Text)
	}
	s.texts[pos] = c.Text
	return c.Text, nil
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
