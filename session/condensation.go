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
	ReasonSize        Reason = "size"    // too many bytes, images or pages for upstream
	ReasonReplacement Reason = "aside"   // not a condensation but a replacement, see IsReplacement

	ReasonKnowledge Reason = "knowledge" // a user's message triggered an added text
)

// Size measures a view.
type Size struct {
	Events, Tokens int
}

// Condensation is a log entry that changes views. It deletes nothing: the view of any history that begins with the covered prefix leaves
// the forgotten messages out and shows the summary in their place.
type Condensation struct {
	ID     CondensationID
	Base   CondensationID // the condensation it builds on, zero if none
	Prefix int            // number of positions covered, up to the end of the cut
	Hash   Hash           // chain hash of those positions
	Hidden Hidden         // identifies the newly hidden or trimmed messages in histories that differ before them

	Forgotten       []Range // positions newly forgotten, ascending
	ForgottenTokens int     // their tokens and those trimmed away, in the encoding of the request that was condensed
	Trims           []Trim  // positions shown in part, ascending
	Summary         string  // text of the message that replaces all that is forgotten so far, empty if none
	SummaryTokens   int
	Offset          int // position before which the summary is shown
	Stripped        int // last position with sealed reasoning when it was made, 0 if none; the view leaves out reasoning from the first change to here
	Changed         int // first position before the hidden messages that the client has changed since, 0 if none

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

// Addition marks a condensation that forgets nothing, if Added is not 0: its Summary is permanently added to the message at Added.
type Addition struct {
	Added  int      // position of the message, 0 if this is not an addition
	Topics []string // names of the topics in the text
}

// Making is how a condensation was made.
type Making struct {
	Request string // model of the request it was made for, empty if unknown
	Cause   string // one word for why it is provisional, empty if it is not
	Prompt  string // identifies the summariser's instructions, empty if there were none
	Reused  Usage  // the part of Used of a call that reused the client's cached prompt, zero if there was none (see AskedCached)
	Cost           // of the summariser's calls, including failed ones; Took is set even if there were none

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

// Trim makes a view show only part of the text at a position. It is permanent; a later trim may show even less if the rest does not fit
// the window.
type Trim struct {
	Pos        int
	Head, Tail int    // bytes shown of its beginning and its end; if Head is Whole, nothing is cut
	Tidy       bool   // show the text tidied; all byte counts refer to the tidied text
	Copies     []Copy // parts that an earlier result contains too, ascending; empty if the text is cut
	Bare       bool   // show marks in place of its images and files
	Named      bool   // the note that stands for the cut names the position
}

// Whole is a Head longer than any text.
const Whole = math.MaxInt32

// Copy is a part of a text that an earlier text contains too. As long as a view shows the earlier text, it shows a note instead of the
// copy.
type Copy struct {
	From, To   int // bytes of the text
	Source, At int // position of the message with the earlier text, and the byte of that text where the part begins
}

// Cut reports whether only the beginning and the end are shown.
func (t *Trim) Cut() bool { return t.Head != Whole }

// Answers reports whether c fulfils a pending request for a condensation (Thread.Requested). Trims of newly arrived messages,
// omitted images, replacements and added texts do not.
func (c *Condensation) Answers() bool {
	return c.Reason != ReasonArrival && c.Reason != ReasonSize && !c.IsReplacement() && c.Added == 0
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
// A condensation applies if the history begins with the prefix that it covers. If a client edits a message of the prefix, the hash of the
// prefix changes, so the condensation and those that build on it no longer apply. A condensation that was made for another continuation of
// the prefix does not apply if in this history it would hide the newest user message or the last message, split a unit, or hide only one
// of a call and its result. If two build on the same one because two replicas condensed at once, the one that was logged first applies.
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

// splitsCall reports whether c forgets a call without its result, or a result without its call.
func (c *Condensation) splitsCall(answers []answer) bool {
	return slices.ContainsFunc(answers, func(a answer) bool { return c.Hides(a.call) != c.Hides(a.result) })
}

// Hides reports whether c newly forgets a position.
func (c *Condensation) Hides(position int) bool {
	return slices.ContainsFunc(c.Forgotten, func(r Range) bool { return r.From <= position && position < r.To })
}

// Made says what a condensation shows in place of the hidden messages.
type Made string

// The values of Made.
const (
	MadeSummary     Made = "summary"     // a summary that a model wrote
	MadeExcerpts    Made = "excerpts"    // lines of the hidden messages; if a summary was due, the next condensation makes it
	MadePlain       Made = "plain"       // nothing, because its strategy makes no summary
	MadeProvisional Made = "provisional" // nothing yet: the summary failed, and the next condensation makes it
	MadeTrim        Made = "trim"        // parts of single messages; none is hidden
)

// Asked says with which prompt a summary was requested.
type Asked string

// The values of Asked.
const (
	AskedCold         Asked = "cold"           // a prompt made for the summary only
	AskedCached       Asked = "cached"         // the client's own prompt, which the provider had cached, followed by the instructions
	AskedCachedInVain Asked = "cached_in_vain" // the client's own prompt, which gave no usable summary, and then one made for it
)

// Asked returns with which prompt the summary was requested, empty if no model wrote it.
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

// Made returns what c shows in place of the messages that it hides.
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
	Calls    int           // number of calls, including failed ones
	Took     time.Duration // time it took to make the condensations
	Used     Usage
	Nano     int64  // billionths of a dollar
	Unpriced string // one of the models whose price is unknown, empty if all are known
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

// Savings is what condensing saved on a thread's answered requests, and the cost of condensing, including failed calls.
type Savings struct {
	Tokens    int64 // prompt tokens that the client sent and upstream did not get; negative if upstream got more
	NotSent   int64 // price of these tokens, in billionths of a dollar
	Rewritten int64 // what rewriting prompt caches cost, as a negative amount in billionths of a dollar; positive if the removed tokens would not have been cached
	Cost
}

// Add adds other savings.
func (s *Savings) Add(more Savings) {
	s.Tokens += more.Tokens
	s.NotSent += more.NotSent
	s.Rewritten += more.Rewritten
	s.Cost.Add(more.Cost)
}
