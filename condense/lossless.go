package condense

import (
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/tidy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// LosslessTrim shows tool results without redundant content: colours, overwritten progress, repeated lines, white space in
// JSON, and longer passages that an earlier result of the history shows already, for which a note names that result. Like
// ToolOutputTrim it decides on results when they arrive, and never changes a decision. Results with images or files are not
// changed.
type LosslessTrim struct{}

func (LosslessTrim) Name() string { return "lossless_trim" }

// Condense returns a Job whose condensation hides no messages but has Trims.
func (l LosslessTrim) Condense(in Input) Decision {
	f, stays := copyFinder{in: in, from: firstNew(in.View)}, in.stays()
	return trimDecision(in, l.Name(), trims(in, f.from, func(item session.Item) (session.Trim, bool) {
		if stays(&item) {
			return session.Trim{}, false
		}
		return f.trim(item)
	}))
}

// Minimum size of a passage that is left out because an earlier result shows it.
const (
	copyLines = 6
	copyBytes = 300
)

// copyFinder finds passages that an earlier result shows.
type copyFinder struct {
	in    Input
	from  int              // index of the first item that is new
	found map[string]place // by the text of copyLines consecutive lines; nil until index is called
}

// place is a passage of whole lines that a result shows.
type place struct {
	pos    int    // of the result
	text   string // of the whole result
	starts []int  // index of each line in text from the passage on, and one past the end of the last line
}

// trim decides how to trim a new result.
func (f *copyFinder) trim(item session.Item) (session.Trim, bool) {
	if item.Kind != session.Observation || item.Trim != nil || !f.in.View.Verbatim(&item) {
		return session.Trim{}, false
	}
	content, err := f.in.Codec.Read(item.Raw)
	if err != nil || len(content.Images)+len(content.Files) > 0 {
		return session.Trim{}, false
	}
	t := session.Trim{Pos: f.in.View.History.Pos(item.Index), Head: session.Whole}
	text := content.Text
	if tidied := tidy.Text(text); tidied != text && tidied != "" && !f.isFileContent(text, content.Result) {
		text, t.Tidy = tidied, true
	}
	t.Copies = f.copies(text)
	if t.Tidy || len(t.Copies) > 0 {
		raw, fewerTokens := rewriteMessage(&f.in, item, renderTrim(f.in.View.History, text, t))
		if fewerTokens && len(raw) < len(item.Raw) {
			f.add(t.Pos, text, shownParts(text, &t))
			return t, true
		}
	}
	f.add(t.Pos, content.Text, shownParts(content.Text, nil))
	return session.Trim{}, false
}

// isFileContent reports whether a text is JSON that was read from a file. An edit of the file needs the exact text.
func (f *copyFinder) isFileContent(text, call string) bool {
	if !tidy.JSON(text) {
		return false
	}
	asking := f.from - 1 // new results answer the last calls
	for asking >= 0 && f.in.View.Items[asking].Kind != session.Action {
		asking--
	}
	if asking < 0 {
		return false
	}
	calls := read(f.in.Codec, f.in.View.Items[asking].Raw).Calls
	return slices.ContainsFunc(calls, func(c session.Call) bool {
		return c.ID == call && strings.Contains(strings.ToLower(c.Arguments), ".json")
	})
}

// copies returns the passages of a text that an earlier result shows.
func (f *copyFinder) copies(text string) (copies []session.Copy) {
	if len(text) < copyBytes || strings.Count(text, "\n") < copyLines-1 {
		return nil
	}
	f.index()
	here := lineStarts(text, session.Range{From: 0, To: len(text)})
	for i := 0; i+copyLines < len(here); i++ {
		there, ok := f.found[firstLines(copyLines, text, here[i:])]
		if !ok {
			continue
		}
		n := copyLines
		for i+n+1 < len(here) && n+1 < len(there.starts) &&
			firstLines(1, text, here[i+n:]) == firstLines(1, there.text, there.starts[n:]) {
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

// index reads the earlier results, once.
func (f *copyFinder) index() {
	if f.found != nil {
		return
	}
	f.found = map[string]place{}
	s := resultSet{codec: f.in.Codec, view: f.in.View}
	for _, item := range f.in.View.Items[:f.from] {
		if item.Index >= 0 && item.Kind == session.Observation {
			pos := f.in.View.History.Pos(item.Index)
			r := s.read(pos)
			f.add(pos, r.text, r.parts)
		}
	}
}

// add indexes the shown parts of a text.
func (f *copyFinder) add(pos int, text string, shown []session.Range) {
	for _, r := range shown {
		if f.found == nil || r.To-r.From < copyBytes {
			continue
		}
		starts := lineStarts(text, r)
		for i := 0; i+copyLines < len(starts); i++ {
			f.found[firstLines(copyLines, text, starts[i:])] = place{pos, text, starts[i:]}
		}
	}
}

// lineStarts returns the index of each whole line in a part of a text, followed by one past the end of the last of them.
func lineStarts(text string, r session.Range) (starts []int) {
	at, next := r.From, r.From
	for line := range strings.Lines(text[r.From:r.To]) {
		end := at + len(strings.TrimSuffix(line, "\n"))
		if (at == 0 || text[at-1] == '\n') && (end == len(text) || text[end] == '\n') {
			starts = append(starts, at)
			next = end + 1
		}
		at += len(line)
	}
	return append(starts, next)
}

// firstLines returns the first n of the lines that begin at starts.
func firstLines(n int, text string, starts []int) string { return text[starts[0] : starts[n]-1] }
