package proxy

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Observer is told what becomes of requests. It may be used concurrently.
type Observer interface {
	// Begun says that a request's header has come.
	Begun()
	// Condensed says how a condensation ended.
	Condensed(c Condensation)
	// Ended says that a request is over. The context is the one that Tracer.Request gave, if there is a tracer.
	Ended(ctx context.Context, r *Record)
}

// Faults is told of what went wrong, whether or not a request's answer shows it. It may be used concurrently.
type Faults interface {
	// Panicked says that a panic was caught.
	Panicked()
	// Lost says what was not read from the store, or not written to it, because the store was away.
	Lost(op string)
	// BadSummary says that a summary was no good, or that its prompt could not be made.
	BadSummary(tenant string, kind condense.Fault)
}

// Tracer makes a request's spans while it is on its way: what the request calls is told of them.
type Tracer interface {
	// Request begins a request's span, below the one that its header tells of. Observer.Ended ends it.
	Request(ctx context.Context, r *Record, header http.Header) context.Context
	// Condensing begins the span of a condensation. The function that it returns is told what was condensed, and ends it.
	Condensing(ctx context.Context, condenser string, need condense.Need) (context.Context, func(made []session.Condensation))
	// Sending begins the span of a call upstream, and names it in the header that is sent. The function that it returns is told
	// what came of the call, and ends it.
	Sending(ctx context.Context, r *Record, header http.Header) func(r *Record)
}

// OtherModel is what a model is called that is neither configured nor built in: a client picks the name.
const OtherModel = "other"

// Record is what is known of a request at its end. Only Content has in it what a client or a model said, or a name that a
// client made up; Asked.ID may be the client's, and is plain.
type Record struct {
	Tenant    string // empty: it belongs to none
	Condenser string // the tenant's
	Dialect   string // empty: passed through, or not known yet
	Model     string // known, or OtherModel; empty where there is none
	Asked     Asked
	Upstream  *url.URL // base
	Times     Times
	Call      Call        // the last one upstream
	Turn      *TurnRecord // nil: the request was not recognised
	Unread    string      // why it passed unread on a path that is read; empty: it did not
	Condensed Condensed
	Limit     string   // of its tenant, for which it was refused: concurrent, requests, tokens, body, share, budget or session_budget; empty: none
	Status    int      // of the client's answer
	Code      string   // what went wrong; empty: nothing
	Content   *Content // nil: not to be logged
}

// Asked is what a client asked for.
type Asked struct {
	ID     string // of the request: the client's own if it gave one, else made up
	Trace  string // id of its trace; empty where that is not recorded
	Method string
	Path   string // that the dialect is served at, in its plain spelling; empty where there is none
}

// Condensed is what condensing did for a request.
type Condensed struct {
	Compaction Compaction // what became of one of ours; empty: there was none

	Did   string         // an engine.Outcome, with the cause after failed, or store_away; empty: it had no part
	Whole engine.Outcome // why nothing was condensed although a limit of the condenser was exceeded; empty: none was, or it was condensed

	Hidden   int // calls of the proxy's own tools that were met
	Repeated int // times that the model has made a call with the same result, where that is too often
}

// Compaction is what became of a compaction that upstream does not make.
type Compaction string

// What becomes of them.
const (
	CompactionMade    Compaction = "made"    // the client has it
	CompactionFailed  Compaction = "failed"  // no record came
	CompactionRefused Compaction = "refused" // what the client sent back for one was not made here
)

// Times are those of one request. A time that is zero was not reached.
type Times struct {
	Begun    time.Time // its header had come
	Read     time.Time // and its body
	Resolved time.Time // its thread was looked up
	Ended    time.Time
	Overhead time.Duration // our own, condensing apart, from Read to the first call upstream
	Held     time.Duration // how long the end of the answer waited for the log; 0: it did not
}

// Call is a call upstream.
type Call struct {
	Sent  time.Time // zero: there was none
	First time.Time // the first byte of the answer's body came; zero: none has
	// Status is of the answer, 0: none came, and Code says why.
	Status int
	Code   string
	Usage  *session.Usage // nil: not reported

	Doubted bool // Usage is not believed: it is far too low for what was sent
}

// TurnRecord is what was done for a request that was recognised. Its sizes are in the tokens that upstream charges: as it reported them of
// this request, or as our count is corrected by what it reported of others.
type TurnRecord struct {
	Session   session.SessionID
	Thread    session.ThreadID
	Source    session.Source
	Begins    bool             // a session
	Relation  session.Relation // to what was known
	Cause     session.Cause    // why it began a thread where some of it was known; empty: it did not
	Before    session.Size     // as the client sent it
	Known     int              // tokens of it that had come before
	After     session.Size     // as it was forwarded; zero: it was not
	Waits     []time.Duration  // for each condensation
	Condensed []session.Condensation
	Relieved  int // overflows after which it was sent again
	Account

	engine.Supposed // what condensing would have done, where it left the request alone
}

// Account is what an answered request came to, by the usage that upstream reports.
type Account struct {
	Charged float64 // what upstream charges, in USD; 0 where that is not known
	Saved   Saving
	Spare   Saving // an estimate, where its tenant only observes: what would have been saved
}

// Saving is what condensing saved of a request's prompt. It may be negative. Money is 0 where the model's price is not known.
type Saving struct {
	Tokens    int
	NotSent   float64 // what those would have cost, in USD
	Rewritten float64 // likewise, what the prompt cache cost that had to be written again: negative
}

// USD is what was saved in all.
func (s Saving) USD() float64 { return s.NotSent + s.Rewritten }

// Content is what a request said, what was forwarded if that was not the same, and the answer. Its bytes are valid only while the
// Observer is told.
type Content struct {
	Request   []byte
	Forwarded [][]byte
	Answer    dialect.Answer
}

// Outcome is how a condensation ended.
type Outcome string

// The outcomes of condensations.
const (
	OutcomeCondensed   Outcome = "condensed"
	OutcomeFallback    Outcome = "fallback"     // without a summary
	OutcomeFailed      Outcome = "failed"       // nothing was forgotten
	OutcomeObserved    Outcome = "observed"     // only reported
	OutcomePrepared    Outcome = "prepared"     // a summary, before it is due or after excerpts stood in
	OutcomeNotPrepared Outcome = "not_prepared" // likewise, in vain
)

// Condensation is one that ended.
type Condensation struct {
	Tenant    string
	Condenser string
	Reason    session.Reason
	Outcome   Outcome
	Redeems   int           // provisional ones whose summary it brings
	Asked     session.Asked // how its summary was asked for; empty: no model wrote one
}
