package session

import "time"

// Range is the positions From to To-1.
type Range struct {
	From, To int
}

// Reason says why a condensation took place.
type Reason string

// The reasons, from the least to the most pressing.
const (
	ReasonEvents   Reason = "events"
	ReasonTokens   Reason = "tokens"
	ReasonWindow   Reason = "window" // the model's window less the reserved output
	ReasonRequest  Reason = "request"
	ReasonOverflow Reason = "overflow"
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

	Forgotten       []Range // positions newly forgotten, ascending
	ForgottenTokens int     // their token count, in the encoding of the condensing request
	Summary         string  // text of the message that stands for all that is forgotten so far, empty if none
	SummaryTokens   int
	Offset          int // position before which the summary stands

	Reason        Reason
	Condenser     string
	Model         string // of the summariser, empty if none
	Before, After Size
	Usage         Usage // what the summariser used
	Time          time.Time
}

// CondensationID names a condensation: the thread that made it and its place in that thread's log.
type CondensationID struct {
	Thread ThreadID
	Seq    uint64
}

// Usage is what a model call used, in tokens, as its server reported it.
type Usage struct {
	Input, Cached, Output int
}

// Applicable is those condensations whose covered prefix is the history's own, each building on the one before, oldest
// first. An edit inside a prefix makes its hash another one, so that condensation, and those that build on it, no longer
// apply. Of two that build on the same one (two replicas were at it), the first logged counts.
func Applicable(h *History, condensations []Condensation) []Condensation {
	var out []Condensation
	var base CondensationID
	for _, c := range condensations {
		if c.Base == base && h.Covers(c.Prefix, c.Hash) {
			out = append(out, c)
			base = c.ID
		}
	}
	return out
}
