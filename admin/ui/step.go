package ui

import (
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Message is one message of a logged history, in the order in which the client sends it.
type Message struct {
	Pos     int // 0: a system message
	Kind    session.Kind
	Tokens  int
	Content Content // nil: it may not be shown, or is not kept
}

// Content returns what a message says. It is called only for messages that a page shows or looks into, since decoding all would take long.
type Content func() *session.Content

// Seen is one message as the model saw it.
type Seen struct {
	Index   int // of the message that it was made from; -1: the record
	Fate    Fate
	Content Content // nil: as Message.Content; unused where it was kept as sent
	Record  string  // text of the record
}

// Missing says why content is not shown.
type Missing string

// The reasons why content is missing.
const (
	NotMissing   Missing = ""
	NotPermitted Missing = "You may see figures, not content. An auditor or operator may read it."
	NotLinked    Missing = "Content is shown to those who open the link that Dewpoint prints when it starts, or who have a token: other users of this machine could open this page."
	NotKept      Missing = "Content is not kept (store.content is false), was encrypted under a key that is not configured, or is damaged."
	Incomplete   Missing = "Part of the log is missing: it expired, was evicted, or is being deleted. The next request of the thread restores what it can."
	TooLarge     Missing = "The history is too large to be shown as a whole. The API has it in pages, at …/events."
)

// StepReads is what the page of a step is made from.
type StepReads struct {
	Place    Place
	Thread   session.Thread
	Steps    []int // positions of the thread's steps, ascending, that of this page among them
	Missing  Missing
	Messages []Message
	View     []Seen                   // what the model saw; empty if that is not known
	Applied  []session.Condensation   // that shaped the view, oldest first
	Fresh    []session.CondensationID // those of Applied that the step before did not have
	Sent     session.Size
	Saw      session.Size
	From     int // index of the first message to show; 0: the page begins with a summary of all
	Facts    *StepFacts
}

// StepFacts is what was recorded of the step's request; nil where nothing was.
type StepFacts struct {
	Model   string
	Request string
	Rows    []Fact
	Times   []Span
	Origin  []int // tokens of the system prompt, tools, record, kept messages and new ones; none if they were not recorded
}

// Fact is a line of a list of facts.
type Fact struct {
	Name, Text string
	Bad        bool
	Links      []Link
}

// Span is a part of the time that a request took.
type Span struct {
	Name, Class string
	From, For   time.Duration // since the request arrived
}

// Lane is a span in a chart.
type Lane struct {
	Span
	X, W float64 // in hundredths of the whole
}

// Took says how long a span took.
func (s Span) Took() string {
	if s.For < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(s.For)/float64(time.Millisecond))
	}
	if s.For < time.Second {
		return fmt.Sprintf("%d ms", s.For.Milliseconds())
	}
	return fmt.Sprintf("%.1f s", s.For.Seconds())
}

// lanes lays spans out along the whole time.
func lanes(spans []Span) (out []Lane) {
	whole := time.Duration(1)
	for _, s := range spans {
		whole = max(whole, s.From+s.For)
	}
	part := func(d time.Duration) float64 { return 100 * float64(d) / float64(whole) }
	for _, s := range spans {
		out = append(out, Lane{s, part(s.From), max(part(s.For), 0.3)})
	}
	return out
}

// Place says where a page is.
type Place struct {
	Session session.SessionID
	Thread  session.ThreadID
	Title   string // of the session
	At      int    // position of the step
	File    string // if not empty, the page is a file of its own: links to other pages lead nowhere
}

// Step is the page of a step.
type Step struct {
	Place
	Number, Of       int
	Newer, Older     string // addresses of the steps before and after; empty: none
	Purpose          string
	Facts            []Fact
	Model, Request   string
	Origin           []Share
	Times            []Lane
	Missing          Missing
	Rows             []Row
	From             int
	Begin, Next      string // in a list that is longer than a page
	Difference       string
	SessionURL, List string
}

