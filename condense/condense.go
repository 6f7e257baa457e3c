// Package condense decides when a history has grown past the dew point, and makes it smaller. A Condenser is a strategy;
// deciding is pure, and only a Job that it returns does I/O.
package condense

import (
	"context"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Condenser is a strategy. It may be used concurrently.
type Condenser interface {
	// Name is the type's canonical name.
	Name() string
	// Condense decides what to do about a view. It does no I/O.
	Condense(in Input) Decision
}

// Codec reads and writes single messages of the client's protocol.
type Codec interface {
	// Read decodes a message.
	Read(raw []byte) (session.Content, error)
	// Note writes a user message that carries text.
	Note(text string) []byte
	// Rewrite gives a message with another text in the place of its content; everything else of it stays, byte for byte.
	Rewrite(raw []byte, text string) ([]byte, error)
}

// Input is what a condenser decides on.
type Input struct {
	View     *session.View
	Total    int                        // tokens of the whole request: messages, tools, priming; calibrated
	Measure  func([]session.Item) []int // tokens of items, calibrated; rewritten ones are counted as they are
	Count    func(text string) int      // tokens of any text, in the request's encoding
	Ratio    float64                    // of upstream's count to Count's, as far as it is known to be higher; else 0
	Fixed    int                        // part of Total that is not messages
	Window   int                        // the model's context window, in tokens; 0 if unknown
	Reserved int                        // tokens reserved for the answer
	Need     Need                       // what was asked for from outside; zero if nothing was
	Model    string                     // the request's model
	Upstream Endpoint                   // where the client's own request goes, for condensers without a model of their own
	Codec    Codec

	// Work runs what takes a processor for longer than a moment, as one of a bounded number; nil: at once. It fails if ctx ends first.
	Work func(ctx context.Context, f func()) error

	Thread Thread

	// NeedsReasoning says that upstream takes an open tool loop only with its reasoning. A soft condensation then waits for the
	// loop's end.
	NeedsReasoning bool
}

// Thread is what is known of a history besides its messages.
type Thread struct {
	Name  string        // for the summariser's health
	Idle  time.Duration // since its last request
	Sent  Prefix        // the request itself, to be asked for a summary; nil: it cannot be
	Keeps time.Duration // how long its client asks for an idle prefix to be kept in the cache; 0: it does not, or Idle is short
	Told  string        // what its client says of the record that is to stand for it

	Recall bool // the model can have hidden messages shown by their positions, so what stands for them names those
}

// reading counts a text that a model is to read.
func (in *Input) reading(text string) int {
	n := in.Count(text)
	return max(n, int(in.Ratio*float64(n)))
}

// work runs f as Work does.
func (in Input) work(ctx context.Context, f func() error) (err error) {
	if in.Work == nil {
		return f()
	}
	if failed := in.Work(ctx, func() { err = f() }); failed != nil {
		return failed
	}
	return err
}

// Endpoint is a model server, and how it is called.
type Endpoint struct {
	BaseURL string // it may have a query, which every call then has
	APIKey  string
	Way     Way
}

// The protocols that a summariser is called in, by the names of their dialects.
const (
	APIChat      = "chat"
	APIMessages  = "messages"
	APIResponses = "responses"
)

// Way is how calls of a client reach its upstream, which our own calls to the same upstream go as well.
type Way struct {
	API       string // one of those above; empty: APIChat
	Path      string // below the base URL, before the API's own path: of an Azure deployment
	Query     string // e.g. api-version
	KeyHeader string // that the key is in; empty: Authorization, or Azure's where the server is
	Headers   string // of organisations and gateways: lines of a name, a colon and a value
	Route     string // likewise, that lead to the cache which has the client's prompts: for calls behind them
}

// Need is why a condensation is due.
type Need struct {
	Reason session.Reason // empty: nothing is
	Hard   bool           // upstream has refused the request as it is, or would: only then is anything forgotten without a summary
	AtOnce bool           // the request waits for no model: excerpts stand in for its summary
	Ahead  bool           // what is asked is what will be due soon, to be prepared
	Try    bool           // the summariser is tried although it failed a short while ago, as it is for what is hard
	Spares bool           // no limit but the window's counts: an agent that makes its own summary is to see as much as can be
}

func (n Need) tried() bool { return n.Hard || n.Try }

// Decision is what a condenser wants done: another view, a condensation, or nothing.
type Decision struct {
	View *session.View // nil: the view as it was
	Job  Job           // nil: no condensation is due, or Kept says why none is made
	Kept Kept
}

// Kept is why nothing is condensed although a limit is exceeded; empty where none is.
type Kept string

// Why nothing is condensed.
const (
	KeptCooling Kept = "cooling" // the summariser failed a short while ago
	KeptUncut   Kept = "uncut"   // nothing that may go would make enough of a difference
	KeptLoop    Kept = "loop"    // an open tool loop needs its reasoning

	KeptHeldOut Kept = "held_out" // the session is left alone, to compare with
)

// Job is a condensation that is due. It is run at most once.
type Job interface {
	// Need is why.
	Need() Need
	// Asks reports whether it is one that a model makes, although at once it goes without.
	Asks() bool
	// Plan is what it would forget, without a summary, and about how many tokens that would have.
	Plan() (c session.Condensation, summary int)
	// Run makes it, calling a model if the strategy has one. An error means that nothing may be forgotten. On a hard need
	// the job itself climbs down to a condensation without a model before it gives up.
	Run(ctx context.Context) (Result, error)
}

// Result is a condensation made. Its id and time are not set yet.
type Result struct {
	Condensation session.Condensation
	Fallback     error // why the summariser's summary is not in it, nil if it is
	Failed       error // why the configured model did not write it, although another was; nil if none was configured or it did
	Later        Job   // of what has no summary since its request waits for no model: a summary of the same; nil if there is none
}

// Noop leaves every view as it is.
type Noop struct{}

func (Noop) Name() string { return "noop" }

func (Noop) Condense(Input) Decision { return Decision{} }

// HeldOut is a condenser for the sessions that others are compared with: it does only what the window forces, or what was asked for from
// outside.
type HeldOut struct{ Condenser }

func (h HeldOut) Condense(in Input) Decision {
	d := h.Condenser.Condense(in)
	switch {
	case in.Need.Reason != "", d.Job != nil && d.Job.Need().Hard:
		return d
	case d.Job != nil:
		return Decision{Kept: KeptHeldOut}
	}
	return Decision{Kept: d.Kept}
}
