package session

import (
	"math"
	"slices"
	"time"
)

// Range is the positions From to To-1.
type Range struct {
	From, To int
}

// Reason says why a condensation took place.
type Reason string

// The reasons, from the least to the most pressing.
const (
	ReasonEconomics Reason = "economics"
	ReasonEvents    Reason = "events"
	ReasonTokens    Reason = "tokens"
	ReasonWindow    Reason = "window" // the model's window less the reserved output
	ReasonRequest   Reason = "request"
	ReasonOverflow  Reason = "overflow"
	ReasonArrival   Reason = "arrival" // a message was too large when it came
	ReasonAside     Reason = "aside"   // it is none, but an Aside

	ReasonKnowledge Reason = "knowledge" // what a person typed called for an added text
	ReasonRepeated  Reason = "repeated"  // the model made a call again and again, and is told so by an added text
)

// Size measures a view.
type Size struct {
	Events, Tokens int
}

// Condensation is a tombstone in the log. It deletes nothing: it says that a view of any history which begins with the
// prefix it covers leaves the forgotten messages out and shows the summary instead.
type Condensation struct {
	ID     CondensationID
	Base   CondensationID // the condensation it builds on, zero if none
	Prefix int            // positions covered: the cut's end
	Hash   Hash           // chain hash of those positions
	Hidden Hidden         // stands for the messages newly hidden or trimmed, for a history that differs before them

	Forgotten       []Range // positions newly forgotten, ascending
	ForgottenTokens int     // their token count, and that of what was trimmed, in the encoding of the condensing request
	Trims           []Trim  // positions shown in part, ascending
	Summary         string  // text of the message that stands for all that is forgotten so far, empty if none
	SummaryTokens   int
	Offset          int // position before which the summary stands
	Stripped        int // last position whose sealed reasoning is left out: it was made under another prefix; 0 if none is

	// Provisional: it was made without the summary that was due, because the summariser failed. The next condensation
	// summarises what it hides, which the client still sends.
	Provisional bool

	Addition
	Making

	Reason        Reason
	Condenser     string
	Model         string // of the summariser, empty if none
	Before, After Size   // of the whole, as upstream charges it
	Time          time.Time
}

// Addition makes a condensation one that forgets nothing: its summary is a text that is added to a message, for good.
type Addition struct {
	Added  int      // position of the message; 0: it is none
	Topics []string // names of what the text says
}

// Making is how a condensation was made.
type Making struct {
	Request string // model of the request that it was made for, empty if not known
	Cause   string // why it is provisional, in a word; empty where it is not
	Prompt  string // stands for what the summariser was told to do, empty if it was told nothing
	Rode    Usage  // the part of Used of a call of the request's own model behind what upstream's cache had; zero: there was none
	Cost           // of the summariser's calls, those in vain included; Took is known without any, too
}

// Hidden stands for messages of a history, wherever they are in it.
type Hidden struct {
	Span Hash // they are unchanged
	Run  Hash // or their client has cut tool results among them; zero if nothing proves that it is the same run
}

// Trim says that a view shows the text at a position in part. It is decided once, unless the window is too small for what it leaves:
// then a later one shows less.
type Trim struct {
	Pos        int
	Head, Tail int    // bytes of its beginning and its end that are shown; a Head of Whole cuts nothing
	Tidy       bool   // it is shown tidied, and all bytes are counted in that
	Copies     []Copy // parts of it that an earlier result shows as well, ascending; empty where it is cut
	Named      bool   // the note in the place of what is cut names the position
}

// Whole is a Head that is longer than any text.
const Whole = math.MaxInt32

// Copy is a part of a text that an earlier one has too: a view that shows that one shows a note instead.
type Copy struct {
	From, To   int // bytes of the text
	Source, At int // position of the earlier text, and where it begins there
}

// Cut reports whether only the beginning and the end are shown.
func (t *Trim) Cut() bool { return t.Head != Whole }

// Answers reports whether c is what a request for a condensation asks for: the trim of a message that has just
// come is not, nor is an aside, or an added text.
func (c *Condensation) Answers() bool { return c.Reason != ReasonArrival && !c.Aside() && c.Added == 0 }

// CondensationID names a condensation: the thread that made it and its place in that thread's log.
type CondensationID struct {
	Thread ThreadID
	Seq    uint64
}

func (id CondensationID) zero() bool { return id == CondensationID{} }

// Usage is what a model call used, in tokens, as its server reported it.
type Usage struct {
	Input, Cached, Output int

	// Written are tokens of Input that were written to a cache at a price of their own, WrittenLong those of them that stay there for an
	// hour. They are told of answers only, and are not kept with condensations.
	Written, WrittenLong int
}

// Applicable is those condensations whose covered prefix is the history's own, each building on the one before, oldest
// first. An edit inside a prefix makes its hash another one, so that condensation, and those that build on it, no longer
// apply. Nor does one that another continuation of the prefix made, if it would hide this one's newest user message or
// last unit, or a part of a unit that goes on here; or one that hides a call whose result came only after it. Of two that build on the same one (two replicas were at it), the first
// logged counts.
func Applicable(h *History, condensations []Condensation) []Condensation {
	if len(condensations) == 0 {
		return nil
	}
	var out []Condensation
	var base CondensationID
	units := Units(h.Messages)
	live, numbers, late := liveParts(h), unitNumbers(h, units), lateAnswers(h, units)
	for _, c := range condensations {
		if c.Base == base && h.Covers(c.Prefix, c.Hash) && !c.forgets(live) && !c.tears(numbers) && !c.separates(late) {
			out = append(out, c)
			base = c.ID
		}
	}
	return out
}

