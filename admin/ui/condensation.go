package ui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/excerpt"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// CondensationReads is what the page of a condensation is made from.
type CondensationReads struct {
	Place    Place
	Thread   session.Thread
	Steps    []int
	MadeAt   int // position up to which the history was logged when it was made
	Missing  Missing
	One      session.Condensation
	Text     string // of its record; empty: it has none, or it is not shown
	Before   string // the record before it
	Messages []Message
}

// Condensation is the page of a condensation.
type Condensation struct {
	Place
	Number     int
	Step       int // the first step that it shaped; 0: none yet
	StepURL    string
	SessionURL string
	Why        string
	Facts      []Fact
	Diff, Rest []DiffLine
	First      bool // there is no record before
	Uses       []Use
	Checked    int // later messages of the model that were looked at
	Lost       int // of Uses, those that the record does not hold
	More       int // uses that are left out
	Missing    Missing
	NoRecord   string
	Trims      []Link
}

func (Condensation) template() string { return "condensation" }

// Heading returns the title.
func (out Condensation) Heading() string {
	return fmt.Sprintf("Condensation %d · %s", out.Number, out.Title)
}

// Use is something hidden that the agent came back to.
type Use struct {
	Step    int
	StepURL string
	Name    string
	From    Link // the hidden message
	Held    bool // the record holds it
}

// NewCondensation makes the page of a condensation.
func NewCondensation(in *CondensationReads) Condensation {
	c := &in.One
	out := Condensation{
		Place: in.Place, SessionURL: in.Place.sessionURL() + "?thread=" + string(in.Place.Thread), Missing: in.Missing, First: in.Before == "",
		Number: slices.IndexFunc(in.Thread.Condensations, func(t session.Condensation) bool { return t.ID == c.ID }) + 1,
	}
	if n := stepAfter(in.Steps, in.MadeAt); n > 0 {
		out.Step, out.StepURL = n, in.Place.stepURL(in.Steps[n-1])
	}
	out.Why = why(c)
	out.Facts = making(c)
	if in.Text != "" {
		all := diff(lines(in.Before), lines(in.Text))
		out.Diff, out.Rest = all[:min(len(all), diffLines)], all[min(len(all), diffLines):]
	}
	if out.Missing == NotMissing && in.Text == "" {
		out.NoRecord = "This condensation has no record: " + made[c.Made()] + "."
	}
	if len(in.Messages) > 0 {
		out.uses(in)
	}
	return out
}

// stepAfter returns the number of the first step at a position or after it; 0 if there is none.
func stepAfter(steps []int, pos int) int {
	for i, at := range steps {
		if at >= pos {
			return i + 1
		}
	}
	return 0
}

// why says in a sentence why a condensation was made and what it did.
func why(c *session.Condensation) string {
	text := fmt.Sprintf("At %s tokens in %s, %s.", tokens(c.Before.Tokens), plural(c.Before.Events, "message"), reasons[c.Reason])
	hidden := 0
	for _, r := range c.Forgotten {
		hidden += r.To - r.From
	}
	switch {
	case c.Added > 0:
		return text + fmt.Sprintf(" A text was added to message %d.", c.Added)
	case hidden == 0:
		return text + " " + strings.ToUpper(plural(len(c.Trims), "message")[:1]) + plural(len(c.Trims), "message")[1:] + " trimmed."
	}
	return text + fmt.Sprintf(" %s of %s tokens left the prompt, which is %s tokens now.", plural(hidden, "message"), tokens(c.ForgottenTokens), tokens(c.After.Tokens))
}

