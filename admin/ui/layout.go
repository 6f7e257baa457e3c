package ui

import (
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Row is a row of what the agent sent beside what the model saw. One of Both, Left with Right, Gap, Record or More is set.
type Row struct {
	Both        *Shown
	Left, Right *Shown
	Gap         *Gap
	Record      *Record
	More        *More
}

// draft is a row that may be on the page.
type draft struct {
	first  int  // index of its first message
	always bool // it has a place before others
	row    func() (row Row, cost int)
}

// Shown is a message as it is shown.
type Shown struct {
	Index   int
	Who     string
	Number  string // its position
	Tokens  int
	Fate    Fate
	Tag     string
	New     bool
	Text    string
	Whole   string // address of the whole message, if Text is only its beginning
	Size    string // of the whole message
	Missing bool   // its content is not shown
	Back    []Link // the lines of the record that stand for it
}

// Gap is a run of hidden messages.
type Gap struct {
	Count    int
	From, To int
	Tokens   int
	Fate     Fate
	By       []Link // condensations
	Items    []Shown
	All      string // address of the page that shows them all; empty: Items are all
}

// More stands for messages for which the page has no room.
type More struct {
	Count, Tokens int
	URL           string
}

// Sizes of a page. With the stylesheet, a page stays below 150 KB.
const (
	foldBytes    = 2 << 10  // longer messages are folded
	previewBytes = 600      // shown of a folded message
	lineBytes    = 140      // of a hidden message in the list of a gap
	gapItems     = 24       // hidden messages listed in a gap
	rowsBytes    = 84 << 10 // of all rows
	rowBytes     = 700      // of the markup of a row
	headRows     = 4        // always shown
)

// layout arranges the messages of a step.
type layout struct {
	in     *StepReads
	before int // position of the step before; 0: there is none
	seen   map[int]Seen
	record *session.Condensation
	text   string // of the record
	at     int    // index of the message before which the record stands
	hides  map[int]session.CondensationID
	refs   *references
}

func newLayout(in *StepReads) *layout {
	l := &layout{in: in, seen: map[int]Seen{}, hides: map[int]session.CondensationID{}, at: -1}
	if n := slices.Index(in.Steps, in.Place.At); n > 0 {
		l.before = in.Steps[n-1]
	}
	for i := range slices.Backward(in.Applied) {
		c := &in.Applied[i]
		if l.record == nil && c.Added == 0 && (c.SummaryTokens > 0 || c.Summary != "") {
			l.record = c
		}
	}
	for _, c := range in.Applied {
		for _, r := range c.Forgotten {
			for p := r.From; p < r.To; p++ {
				if _, already := l.hides[p]; !already {
					l.hides[p] = c.ID
				}
			}
		}
	}
	for i, s := range in.View {
		if s.Index >= 0 {
			l.seen[s.Index] = s
			continue
		}
		l.text, l.at = s.Record, len(in.Messages)
		if i+1 < len(in.View) {
			l.at = in.View[i+1].Index
		}
	}
	l.refs = findReferences(l)
	return l
}

// fate returns what became of a message. Without content the condensations tell it.
func (l *layout) fate(i int) Fate {
	m := l.in.Messages[i]
	if s, shown := l.seen[i]; shown {
		return s.Fate
	}
	if _, hidden := l.hides[m.Pos]; hidden && m.Pos > 0 {
		return hiddenFate(l.record)
	}
	if len(l.in.View) > 0 {
		return LeftOut
	}
	return Kept
}

// rows returns a row for each message, but one for a run of hidden messages unless they are listed from a message on.
func (l *layout) rows() (rows []draft) {
	placed := l.record == nil || len(l.in.View) > 0 && l.at < 0
	for next := 0; next < len(l.in.Messages); {
		i, end := next, next+1
		if !l.fate(i).Shown() && l.in.From == 0 {
			for end < len(l.in.Messages) && !l.fate(end).Shown() {
				end++
			}
			withRecord := !placed && (l.at < 0 || l.at >= i && l.at <= end)
			placed = placed || withRecord
			rows = append(rows, draft{i, true, func() (Row, int) { return l.gap(i, end, withRecord) }})
			next = end
			continue
		}
		if !placed && l.at == i {
			placed = true
			rows = append(rows, l.recordRow(i))
		}
		rows = append(rows, draft{i, l.isNew(i) || i < headRows, func() (Row, int) { return l.row(i) }})
		next = end
	}
	if !placed {
		rows = append(rows, l.recordRow(len(l.in.Messages)))
	}
	return rows
}

func (l *layout) isNew(i int) bool { return l.before > 0 && l.in.Messages[i].Pos > l.before }

func (l *layout) recordRow(i int) draft {
	return draft{i, true, func() (Row, int) {
		r := l.recordOf()
		return Row{Record: r}, r.cost
	}}
}

// row shows a message that the model saw, or a hidden one in a list of all.
func (l *layout) row(i int) (row Row, cost int) {
	m, fate := &l.in.Messages[i], l.fate(i)
	left := l.shown(i, m.Content, fate)
	cost = rowBytes + escaped(left.Text)
	if fate == Kept {
		row.Both = &left
		return row, cost
	}
	row.Left = &left
	if seen, ok := l.seen[i]; ok {
		right := l.shown(i, seen.Content, fate)
		right.Tag, right.Back = "as the model saw it", nil
		row.Right = &right
		cost += rowBytes + escaped(right.Text)
	}
	return row, cost
}

// shown returns a message as it is shown.
func (l *layout) shown(i int, c Content, fate Fate) Shown {
	m := &l.in.Messages[i]
	out := Shown{Index: i, Who: speakers[m.Kind], Tokens: m.Tokens, Fate: fate, Tag: fate.Words(), New: l.isNew(i), Back: l.refs.back[i]}
	if m.Pos > 0 {
		out.Number = count(m.Pos)
	}
	if out.New && fate == Kept {
		out.Tag = "new in this step"
	}
	if c == nil {
		out.Missing = true
		return out
	}
	if name := c().Name; name != "" && m.Kind == session.Observation {
		out.Who = "Result of " + visible(firstLine(name, 40))
	}
	text := written(c)
	if len(text) > foldBytes {
		out.Size, out.Whole = size(len(text)), l.in.Place.messageURL(i)
		text = cut(text, previewBytes)
	}
	out.Text = visible(text)
	return out
}

// gap shows a run of hidden messages, with the record beside it if that stands there.
func (l *layout) gap(from, to int, withRecord bool) (row Row, cost int) {
	messages := l.in.Messages[from:to]
	g := Gap{Count: len(messages), From: messages[0].Pos, To: messages[len(messages)-1].Pos, Fate: l.fate(from)}
	cost = rowBytes
	var by []session.CondensationID
	for i := range messages {
		g.Tokens += messages[i].Tokens
		if id, ok := l.hides[messages[i].Pos]; ok && !slices.Contains(by, id) {
			by = append(by, id)
		}
		if i < gapItems {
			line := l.line(from + i)
			g.Items = append(g.Items, line)
			cost += escaped(line.Text) + rowBytes/2
		}
	}
	for i := range l.in.Applied {
		if c := &l.in.Applied[i]; slices.Contains(by, c.ID) {
			g.By = append(g.By, l.link(c))
		}
	}
	if l.in.Place.File == "" {
		g.All = l.in.Place.fromURL(from)
	}
	row.Gap = &g
	if withRecord {
		row.Record = l.recordOf()
		cost += row.Record.cost
	}
	return row, cost
}

// line shows a hidden message as one line.
func (l *layout) line(i int) Shown {
	s := l.shown(i, l.in.Messages[i].Content, l.fate(i))
	s.Whole, s.Text = l.in.Place.messageURL(i), firstLine(s.Text, lineBytes)
	return s
}

// link returns a link to a condensation, by its number in the thread.
func (l *layout) link(c *session.Condensation) Link {
	n := slices.IndexFunc(l.in.Thread.Condensations, func(t session.Condensation) bool { return t.ID == c.ID }) + 1
	return Link{fmt.Sprint(n), l.in.Place.condensationURL(c.ID)}
}

// hrefOf returns the address of a message on this page or, if the page does not have it, on the one that does.
func (l *layout) hrefOf(i int) string {
	if l.in.From == 0 && !l.fate(i).Shown() {
		begin := i
		for begin > 0 && !l.fate(begin-1).Shown() {
			begin--
		}
		if i-begin >= gapItems {
			return l.in.Place.fromURL(i)
		}
	}
	return fmt.Sprintf("#m%d", i)
}

// fit leaves out rows until the others fit the page: the head, gaps, the record and what is new stay, then the newest.
func (l *layout) fit(drafts []draft) []Row {
	left := rowsBytes
	made := make([]*Row, len(drafts))
	keep := func(i int) bool {
		row, cost := drafts[i].row()
		if cost > left {
			return false
		}
		left -= cost
		made[i] = &row
		return true
	}
	for i := range drafts {
		if drafts[i].always {
			keep(i)
		}
	}
	for i := range slices.Backward(drafts) {
		if made[i] == nil && !keep(i) {
			break
		}
	}
	var out []Row
	for i := 0; i < len(drafts); i++ {
		if made[i] != nil {
			out = append(out, *made[i])
			continue
		}
		begin := i
		for i+1 < len(drafts) && made[i+1] == nil {
			i++
		}
		end := len(l.in.Messages)
		if i+1 < len(drafts) {
			end = drafts[i+1].first
		}
		out = append(out, Row{More: l.more(drafts[begin].first, end)})
	}
	return out
}

// more stands for messages for which the page has no room.
func (l *layout) more(from, to int) *More {
	m := More{URL: l.in.Place.fromURL(from)}
	for _, one := range l.in.Messages[from:to] {
		m.Count, m.Tokens = m.Count+1, m.Tokens+one.Tokens
	}
	return &m
}

// window returns the rows from In.From on that fit a page, and the address of those after them.
func (l *layout) window(drafts []draft) (out []Row, next string) {
	left := rowsBytes
	for i := range drafts {
		if drafts[i].first < l.in.From {
			continue
		}
		row, cost := drafts[i].row()
		if left -= cost; left < 0 && len(out) > 0 {
			return out, l.in.Place.fromURL(drafts[i].first)
		}
		out = append(out, row)
	}
	return out, ""
}

// origin returns the shares of a bar of what the model saw.
func (l *layout) origin() []Share {
	if f := l.in.Facts; f != nil && len(f.Origin) > 0 {
		shares := []Share{{Name: "system", Class: "tools"}, {Name: "tools", Class: "tools"}, {Name: "record", Class: "record"}, {Name: "kept messages", Class: "kept"}, {Name: "new in this step", Class: "new"}}
		for i := range shares {
			shares[i].Tokens = f.Origin[i]
		}
		return spread(slices.DeleteFunc(shares, func(s Share) bool { return s.Tokens == 0 }))
	}
	shares := []Share{{Name: "system", Class: "tools"}, {Name: "record", Class: "record"}, {Name: "kept messages", Class: "kept"}, {Name: "new in this step", Class: "new"}}
	if l.record != nil {
		shares[1].Tokens = l.record.SummaryTokens
	}
	for i, m := range l.in.Messages {
		switch {
		case !l.fate(i).Shown():
		case m.Pos == 0:
			shares[0].Tokens += m.Tokens
		case l.before > 0 && m.Pos > l.before:
			shares[3].Tokens += m.Tokens
		default:
			shares[2].Tokens += m.Tokens
		}
	}
	return spread(shares)
}

// spread places the shares of a bar one after another.
func spread(shares []Share) []Share {
	total, x := 0, 0.0
	for _, s := range shares {
		total += s.Tokens
	}
	if total == 0 {
		return nil
	}
	for i := range shares {
		shares[i].X, shares[i].W = x, 100*float64(shares[i].Tokens)/float64(total)
		x += shares[i].W
	}
	return shares
}
