package console

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Widths in columns.
const (
	boundary = 200 // of lines if the output is no terminal

	stepWidth   = 8  // "step 123"
	tokensWidth = 14 // "50.4k -> 24.0k"
	cachedWidth = 11 // "cached 100%"
	indent      = 10 // of what does not fit the first line: below the model
)

// clock is how a line begins.
const clock = "15:04:05"

// line is what is said about a request.
type line struct {
	at     time.Time
	model  string
	step   string
	tokens string // as sent, and as forwarded
	cached string
	saved  string
	lost   bool // saved is a loss
	notes  []string
	wrong  string // empty: nothing is
}

// lineOf returns the line about a request. worth says whether there is anything to say: other paths, such as the list of models, pass silently
// unless something goes wrong.
func lineOf(r *proxy.Record, today string) (l line, worth bool) {
	l = line{at: r.Times.Ended, model: terminal.Name(r.Asked.Model), wrong: trouble(r)}
	t := r.Turn
	if t == nil || r.Counts() {
		if l.model == "" {
			l.model = terminal.Name(strings.TrimSpace(r.Asked.Method + " " + r.Asked.Path))
		}
		return l, l.wrong != ""
	}
	if t.Step > 0 {
		l.step = fmt.Sprintf("step %d", t.Step)
	}
	l.notes = notes(r)
	if !r.IsStep() {
		return l, true
	}
	l.tokens = count(t.Before.Tokens)
	if t.After.Tokens != t.Before.Tokens {
		l.tokens += " -> " + count(t.After.Tokens)
	}
	if u := r.Call.Usage; u != nil && u.Input > 0 {
		l.cached = "cached " + percent(float64(u.Cached), float64(u.Input))
	}
	l.saved, l.lost = saving(t)
	if l.saved != "" && known(t) && t.Saved.Tokens != 0 {
		l.saved += " (today " + today + ")"
	}
	return l, true
}

// saving says what a request saved or cost more; in tokens, if its price is not known.
func saving(t *proxy.TurnRecord) (says string, lost bool) {
	usd := t.Saved.USD()
	switch {
	case t.Saved.Tokens == 0 && t.Spare.Tokens > 0 && t.Spare.USD() > 0:
		return "would save " + dollars(t.Spare.USD()), false
	case t.Saved.Tokens == 0, known(t) && usd == 0:
		return "", false
	case known(t) && usd < 0:
		return "cost " + dollars(-usd) + " more", true
	case known(t):
		return "saved " + dollars(usd), false
	case t.Saved.Tokens < 0:
		return count(-t.Saved.Tokens) + " tokens more", true
	}
	return count(t.Saved.Tokens) + " tokens fewer", false
}

// part is a column of a line.
type part struct {
	text   string
	width  int // that it is padded to
	colour terminal.Colour
}

// form is how much a screen has room for.
type form struct {
	clock  string
	model  int // columns
	cached bool
	today  bool   // on each line; otherwise only on those with notes
	unit   string // of tokens
	below  bool   // notes stand above the figures that do not fit beside them
}

// formFor returns the form for a width; 0 stands for an output without one.
func formFor(columns int) form {
	switch {
	case columns == 0 || columns >= 110:
		return form{clock: clock, model: 20, cached: true, today: true, unit: " tokens"}
	case columns >= 76:
		return form{clock: clock, model: 16, cached: true, below: true}
	}
	return form{clock: "15:04", model: 12, below: true}
}

// render lays a line out for a screen. It ends in a newline.
func (l *line) render(s terminal.Screen) string {
	columns := s.Columns()
	f := formFor(columns)
	if columns == 0 {
		columns = boundary
	}
	return layout(s, l.parts(f), columns)
}

func (l *line) parts(f form) []part {
	parts := []part{{l.at.Format(f.clock), 0, terminal.Faint}, {terminal.Clip(l.model, f.model), f.model, terminal.Bold}}
	if l.step != "" || l.tokens != "" {
		parts = append(parts, part{l.step, stepWidth, terminal.Plain})
	}
	if l.tokens != "" {
		parts = append(parts, part{l.tokens + f.unit, tokensWidth + len(f.unit), terminal.Plain})
	}
	if l.tokens != "" && f.cached {
		parts = append(parts, part{l.cached, cachedWidth, terminal.Faint})
	}
	var said []part
	for _, note := range l.notes {
		said = append(said, part{note, 0, terminal.Plain})
	}
	saved := l.savedPart(f)
	if f.below {
		parts = append(append(parts, said...), saved)
	} else {
		parts = append(append(parts, saved), said...)
	}
	return append(parts, part{l.wrong, 0, terminal.Red})
}

func (l *line) savedPart(f form) part {
	saved, colour := l.saved, terminal.Green
	if l.lost {
		colour = terminal.Yellow
	}
	if !f.today && len(l.notes) == 0 {
		saved, _, _ = strings.Cut(saved, " (")
	}
	return part{saved, 0, colour}
}

// layout puts parts next to each other, and what does not fit below, indented. Only a part that is longer than a line is broken.
func layout(s terminal.Screen, parts []part, columns int) string {
	var text strings.Builder
	at, pad := 0, 0 // the column after the last part, and what its column lacks
	for i, p := range parts {
		if p.text == "" {
			if at > 0 && p.width > 0 {
				pad += len("  ") + p.width
			}
			continue
		}
		width := utf8.RuneCountInString(p.text)
		switch {
		case i == 0:
		case at+pad+2+width <= columns:
			fmt.Fprintf(&text, "%*s", pad+2, "")
			at += pad + 2
		default:
			for _, piece := range terminal.Wrap(p.text, max(columns-indent, 20)) {
				fmt.Fprintf(&text, "\n%*s%s", indent, "", s.Paint(p.colour, piece))
				at, pad = indent+utf8.RuneCountInString(piece), 0
			}
			continue
		}
		text.WriteString(s.Paint(p.colour, p.text))
		at, pad = at+width, max(p.width-width, 0)
	}
	return text.String() + "\n"
}