// unitNumbers gives the number of the unit that each position is in (1-based; 0 at both ends).
func unitNumbers(h *History, units []Unit) []int {
	numbers := make([]int, h.Len()+2)
	for n, u := range units {
		for i := u.From; i < u.To; i++ {
			if p := h.Pos(i); p > 0 {
				numbers[p] = n + 1
			}
		}
	}
	return numbers
}

// tears reports whether a unit would be forgotten in part.
func (c *Condensation) tears(units []int) bool {
	for _, r := range c.Forgotten {
		for _, edge := range [...]struct{ outside, inside int }{{r.From - 1, r.From}, {r.To, r.To - 1}} {
			if unit := units[edge.outside]; unit > 0 && unit == units[edge.inside] && !c.Hides(edge.outside) {
				return true
			}
		}
	}
	return false
}

// separates reports whether a call would be forgotten without its answer, or an answer without its call.
func (c *Condensation) separates(answers []answer) bool {
	return slices.ContainsFunc(answers, func(a answer) bool { return c.Hides(a.call) != c.Hides(a.result) })
}

// Hides reports whether it newly forgets a position.
func (c *Condensation) Hides(position int) bool {
	return slices.ContainsFunc(c.Forgotten, func(r Range) bool { return r.From <= position && position < r.To })
}

// liveParts is the positions that no view may leave out: the newest user message and the last unit.
func liveParts(h *History) [2]Range {
	var parts [2]Range
	for p := h.Len(); p > 0; p-- {
		if h.Message(p).Kind == User {
			parts[0] = Range{From: p, To: p + 1}
			break
		}
	}
	for i := lastUnit(h.Messages).From; i < len(h.Messages); i++ {
		if p := h.Pos(i); p > 0 {
			parts[1] = Range{From: p, To: h.Len() + 1}
			break
		}
	}
	return parts
}

func (c *Condensation) forgets(parts [2]Range) bool {
	return slices.ContainsFunc(c.Forgotten, func(f Range) bool {
		return slices.ContainsFunc(parts[:], func(p Range) bool { return f.From < p.To && p.From < f.To })
	})
}

// Made is what a condensation put in the place of what it hid.
type Made string

// The ways of a condensation.
const (
	MadeSummary     Made = "summary"     // a model's summary
	MadeExcerpts    Made = "excerpts"    // lines of what it hid; where a summary was due, the next condensation makes up for it
	MadePlain       Made = "plain"       // nothing: its strategy makes no summary
	MadeProvisional Made = "provisional" // nothing yet: the summary that was due failed, and the next condensation makes up for it
	MadeTrim        Made = "trim"        // parts of single messages
)

// Asked is how the model was asked that wrote a summary.
type Asked string

// The ways to ask for a summary.
const (
	AskedCold         Asked = "cold"           // by a prompt of its own
	AskedCached       Asked = "cached"         // behind the client's own prompt, which the provider's cache had
	AskedCachedInVain Asked = "cached_in_vain" // so, but what came was no good, so that it was asked by a prompt of its own
)

// Asked tells which of them it was; empty where no model wrote it.
func (c *Condensation) Asked() Asked {
	switch {
	case c.Model == "":
		return ""
	case c.Rode == (Usage{}):
		return AskedCold
	case c.Calls == 1:
		return AskedCached
	}
	return AskedCachedInVain
}

// Made tells which of them it was.
func (c *Condensation) Made() Made {
	switch {
	case len(c.Forgotten) == 0:
		return MadeTrim
	case c.Model == "" && c.SummaryTokens > 0:
		return MadeExcerpts
	case c.Provisional:
		return MadeProvisional
	case c.SummaryTokens == 0:
		return MadePlain
	}
	return MadeSummary
}

// Cost is what calls of summarisers came to.
type Cost struct {
	Calls    int           // that were made, be it in vain
	Took     time.Duration // to make the condensations that they were for
	Used     Usage
	Nano     int64  // billionths of a dollar
	Unpriced string // a model whose price is not known; empty: there is none
}

// Add adds what other calls came to.
func (c *Cost) Add(more Cost) {
	c.Calls += more.Calls
	c.Took += more.Took
	c.Used.Input += more.Used.Input
	c.Used.Cached += more.Used.Cached
	c.Used.Output += more.Used.Output
	c.Nano += more.Nano
	if more.Unpriced != "" {
		c.Unpriced = more.Unpriced
	}
}

// Savings is what condensing saved of a thread's answered requests, and what it cost, whatever became of it.
type Savings struct {
	Tokens    int64 // of prompts, fewer than their client sent; negative: more
	NotSent   int64 // what those would have cost, in billionths of a dollar
	Rewritten int64 // likewise, what prompt caches cost that had to be written again: negative
	Cost
}

// Add adds what came later.
func (s *Savings) Add(more Savings) {
	s.Tokens += more.Tokens
	s.NotSent += more.NotSent
	s.Rewritten += more.Rewritten
	s.Cost.Add(more.Cost)
}
