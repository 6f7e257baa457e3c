package session

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Range is the positions From to To-1.
type Range struct {
	From, To int
}

// Reason says why a condensation was made.
type Reason string

// The reasons, least pressing first.
const (
	ReasonEconomics   Reason = "economics"
	ReasonEvents      Reason = "events"
	ReasonTokens      Reason = "tokens"
	ReasonWindow      Reason = "window" // the model's window less the reserved output
	ReasonRequest     Reason = "request"
	ReasonOverflow    Reason = "overflow"
	ReasonArrival     Reason = "arrival" // a message was too large when it arrived
	ReasonReplacement Reason = "aside"   // marks a replacement, see IsReplacement

	ReasonKnowledge Reason = "knowledge" // a user's message triggered an added text
)

// Size measures a view.
type Size struct {
	Events, Tokens int
}

// Condensation is a tombstone in the log. It deletes nothing. Instead, a view of any history that begins with the covered
// prefix leaves the forgotten messages out and shows the summary instead.
type Condensation struct {
	ID     CondensationID
	Base   CondensationID // the condensation it builds on, zero if none
	Prefix int            // number of positions covered; the cut's end
	Hash   Hash           // chain hash of those positions
	Hidden Hidden         // identifies the newly hidden or trimmed messages in a history that differs before them

	Forgotten       []Range // positions newly forgotten, ascending
	ForgottenTokens int     // their tokens and those trimmed away, in the encoding of the condensing request
	Trims           []Trim  // positions shown in part, ascending
	Summary         string  // text of the message that replaces all that is forgotten so far, empty if none
	SummaryTokens   int
	Offset          int // position before which the summary is shown
	Stripped        int // position of the last answer before it with sealed reasoning, which is left out from its first change on; 0 if none
	Changed         int // first position in front of what it hides that the client has changed since; 0 if none

	// Provisional: made without the summary that was due, because the summariser failed. The next condensation also
	// summarises the messages hidden by this one, which the client still sends.
	Provisional bool

	Addition
	Making

	Reason        Reason
	Condenser     string
	Model         string // of the summariser, empty if none
	Before, After Size   // of the whole request, as upstream charges it
	Time          time.Time
}

// Addition makes a condensation one that forgets nothing. Its summary is a text that is permanently added to a message.
type Addition struct {
	Added  int      // position of the message, 0 if this is not an addition
	Topics []string // names of the topics in the text
}

// Making is how a condensation was made.
type Making struct {
	Request string // model of the request it was made for, empty if unknown
	Cause   string // one word for why it is provisional, empty if it is not
	Prompt  string // identifies the summariser's instructions, empty if there were none
	Reused  Usage  // the part of Used by a call that asked the request's own model behind its cached prompt, zero if none
	Cost           // of the summariser's calls, failed ones included; Took is set even if there were none

	Grounding Grounding // of the record that a model wrote
}

// Grounding counts the lines of a record, as a model wrote it, that name something: paths, ids, numbers, code or quotations. Lines that name
// what the model was not shown have been struck out. It is zero if there are none, or if an earlier version made the record.
type Grounding struct {
	Grounded int // lines that stayed
	Lines    int // with those that were struck out
}

// String returns a text such as "41 of 43", or "" if no line names anything.
func (g Grounding) String() string {
	if g.Lines == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d", g.Grounded, g.Lines)
}

// Hidden identifies messages of a history, wherever they are in it.
type Hidden struct {
	Span Hash // matches if they are unchanged
	Run  Hash // matches even if the client has cut tool results among them; zero if nothing proves it is the same run

	Results []Result // the newest tool results among them, ascending, if Run is not zero
}

// Trim makes a view show the text at a position in part. It is permanent, except that a later trim shows less if even
// the rest does not fit the window.
type Trim struct {
	Pos        int
	Head, Tail int    // bytes shown of its beginning and its end; a Head of Whole cuts nothing
	Tidy       bool   // show the text tidied; all byte counts refer to the tidied text
	Copies     []Copy // parts that an earlier result shows as well, ascending; empty if the text is cut
	Named      bool   // the note in the place of the cut names the position
}

// Whole is a Head longer than any text.
const Whole = math.MaxInt32

// Copy is a part of a text that an earlier text contains too. While a view shows the earlier one, it shows a note instead
// of the copy.
type Copy struct {
	From, To   int // bytes of the text
	Source, At int // position of the earlier text, and the byte where the part begins in it
}

// Cut reports whether only the beginning and the end are shown.
func (t *Trim) Cut() bool { return t.Head != Whole }

// Answers reports whether c answers a request for a condensation. Trims of newly arrived messages, replacements and added texts
// do not.
func (c *Condensation) Answers() bool {
	return c.Reason != ReasonArrival && !c.IsReplacement() && c.Added == 0
}

// buildOn bases c on the newest condensation that the view shows, if there is one.
func (c *Condensation) buildOn(view *View) {
	if n := len(view.Applied); n > 0 {
		c.Base = view.Applied[n-1].ID
	}
}

