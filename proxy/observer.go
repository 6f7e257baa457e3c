package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Observer receives the events of requests. Its methods are called concurrently.
type Observer interface {
	// Begun is called when a request's header has been read.
	Begun()
	// Condensed is called when a condensation has ended.
	Condensed(c Condensation)
	// Called is called after each model call of the proxy's own.
	Called(c OwnCall)
	// Ended is called when a request is over. The context is the one that Tracer.Request returned, if there is a tracer.
	Ended(ctx context.Context, r *Record)
}

// Faults receives failures, whether or not a request's answer shows them. Its methods are called concurrently.
type Faults interface {
	// Panicked is called after a panic was recovered.
	Panicked()
	// Lost is called when an operation on the store failed and its result was lost.
	Lost(op string)
	// BadSummary is called when a summary was not usable, or its prompt could not be made.
	BadSummary(tenant string, kind condense.Fault)
}

// Tracer makes the spans of a request while it runs, so that they are passed on in the calls that the request makes.
type Tracer interface {
	// Request begins a request's span as a child of the one that its header names. Observer.Ended ends it.
	Request(ctx context.Context, r *Record, header http.Header) context.Context
	// Condensing begins the span of a condensation. The function that it returns ends it, with the condensations made.
	Condensing(ctx context.Context, condenser string, need condense.Need) (context.Context, func(made []session.Condensation))
	// Sending begins the span of a call upstream and names it in the header that is sent. The function that it returns ends it, with
	// the result of the call.
	Sending(ctx context.Context, r *Record, header http.Header) func(r *Record)
}

// OtherModel stands for a model that is neither configured nor built in. Clients choose model names, which must not become labels.
const OtherModel = "other"

// Record describes a request at its end. Only Content, Asked.Model and Asked.Agent hold text of a client or a model, or names that a client made
// up: none of them may become a label. Asked.ID may be the client's; it is short and plain.
type Record struct {
	Tenant    string // empty: it belongs to none
	Condenser string // the tenant's
	Dialect   string // empty: passed through, or not known yet
	Model     string // a known name, or OtherModel; empty: none
	Asked     Asked
	Upstream  *url.URL // base
	Times     Times
	Call      Call        // the last one upstream
	Bill      *Bill       // nil: upstream charges nothing, or it is not known for what
	Turn      *TurnRecord // nil: the request was not recognised
	Unread    string      // why the body was not parsed although requests on its path are; empty: it was
	Condensed Condensed
	Status    int      // of the client's answer
	Code      string   // what went wrong; empty: nothing
	Content   *Content // nil: not to be logged

	Plug     string    // the wire by which a gateway asked for the history, which sends the request itself; empty: it went upstream from here
	Reported *Reported // what a gateway reports of an earlier request; nil: this is no report
}

// Counts reports whether the client only asks how many tokens a request has.
func (r *Record) Counts() bool { return strings.HasSuffix(r.Asked.Path, "_tokens") }

// Reported is what a gateway reports that an earlier request has used.
type Reported struct {
	Bill
	Arm string // of that request, as TurnRecord.Arm
}

// Answered reports whether the model answered the request, or whether a gateway took the history to send it.
func (r *Record) Answered() bool { return r.Plug != "" || r.Call.Status == http.StatusOK }

// IsStep reports whether upstream answered a step of a conversation. Counting the tokens of one is none.
func (r *Record) IsStep() bool {
	return r.Turn != nil && r.Answered() && r.Turn.After != (session.Size{}) && !r.Counts()
}

// Asked identifies a client's request.
type Asked struct {
	ID     string // of the request: the client's own if it gave one, otherwise random
	Trace  string // id of its trace; empty: not recorded
	Method string
	Path   string // at which the dialect is served, in its plain spelling; empty: none
	Model  string // as the client wrote it, at most maxModel bytes; empty: none was read
	Agent  string // the User-Agent header, at most maxAgent bytes
	Plan   bool   // the client's key is that of a subscription, which is not billed by tokens
}

// Condensed is what condensing did for a request.
type Condensed struct {
	Compaction Compaction // result of a compaction that the proxy makes; empty: there was none

	Did   string         // an engine.Outcome, "failed" with its cause, or "store_away"; empty: no condensing was involved
	Whole engine.Outcome // why a history above a limit of the condenser was forwarded whole; empty: there was no such history

	Hidden  int // calls of the proxy's own tools that were answered
	NotKept int // answers that were too long to be kept, so that calls in them could not be answered
}

// Compaction is the result of a compaction that the proxy makes because upstream does not.
type Compaction string

// The values of Compaction.
const (
	CompactionMade     Compaction = "made"     // the client has it
	CompactionExcerpts Compaction = "excerpts" // the model wrote no record: the client has one of excerpts
	CompactionFailed   Compaction = "failed"   // the client has none
	CompactionRefused  Compaction = "refused"  // the client sent an item that the proxy did not make
)

