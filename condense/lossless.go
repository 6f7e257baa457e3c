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

func (LosslessTrim) Name() string { return "lossless_trim" }

// Condense gives a Job whose condensation forgets nothing but has Trims.
func (l LosslessTrim) Condense(in Input) Decision {
	f := finder{in: in, from: arrived(in.View)}
	return arrivalOf(in, l.Name(), trims(in, f.from, f.trim))
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
	found map[string]place // where so many lines stand one after another; nil until the first result is looked at
}

// place is lines that a result shows one after another.
type place struct {
	pos    int
	text   string
	starts []int // at which lines begin, the first of them that of the place, and one behind the last line's end
}

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
	t.Copies = f.copies(text)
	if t.Tidy || len(t.Copies) > 0 {
		raw, less := smaller(&f.in, item, item.Raw, renderTrim(f.in.View.History, text, t))
		if less && len(raw) < len(item.Raw) {
			f.add(t.Pos, text, partsOf(text, &t))
			return t, true
		}
	}
	f.add(t.Pos, content.Text, partsOf(content.Text, nil))
	return session.Trim{}, false
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

// copies finds the parts of a text that an earlier result shows.
func (f *finder) copies(text string) (copies []session.Copy) {
	if len(text) < copyBytes || strings.Count(text, "\n") < copyLines-1 {
		return nil
	}
	f.index()
	here := lines(text, session.Range{From: 0, To: len(text)})
	for i := 0; i+copyLines < len(here); i++ {
		there, ok := f.found[first(copyLines, text, here[i:])]
		if !ok {
			continue
		}
		n := copyLines
		for i+n+1 < len(here) && n+1 < len(there.starts) && first(1, text, here[i+n:]) == first(1, there.text, there.starts[n:]) {
			n++
		}
		c := session.Copy{From: here[i], To: here[i+n] - 1, Source: there.pos, At: there.starts[0]}
		if c.To-c.From >= copyBytes {
			copies = append(copies, c)
			i += n - 1
		}
	}
	return copies
}

// index reads what was there before, the first time.
func (f *finder) index() {
	if f.found != nil {
		return
	}
	f.found = map[string]place{}
	s := shelf{codec: f.in.Codec, view: f.in.View}
	for _, item := range f.in.View.Items[:f.from] {
		if item.Index >= 0 && item.Kind == session.Observation {
			pos := f.in.View.History.Pos(item.Index)
			r := s.read(pos)
			f.add(pos, r.text, r.parts)
		}
	}
}

// add takes in what is shown of a text.
func (f *finder) add(pos int, text string, shown []session.Range) {
	for _, r := range shown {
		if f.found == nil || r.To-r.From < copyBytes {
			continue
		}
		starts := lines(text, r)
		for i := 0; i+copyLines < len(starts); i++ {
			f.found[first(copyLines, text, starts[i:])] = place{pos, text, starts[i:]}
		}
	}
}

// lines tells where the whole lines of a part of a text begin, and then one behind the end of the last of them.
func lines(text string, r session.Range) (starts []int) {
	next := r.From
	for at := r.From; at < r.To; {
		end := r.To
		if n := strings.IndexByte(text[at:r.To], '\n'); n >= 0 {
			end = at + n
		}
		if whole := (at == 0 || text[at-1] == '\n') && (end == len(text) || text[end] == '\n'); whole {
			starts, next = append(starts, at), end+1
		}
		at = end + 1
	}
	return append(starts, next)
}

// first is the first n lines of a text, by where they begin.
func first(n int, text string, starts []int) string { return text[starts[0] : starts[n]-1] }
