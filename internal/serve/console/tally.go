package console

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxSessions bounds the sessions that a tally tells apart.
const maxSessions = 100_000

// Tally sums up requests. It computes nothing of its own: its figures are those of the records. The zero value is empty.
type Tally struct {
	Requests      int
	Steps         int // requests of conversations that upstream has answered
	Failed        int // requests that were not answered as their client wanted
	Condensations int
	Charged       float64 // by upstream, in USD, where price and usage are known
	Saved         float64 // on prompts of those requests; may be negative
	Calls         float64 // for the proxy's own calls
	UnknownCalls  int     // own calls without a known price
	Spare         float64 // what condensing would have saved, where it is only observed

	// Prompt tokens of requests whose price or usage is not known, as clients sent them and as they were forwarded.
	UnknownBefore, UnknownAfter int

	sessions map[session.SessionID]struct{}
}

// Add adds a request.
func (t *Tally) Add(r *proxy.Record) {
	t.Requests++
	if r.Code != "" && r.Code != proxy.CodeClientGone {
		t.Failed++
	}
	if r.Turn == nil || !isStep(r) {
		return
	}
	t.Steps++
	t.Condensations += len(made(r.Turn))
	t.Spare += r.Turn.Spare.USD()
	if known(r.Turn) {
		t.Charged += r.Turn.Charged
		t.Saved += r.Turn.Saved.USD()
	} else {
		t.UnknownBefore += r.Turn.Before.Tokens
		t.UnknownAfter += r.Turn.After.Tokens
	}
	if t.sessions == nil {
		t.sessions = map[session.SessionID]struct{}{}
	}
	if len(t.sessions) < maxSessions {
		t.sessions[r.Turn.Session] = struct{}{}
	}
}

// AddCall adds a call of the proxy's own.
func (t *Tally) AddCall(c limit.Call) {
	switch {
	case !c.Charged():
	case c.Known:
		t.Calls += max(c.USD, 0)
	default:
		t.UnknownCalls++
	}
}

// Net returns what was saved, less the proxy's own calls.
func (t *Tally) Net() float64 { return t.Saved - t.Calls }

// Sessions returns how many sessions the requests belong to, at most maxSessions.
func (t *Tally) Sessions() int { return len(t.sessions) }

// isStep reports whether upstream answered a step of a conversation. Counting the tokens of one is none.
func isStep(r *proxy.Record) bool {
	return r.Answered() && r.Turn.After != (session.Size{}) && !r.Counts()
}

// known reports whether the price of a request is known, and what upstream used for it.
func known(t *proxy.TurnRecord) bool { return t.Charged > 0 }

// made returns the condensations of a request that hide something.
func made(t *proxy.TurnRecord) (all []session.Condensation) {
	for _, c := range t.Condensed {
		if c.Answers() {
			all = append(all, c)
		}
	}
	return all
}

// Sentences returns the tally in words, a sentence each.
func (t *Tally) Sentences() (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	if t.Requests == 0 {
		return []string{"No requests."}
	}
	say("%s, %s, %s.", plural(t.Sessions(), "session"), plural(t.Steps, "step"), plural(t.Condensations, "condensation"))
	without, net := t.Charged+t.Saved, t.Net()
	switch {
	case t.Charged == 0 && net == 0:
	case net < 0:
		say("Cost %s more than without Dewpoint: %s instead of %s.", dollars(-net), dollars(t.Charged+t.Calls), dollars(without))
	case net == 0:
		say("Spent %s, with nothing saved.", dollars(t.Charged))
	default:
		say("Saved %s of %s (%s).", dollars(net), dollars(without), percent(net, without))
	}
	if t.Calls > 0 {
		say("Calls of Dewpoint's own cost %s, which is counted.", dollars(t.Calls))
	}
	if t.UnknownCalls > 0 {
		say("%s of Dewpoint's own went to models without a known price, and are not counted: set models.NAME.price.", plural(t.UnknownCalls, "call"))
	}
	if t.UnknownBefore > 0 {
		say("%s", tokensOnly(t.UnknownBefore, t.UnknownAfter))
	}
	if t.Spare != 0 {
		say("Condensing would have saved about %s; it was only observed.", dollars(t.Spare))
	}
	if t.Failed > 0 {
		say("%s failed.", plural(t.Failed, "request"))
	}
	return all
}

// tokensOnly says what was saved where no price is known.
func tokensOnly(before, after int) string {
	const where = "Where price or usage is not known"
	switch {
	case after > before:
		return fmt.Sprintf("%s: %s prompt tokens instead of %s, which is more.", where, count(after), count(before))
	case after == before:
		return fmt.Sprintf("%s: %s prompt tokens, as clients sent them.", where, count(before))
	}
	return fmt.Sprintf("%s: %s prompt tokens instead of %s, %s fewer.", where, count(after), count(before),
		percent(float64(before-after), float64(before)))
}
