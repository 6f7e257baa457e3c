package condense

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/tidy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// LosslessTrim shows tool results without what says nothing: colours, overwritten progress, repeated lines, white space of JSON, and
// longer parts that an earlier result of the same history shows already, for which a note tells where. Like ToolOutputTrim it decides
// on results as they arrive, and what it decided stays. Results with images are left alone.
type LosslessTrim struct{}

var _ Condenser = LosslessTrim{}

// Name implements Condenser.
func (LosslessTrim) Name() string { return "lossless_trim" }

// Condense implements Condenser. Its Job makes a condensation that forgets nothing but has Trims.
func (l LosslessTrim) Condense(in Input) Decision {
	f := finder{in: in, from: arrived(in.View)}
	var trims []session.Trim
	for i := f.from; i < len(in.View.Items); i++ {
		if t, ok := f.trim(in.View.Items[i]); ok {
			trims = append(trims, t)
		}
	}
	return arrivalOf(in, l.Name(), trims)
}

// Sizes of a part that is left out because an earlier result shows it.
const (
	copyLines = 6
	copyBytes = 300
)

// finder looks for lines that were there before.
type finder struct {
	in    Input
	from  int              // item of the view from which on results are new
	ids   map[string]int32 // of lines; nil until the first result is looked at
	texts []section
	found map[[copyLines]int32]place // where so many lines stand one after another
}

// section is lines that a result shows one after another.
type section struct {
	pos    int
	ids    []int32
	starts []int // bytes of the text at which lines begin, and one behind the last line's end
}

type place struct{ section, line int }

// trim decides on a new result.
func (f *finder) trim(item session.Item) (session.Trim, bool) {
	if item.Kind != session.Observation || item.Trim != nil || !pristine(f.in.View, item) {
		return session.Trim{}, false
	}
	content, err := f.in.Codec.Read(item.Raw)
	if err != nil || len(content.Images)+len(content.Files) > 0 {
		return session.Trim{}, false
	}
	t := session.Trim{Pos: f.in.View.History.Pos(item.Index), Head: session.Whole}
	text := content.Text
	if tidied := tidy.Text(text); tidied != text && tidied != "" && !f.writtenOut(text, content.Result) {
		text, t.Tidy = tidied, true
	}
	t.Copies = f.copies(t.Pos, text)
	if !t.Tidy && len(t.Copies) == 0 || !f.smaller(item, renderTrim(f.in.View.History, text, t)) {
		f.add(t.Pos, content.Text, []session.Range{{From: 0, To: len(content.Text)}})
		return session.Trim{}, false
	}
	shown := item
	shown.Trim = &t
	s := shelf{codec: f.in.Codec, view: f.in.View, texts: map[int]string{t.Pos: text}}
	f.add(t.Pos, text, s.partsOf(t.Pos, shown))
	return t, true
}

// writtenOut reports whether a text is JSON that was read from a file: who edits that needs it as it is written.
func (f *finder) writtenOut(text, call string) bool {
	if !tidy.JSON(text) {
		return false
	}
	asking := f.from - 1 // what is new answers the last calls
	for asking >= 0 && f.in.View.Items[asking].Kind != session.Action {
		asking--
	}
	return asking >= 0 && slices.ContainsFunc(read(f.in.Codec, f.in.View.Items[asking].Raw).Calls, func(c session.Call) bool {
		return c.ID == call && strings.Contains(strings.ToLower(c.Arguments), ".json")
	})
}

// smaller reports whether an item has fewer tokens with another text.
func (f *finder) smaller(item session.Item, text string) bool {
	raw, err := f.in.Codec.Rewrite(item.Raw, text)
	if err != nil || len(raw) >= len(item.Raw) {
		return false
	}
	rewritten := item
	rewritten.Raw = raw
	sizes := f.in.Measure([]session.Item{item, rewritten})
	return sizes[1] < sizes[0]
}

// copies finds the parts of a text that an earlier result shows.
func (f *finder) copies(pos int, text string) (copies []session.Copy) {
	if len(text) < copyBytes || strings.Count(text, "\n") < copyLines-1 {
		return nil
	}
	f.index()
	here := f.section(pos, text, session.Range{From: 0, To: len(text)})
	for i := 0; i+copyLines <= len(here.ids); i++ {
		at, ok := f.found[[copyLines]int32(here.ids[i:])]
		if !ok {
			continue
		}
		there, n := f.texts[at.section], copyLines
		for i+n < len(here.ids) && at.line+n < len(there.ids) && here.ids[i+n] == there.ids[at.line+n] {
			n++
		}
		c := session.Copy{From: here.starts[i], To: here.starts[i+n] - 1, Source: there.pos, At: there.starts[at.line]}
		if c.To-c.From >= copyBytes {
			copies = append(copies, c)
			i += n - 1
		}
	}
	return copies
}

// index reads what was there before, the first time.
func (f *finder) index() {
	if f.ids != nil {
		return
	}
	f.ids, f.found = map[string]int32{}, map[[copyLines]int32]place{}
	s := shelf{codec: f.in.Codec, view: f.in.View, texts: map[int]string{}}
	for _, item := range f.in.View.Items[:f.from] {
		if item.Index < 0 || item.Kind != session.Observation {
			continue
		}
		pos := f.in.View.History.Pos(item.Index)
		parts := s.partsOf(pos, item)
		f.add(pos, s.texts[pos], parts)
	}
}

// add takes in what is shown of a text.
func (f *finder) add(pos int, text string, shown []session.Range) {
	if f.ids == nil {
		return
	}
	for _, r := range shown {
		if r.To-r.From < copyBytes {
			continue
		}
		s := f.section(pos, text, r)
		for i := 0; i+copyLines <= len(s.ids); i++ {
			f.found[[copyLines]int32(s.ids[i:])] = place{len(f.texts), i}
		}
		f.texts = append(f.texts, s)
	}
}

// section is the whole lines of a part of a text.
func (f *finder) section(pos int, text string, r session.Range) section {
	s, next := section{pos: pos}, r.From
	for at := r.From; at < r.To; {
		end := r.To
		if n := strings.IndexByte(text[at:r.To], '\n'); n >= 0 {
			end = at + n
		}
		if whole := (at == 0 || text[at-1] == '\n') && (end == len(text) || text[end] == '\n'); whole {
			id, known := f.ids[text[at:end]]
			if !known {
				id = int32(len(f.ids)) //nolint:gosec // a body has fewer lines
				f.ids[text[at:end]] = id
			}
			s.ids, s.starts, next = append(s.ids, id), append(s.starts, at), end+1
		}
		at = end + 1
	}
	s.starts = append(s.starts, next)
	return s
}
