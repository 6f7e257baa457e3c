// Package account says what a request was and what it cost: a record of each step, which takes few bytes, and totals, which add up exactly.
package account

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Step is the record of one request of a session. Its tokens are those that upstream charges, as in proxy.TurnRecord.
type Step struct {
	Number  uint64            // in its session's journal, ascending; not packed
	Session session.SessionID // not packed
	Thread  session.ThreadID
	Request string // X-Dewpoint-Request-Id
	Begun   time.Time
	Answer  int // the request is for the model's answer of this number in its history; 0: not known

	Tenant, Protocol string
	Model            string // as the client wrote it
	Client

	Status int    // of the client's answer
	Code   string // what went wrong; empty: nothing

	Usage
	Before, After session.Size // as the client sent it, and as it was forwarded; After is zero if it was not
	Parts         Parts        // of After

	Due   session.Reason // why condensing was due; empty: it was not
	Did   string         // what condensing did, as proxy.Condensed.Did; empty: nothing was involved
	Whole string         // why the history went whole although it exceeded a limit; empty: it did not
	Made  int            // condensations that were made for the request
	Miss  Miss           // why upstream did not read from its cache what it could have; empty: it did, or that is not known
	Split session.Cause  // why the request began a new thread although part of its history was known; empty: it did not

	SplitAt int // position of the message at which it left what was known, not counting system messages; 0: none

	Charged, Saved int64 // billionths of a dollar: what upstream charged, and what condensing saved of it; 0 without a known price
	Times          Times
}

// Usage is what a request used.
type Usage struct {
	session.Usage
	Reported bool // by upstream, in full. Otherwise it is reckoned
}

// Parts are the tokens of a forwarded request by where they come from.
type Parts struct {
	System int // the system prompt and notes
	Tools  int // their definitions, and what every request costs
	Head   int // messages before the first record
	Record int // summaries and excerpts
	Kept   int // messages after it that earlier requests had, or all such messages if there is no record
	New    int // messages that no earlier request had
}

// Sum returns all tokens.
func (p Parts) Sum() int { return p.System + p.Tools + p.Head + p.Record + p.Kept + p.New }

// Times are the parts of a request's time, in the order in which they pass. Of a request sent upstream several times, Upstream and Answer are
// those of the last time.
type Times struct {
	Read     time.Duration // from the header to the end of the body
	Resolve  time.Duration // until the conversation was recognised
	Overhead time.Duration // added by the proxy from the end of the body to the first call upstream, without Waited; includes Resolve
	Waited   time.Duration // for condensations
	Upstream time.Duration // from the call to the first byte of the answer
	Answer   time.Duration // from there to the end
	Held     time.Duration // the part of Answer for which its end was held back for the log
	Whole    time.Duration
}

// Client is the program that sent a request, as its User-Agent header says.
type Client struct {
	Agent   string // such as claude-cli; empty: not known
	Version string
}