// making says how a condensation was made.
func making(c *session.Condensation) []Fact {
	facts := []Fact{
		{Name: "Rule", Text: c.Condenser + ", by the rule “" + string(c.Reason) + "”"},
		{Name: "Made", Text: made[c.Made()], Bad: c.Provisional},
		{Name: "When", Text: when(c.Time) + " UTC, in " + c.Took.Round(1e6).String()},
	}
	if c.Calls > 0 {
		paid := "of unknown price: there is none for " + visible(c.Unpriced)
		if c.Unpriced == "" {
			paid = usd(float64(c.Nano) / nanoPerUSD)
		}
		facts = append(facts,
			Fact{Name: "Summary", Text: fmt.Sprintf("%s, %s, %s tokens in (%s cached), %s out", visible(c.Model), plural(c.Calls, "call"), tokens(c.Used.Input), tokens(c.Used.Cached), tokens(c.Used.Output))},
			Fact{Name: "Paid", Text: paid})
	} else {
		facts = append(facts, Fact{Name: "Paid", Text: "nothing: no model was asked"})
	}
	if g := c.Grounding; g.Lines > 0 {
		text := g.String() + " lines name only what the model was shown"
		if struck := g.Lines - g.Grounded; struck > 0 {
			text += fmt.Sprintf("; %d struck out, whose text is not kept", struck)
		}
		facts = append(facts, Fact{Name: "Grounded", Text: text, Bad: g.Grounded < g.Lines})
	}
	if c.Provisional {
		facts = append(facts, Fact{Name: "Failed", Text: "the summariser: " + visible(c.Cause), Bad: true})
	}
	if c.Prompt != "" {
		facts = append(facts, Fact{Name: "Prompt", Text: "version " + visible(c.Prompt) + "; what was asked is not kept, since it repeats the messages that are"})
	}
	return facts
}

const nanoPerUSD = 1e9

// lines returns the lines of a record that are compared.
func lines(text string) (out []string) {
	if text == "" {
		return nil
	}
	s := record.Parse(text)
	for line := range strings.SplitSeq(s.Record+"\n"+s.Words+"\n"+s.Excerpts, "\n") {
		if line = strings.TrimRight(line, " \t"); line != "" {
			out = append(out, line)
		}
	}
	return out
}

const (
	maxUses   = 60
	diffLines = 30 // shown at once
)

// uses finds what the agent named after the condensation that only the hidden messages held.
func (out *Condensation) uses(in *CondensationReads) {
	hidden, shown := map[string]int{}, map[string]bool{}
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Content == nil || m.Pos > in.One.Prefix && !in.One.Hides(m.Pos) {
			continue
		}
		for name := range excerpt.Names(written(m.Content)) {
			if in.One.Hides(m.Pos) {
				hidden[name] = i
			} else if !hides(in, m.Pos) {
				shown[name] = true
			}
		}
	}
	held := map[string]bool{}
	for name := range excerpt.Names(in.Text) {
		held[name] = true
	}
	for i := range in.Messages {
		m := &in.Messages[i]
		if m.Content == nil || m.Pos <= in.One.Prefix {
			continue
		}
		if m.Kind.ByModel() {
			out.Checked++
		}
		last := ""
		for name := range excerpt.Names(written(m.Content)) {
			from, wasHidden := hidden[name]
			if wasHidden && !shown[name] && m.Kind.ByModel() && !strings.HasSuffix(last, "/"+name) {
				out.use(in, m, name, from, held[name])
			}
			shown[name], last = true, name // from here on the model sees it again
		}
	}
}

// hides reports whether any condensation up to this one hides a position.
func hides(in *CondensationReads, pos int) bool {
	for i := range in.Thread.Condensations {
		c := &in.Thread.Condensations[i]
		if c.Hides(pos) {
			return true
		}
		if c.ID == in.One.ID {
			break
		}
	}
	return false
}

func (out *Condensation) use(in *CondensationReads, m *Message, name string, from int, held bool) {
	if !held {
		out.Lost++
	}
	if len(out.Uses) == maxUses {
		out.More++
		return
	}
	u := Use{Name: visible(cut(name, 120)), Held: held, From: Link{"message " + count(in.Messages[from].Pos), ""}}
	at := in.Place
	if n, _ := slices.BinarySearch(in.Steps, m.Pos); n > 0 { // the request that the message answers
		u.Step, u.StepURL = n, in.Place.stepURL(in.Steps[n-1])
		at.At = in.Steps[n-1]
		u.From.URL = at.messageURL(from)
	}
	out.Uses = append(out.Uses, u)
}