// CondensationID names a condensation: the thread that made it and its entry in that thread's log.
type CondensationID struct {
	Thread ThreadID
	Seq    uint64
}

// Usage is the token usage of a model call, as its server reported it.
type Usage struct {
	Input, Cached, Output int

	// Written is the part of Input that was written to a cache at a separate price, and WrittenLong the part of Written
	// that stays there for an hour. They are set for answers only and are not stored with condensations.
	Written, WrittenLong int
}

// Applicable returns the condensations that apply to the history, each building on the one before, oldest first.
//
// A condensation applies if the prefix it covers is the history's own. Editing a message in the prefix changes its hash, so
// the condensation and those that build on it no longer apply. A condensation made by another continuation of the prefix
// does not apply if it would hide this history's newest user message or last unit, split a unit that goes on here, or hide
// a call whose result came only later. If two build on the same one because two replicas condensed at once, the one logged
// first counts.
func Applicable(h *History, condensations []Condensation) []Condensation {
	if len(condensations) == 0 {
		return nil
	}
	var out []Condensation
	var base CondensationID
	units := Units(h.Messages)
	numbers := unitNumbers(h, units)
	late := lateAnswers(h, units, numbers)
	user := h.Len() // position of the newest user message
	for user > 0 && !h.ByUser(h.At(user)) {
		user--
	}
	for _, c := range condensations {
		if c.Base == base && h.Covers(c.Prefix, c.Hash) && !c.Hides(user) && !c.Hides(h.Len()) && !c.splitsUnit(numbers) && !c.splitsCall(late) {
			out = append(out, c)
			base = c.ID
		}
	}
	return out
}

// unitNumbers returns the number of the unit that each position is in. Numbers start at 1; the entries before the first and
// after the last position are 0.
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

// splitsUnit reports whether c forgets one part of a unit and leaves another.
func (c *Condensation) splitsUnit(units []int) bool {
	splitAt := func(inside, outside int) bool {
		unit := units[outside]
		return unit > 0 && unit == units[inside] && !c.Hides(outside)
	}
	return slices.ContainsFunc(c.Forgotten, func(r Range) bool {
		return splitAt(r.From, r.From-1) || splitAt(r.To-1, r.To)
	})
}

// splitsCall reports whether c forgets a call without its answer, or an answer without its call.
func (c *Condensation) splitsCall(answers []answer) bool {
	return slices.ContainsFunc(answers, func(a answer) bool { return c.Hides(a.call) != c.Hides(a.result) })
}

// Hides reports whether c newly forgets a position.
func (c *Condensation) Hides(position int) bool {
	return slices.ContainsFunc(c.Forgotten, func(r Range) bool { return r.From <= position && position < r.To })
}

// Made is the kind of replacement that a condensation made for the hidden messages.
type Made string

// The kinds of replacement.
const (
	MadeSummary     Made = "summary"     // a model's summary
	MadeExcerpts    Made = "excerpts"    // lines of the hidden messages; if a summary was due, the next condensation makes it
	MadePlain       Made = "plain"       // nothing; its strategy makes no summary
	MadeProvisional Made = "provisional" // nothing yet; the summary failed, and the next condensation makes it
	MadeTrim        Made = "trim"        // parts of single messages
)

// Asked is how the model that wrote a summary was asked for it.
type Asked string

// The ways to ask for a summary.
const (
	AskedCold         Asked = "cold"           // with a prompt made for it
	AskedCached       Asked = "cached"         // behind the client's own prompt, which the provider had cached
	AskedCachedInVain Asked = "cached_in_vain" // behind the client's prompt, which gave no usable summary, and then cold
)

// Asked returns how the summary was asked for, empty if no model wrote it.
func (c *Condensation) Asked() Asked {
	switch {
	case c.Model == "":
		return ""
	case c.Reused == (Usage{}):
		return AskedCold
	case c.Calls == 1:
		return AskedCached
	}
	return AskedCachedInVain
}

// Made returns the kind of replacement that c made.
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

// Cost is the cost of summariser calls.
type Cost struct {
	Calls    int           // number of calls, failed ones included
	Took     time.Duration // time to make the condensations they were for
	Used     Usage
	Nano     int64  // billionths of a dollar
	Unpriced string // a model among them with unknown price, empty if none
}

// Add adds the cost of other calls.
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

// Savings is the amount saved by condensing a thread's answered requests, and the cost of condensing, failed calls included.
type Savings struct {
	Tokens    int64 // prompt tokens that the client sent and upstream did not get; negative if upstream got more
	NotSent   int64 // their price, in billionths of a dollar
	Rewritten int64 // price of rewriting prompt caches, in billionths of a dollar; negative, unless the caches would not have held what was removed
	Cost
}

// Add adds other savings.
func (s *Savings) Add(more Savings) {
	s.Tokens += more.Tokens
	s.NotSent += more.NotSent
	s.Rewritten += more.Rewritten
	s.Cost.Add(more.Cost)
}
