// Package condense decides when a history has become too long and makes it smaller. A Condenser is a strategy. Deciding is
// pure; only the Job that a condenser returns does I/O.
package condense

import (
	"context"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Condenser is a strategy. It must be safe for concurrent use.
type Condenser interface {
	// Name returns the type's canonical name.
	Name() string
	// Condense decides what to do about a view. It does no I/O.
	Condense(in Input) Decision
}

// Codec reads and writes single messages in the client's protocol.
type Codec interface {
	// Read decodes a message.
	Read(raw []byte) (session.Content, error)
	// Rewrite replaces the text content of a message. Everything else stays verbatim.
	Rewrite(raw []byte, text string) ([]byte, error)
}

// Input holds what a condenser bases its decision on.
type Input struct {
	View     *session.View
	Total    int                        // tokens of the whole request: messages, tools, priming; calibrated
	Measure  func([]session.Item) []int // tokens of each item, calibrated; rewritten items are counted as rewritten
	Count    func(text string) int      // tokens of any text, in the request's encoding
	Ratio    float64                    // of upstream's count to Count's where that is known to be higher, else 0
	Fixed    int                        // part of Total that is not messages
	Window   int                        // the model's context window, in tokens; 0 if unknown
	Reserved int                        // tokens reserved for the answer
	Need     Need                       // what the caller asks for; zero for nothing
	Model    string                     // the request's model
	Upstream Endpoint                   // destination of the client's request, for condensers without a model of their own
	Codec    Codec

	// Work runs a CPU-bound function as one of a bounded number. It fails if ctx ends before the function could start. If
	// nil, functions run at once.
	Work func(ctx context.Context, f func()) error

	Thread Thread

	// NeedsReasoning is set if upstream accepts an open tool loop only with its reasoning. Soft condensations then wait
	// for the end of the loop, unless CutsLoops is set: the reasoning of what stays is valid behind a record as well.
	NeedsReasoning bool
	CutsLoops      bool

	keeps []*Keep // see Keeping
}

// Thread describes the history, apart from its messages.
type Thread struct {
	Name         string        // identifies the thread in the summariser's health
	Idle         time.Duration // since its last request
	Sent         Prefix        // the client's request, for asking for a summary behind it; nil: not possible
	CacheFor     time.Duration // how long the client asks for an idle prefix to be cached; 0: it does not ask, or Idle is short
	Instructions string        // the client's own instructions for the record
	Asked        string        // what the user asks of the record that is made now
	Edited       int           // position of the user message that the client edits at each step, 0 if there is none

	Recall bool // the model can recall hidden messages by position, so summaries and notes name positions
}

// promptTokens counts a text that is sent to a model. It is on the safe side if upstream counts more than Count.
func (in *Input) promptTokens(text string) int {
	n := in.Count(text)
	return max(n, int(in.Ratio*float64(n)))
}

// inPool runs f by Work and returns its result.
func inPool[T any](ctx context.Context, in *Input, f func() (T, error)) (v T, err error) {
	if in.Work == nil {
		return f()
	}
	if failed := in.Work(ctx, func() { v, err = f() }); failed != nil {
		return v, failed
	}
	return v, err
}

// Endpoint is a model server and how to call it.
type Endpoint struct {
	BaseURL string // may include a query, which is added to every call
	APIKey  string
	Way     Way
}

// Way describes how a client's calls reach its upstream. Our own calls to the same upstream use it, too.
type Way struct {
	API       string // the protocol, by the name of its dialect; empty: Chat Completions
	Path      string // between the base URL and the API's own path, e.g. that of an Azure deployment
	Query     string // e.g. api-version
	KeyHeader string // header of the key; empty: Authorization, or the one that Azure uses
	Headers   string // headers of organisations and gateways, as lines of "name:value"
	Route     string // more such lines, which route to the cache of the client's prompts: for calls behind them
	Limit     string // the parameter by which the client limits answers of its model in Chat Completions; empty: unknown
}

// Need says why a condensation is due, and how urgently.
type Need struct {
	Reason     session.Reason // empty: nothing is due
	Hard       bool           // upstream refused the request as it is, or would: only then may messages be hidden without a summary
	AtOnce     bool           // the request does not wait for a model: excerpts replace its summary
	Ahead      bool           // prepare the condensation that will be due soon
	Try        bool           // call the summariser even if it failed recently, as for a hard need
	WindowOnly bool           // only the limit of the window counts: an agent that makes its own summary should see as much as possible
}

// mayTry reports whether the summariser may be called even if it failed recently.
func (n Need) mayTry() bool { return n.Hard || n.Try }

// Decision is the result of a condenser: another view, a condensation, or neither.
type Decision struct {
	View     *session.View // nil: the view is unchanged
	Job      Job           // nil: no condensation is due, or Obstacle says what prevents it
	Obstacle Obstacle
	Due      session.Reason // why a condensation is due, even if there is an obstacle; of rolling condensers only
}

// Obstacle is what prevents a condensation that is due. It is empty if nothing is due.
type Obstacle string

// Reasons to condense nothing.
const (
	ObstacleCooling Obstacle = "cooling"  // the summariser failed recently
	ObstacleUncut   Obstacle = "uncut"    // no permitted cut makes enough progress
	ObstacleLoop    Obstacle = "loop"     // an open tool loop needs its reasoning
	ObstacleHeldOut Obstacle = "held_out" // the session is not condensed, for comparison
)

// Job is a condensation that is due. Run must be called at most once.
type Job interface {
	// Need returns why the condensation is due.
	Need() Need
	// Asks reports whether a model makes the condensation, even if the request does not wait and gets excerpts instead.
	Asks() bool
	// Plan returns the condensation without its summary, and an estimate of the tokens of the summary.
	Plan() (c session.Condensation, summary int)
	// Run makes the condensation, and calls a model if the strategy has one. On an error nothing may be hidden. For a hard
	// need the job falls back to a condensation without a model before it fails.
	Run(ctx context.Context) (Result, error)
}

// Result is a finished condensation. Its id and time are not set yet.
type Result struct {
	Condensation session.Condensation
	Fallback     error // why the summary is not the summariser's; nil if it is
	Failed       error // why the configured model was replaced by another; nil if it was not, or none is configured
	Later        Job   // makes the summary that is missing because the request does not wait for a model; nil if there is none
}

// Noop returns every view unchanged.
type Noop struct{}

func (Noop) Name() string { return "noop" }

func (Noop) Condense(Input) Decision { return Decision{} }

// HeldOut condenses only if the window requires it or the caller asks: for sessions that serve as a comparison.
type HeldOut struct{ Condenser }

func (h HeldOut) Condense(in Input) Decision {
	d := h.Condenser.Condense(in)
	switch {
	case in.Need.Reason != "", d.Job != nil && d.Job.Need().Hard:
		return d
	case d.Job != nil:
		return Decision{Obstacle: ObstacleHeldOut}
	}
	return Decision{Obstacle: d.Obstacle}
}