func (Step) template() string { return "step" }

// Heading returns the title.
func (s Step) Heading() string { return fmt.Sprintf("Step %d · %s", s.Number, s.Title) }

// Share is a part of a bar.
type Share struct {
	Name   string
	Class  string
	Tokens int
	X, W   float64 // in hundredths of the bar
}

// NewStep makes the page of a step.
func NewStep(in *StepReads) Step {
	number := slices.Index(in.Steps, in.Place.At) + 1
	s := Step{
		Place: in.Place, Number: number, Of: len(in.Steps), Purpose: purposes[in.Thread.Purpose], Missing: in.Missing, From: in.From,
		SessionURL: in.Place.sessionURL(), List: in.Place.stepURL(in.Place.At),
	}
	if number > 1 {
		s.Older = in.Place.stepURL(in.Steps[number-2])
	}
	if number < len(in.Steps) {
		s.Newer = in.Place.stepURL(in.Steps[number])
	}
	l := newLayout(in)
	s.Origin = l.origin()
	s.Facts = l.facts(number)
	if in.Facts != nil {
		s.Model, s.Request, s.Times = visible(in.Facts.Model), visible(in.Facts.Request), lanes(in.Facts.Times)
		s.Facts = append(s.Facts, in.Facts.Rows...)
	}
	rows := l.rows()
	if in.From > 0 {
		s.Rows, s.Next = l.window(rows)
		s.Begin = s.List
	} else {
		s.Rows = l.fit(rows)
	}
	return s
}

// facts says in words what was sent, seen and done.
func (l *layout) facts(number int) []Fact {
	in := l.in
	facts := []Fact{{Name: "The agent sent", Text: plural(in.Sent.Events, "message") + ", " + tokens(in.Sent.Tokens) + " tokens"}}
	saw := Fact{Name: "The model saw", Text: plural(in.Saw.Events, "message") + ", " + tokens(in.Saw.Tokens) + " tokens"}
	if in.Sent == in.Saw && len(in.Applied) == 0 {
		saw.Text = "the same, byte for byte"
	} else if less := in.Sent.Tokens - in.Saw.Tokens; less > 0 && in.Sent.Tokens > 0 {
		saw.Text += fmt.Sprintf(": %d%% less", 100*less/in.Sent.Tokens)
	}
	if len(in.View) == 0 {
		saw.Text = "not known: the view is made from content"
	}
	facts = append(facts, saw, l.done(number))
	if before := l.before; before > 0 {
		facts = append(facts, Fact{Name: "New since step " + count(number-1), Text: l.news()})
	}
	return facts
}

// done says which condensations shape the step, and which of them were made since the step before.
func (l *layout) done(number int) Fact {
	var links []Link
	fresh := 0
	for i := range l.in.Applied {
		c := &l.in.Applied[i]
		if slices.Contains(l.in.Fresh, c.ID) {
			fresh++
		}
		links = append(links, l.link(c))
	}
	f := Fact{Name: "Condensed", Links: links}
	switch {
	case len(links) == 0:
		f.Text = "nothing was due so far"
	case fresh > 0 && number > 1:
		f.Text = fmt.Sprintf("%s made since step %d, because %s. In force:", plural(fresh, "condensation"), number-1, reasons[l.in.Applied[len(links)-1].Reason])
	default:
		f.Text = "nothing new; in force:"
	}
	return f
}

// news says what the step has that the step before had not.
func (l *layout) news() string {
	n, sum := 0, 0
	for _, m := range l.in.Messages {
		if m.Pos > l.before {
			n, sum = n+1, sum+m.Tokens
		}
	}
	text := plural(n, "message") + ", " + tokens(sum) + " tokens"
	if len(l.in.Fresh) > 0 {
		return text + "; what stands before them was rewritten by a condensation"
	}
	return text + "; everything before them went upstream as in that step"
}