// Times are the times of one request. A zero time means that the request did not get that far.
type Times struct {
	Begun    time.Time // the header was read
	Read     time.Time // the body was read
	Resolved time.Time // the thread was looked up
	Ended    time.Time
	Overhead time.Duration // added by the proxy from Read to the first call upstream, condensing not included
	LogWait  time.Duration // how long the end of the answer was held back for the log; 0: it was not
}

// Call is a call upstream.
type Call struct {
	Sent  time.Time // zero: there was none
	First time.Time // the first byte of the answer's body was received; zero: none was

	Status int            // of the answer; 0: there was none
	Retry  time.Duration  // after which upstream wants to be asked again; 0: it did not say
	Code   string         // why there was no answer
	Usage  *session.Usage // nil: not reported

	Doubted bool // Usage is not used to correct counts: it is far too low for what was sent, or a sum over several calls
}

// Bill is what upstream charges for a request, with all calls upstream that it took.
type Bill struct {
	session.Usage
	Reported bool  // upstream reported the usage, in full; otherwise it is reckoned
	Priced   bool  // the model's price is known
	Pico     int64 // the cost, in trillionths of a dollar
}

// OwnCall is a model call that the proxy made itself, and the request that it was made for.
type OwnCall struct {
	limit.Call
	Model   string // a known name, or OtherModel
	Tenant  string
	Session session.SessionID
	Agent   string // as Asked.Agent
	Arm     string // as TurnRecord.Arm
}

// TurnRecord describes a request that was recognised. Its sizes are in the tokens that upstream charges: as it reported them for this
// request, otherwise our count, corrected by its earlier reports.
type TurnRecord struct {
	Session   session.SessionID
	Thread    session.ThreadID
	Source    session.Source
	Begins    bool             // the request begins a session
	Arm       string           // of the tenant's holdout, as engine.Turn.Arm; empty: there is none
	Step      int              // which of the model's answers in the history the request asks for, from 1; 0: not known
	Relation  session.Relation // to the history that was known
	Cause     session.Cause    // why it began a new thread although a part of it was known; empty: it did not
	LeftAt    int              // position of the message at which it left what was known, not counting system messages; 0: none
	NewBlocks int              // as engine.Turn.NewBlocks
	Before    session.Size     // as the client sent it
	Known     int              // tokens of Before that an earlier request had
	After     session.Size     // as it was forwarded; zero: it was not
	Origins   engine.Origins   // of the tokens of After
	Prompt    engine.Prompt
	Newest    session.CondensationID // of what was forwarded, zero: none
	Waits     []time.Duration        // one for each condensation
	Condensed []session.Condensation
	Relieved  int // how many times it was sent again, smaller, after an overflow
	Account

	engine.Supposed // what condensing would have done, if the request was not condensed
}

// Waited returns how long a request waited for condensations. t may be nil.
func (t *TurnRecord) Waited() (sum time.Duration) {
	if t == nil {
		return 0
	}
	for _, wait := range t.Waits {
		sum += wait
	}
	return sum
}

// Account is the cost and saving of an answered request, by the usage that upstream reported.
type Account struct {
	Charged float64 // by upstream, in USD, as Record.Bill; 0: not known
	Saved   Saving
	Spare   Saving // an estimate of what condensing would have saved, if the tenant only observes
	Priced  bool   // the model's price is known
}

// Saving is what condensing saved on a request's prompt. It may be negative. Its amounts are in USD, and 0 if the model's price is not known.
type Saving struct {
	Tokens    int
	NotSent   float64 // the price of Tokens
	Rewritten float64 // the price of writing the prompt cache again: negative
}

// USD returns the whole saving, in USD.
func (s Saving) USD() float64 { return s.NotSent + s.Rewritten }

// Content is the text of a request and its answer. Its bytes are valid only until Observer.Ended returns.
type Content struct {
	Request   []byte
	Forwarded [][]byte // nil: the same as Request
	Answer    dialect.Answer
}

// Outcome is how a condensation ended.
type Outcome string

// The outcomes of condensations.
const (
	OutcomeCondensed   Outcome = "condensed"
	OutcomeFallback    Outcome = "fallback"     // condensed without a summary
	OutcomeFailed      Outcome = "failed"       // nothing was hidden
	OutcomeObserved    Outcome = "observed"     // only reported
	OutcomePrepared    Outcome = "prepared"     // a summary was written before it was due, or after excerpts stood in for it
	OutcomeNotPrepared Outcome = "not_prepared" // writing such a summary failed
)

// Condensation describes a condensation that has ended.
type Condensation struct {
	Tenant    string
	Condenser string
	Reason    session.Reason
	Outcome   Outcome
	Redeems   int           // provisional condensations that its summary replaces
	Asked     session.Asked // how the summary was requested; empty: no model wrote one
	Grounding session.Grounding
}
