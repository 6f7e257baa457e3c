package console

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/journal"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// maxSessions bounds the sessions that a tally tells apart.
const maxSessions = 100_000

// Tally sums up requests. Its figures are those of the journal, and so those in the store. The zero value is empty.
type Tally struct {
	all      account.Sums
	own      account.Sums // calls of the proxy's own
	sessions map[session.SessionID]struct{}
}

// Add adds a request.
func (t *Tally) Add(r *proxy.Record) {
	sums := journal.SumsOf(r)
	if r.Asked.Plan { // its tokens have no price
		sums.UnpricedSent, sums.UnpricedForwarded = sums.Sent, sums.Forwarded
		sums.Charged, sums.NotSent, sums.Rewritten, sums.Spared = 0, 0, 0, 0
	}
	t.all.Add(&sums)
	if !r.IsStep() {
		return
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
	sums := journal.SumsOfCall(&c)
	t.own.Add(&sums)
}

// Net returns what was saved, less the proxy's own calls, in USD.
func (t *Tally) Net() float64 { return (t.all.Saved() - t.own.Charged).USD() }

// Sessions returns how many sessions the requests belong to, at most maxSessions.
func (t *Tally) Sessions() int { return len(t.sessions) }

// known reports whether the cost of a request is known.
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
	if t.all.Requests == 0 {
		return []string{"No requests."}
	}
	say("%s, %s, %s.", plural(t.Sessions(), "session"), plural(int(t.all.Steps), "step"), plural(int(t.all.Condensations), "condensation"))
	charged, own, net := t.all.Charged.USD(), t.own.Charged.USD(), t.Net()
	without := charged + t.all.Saved().USD()
	switch {
	case charged == 0 && net == 0:
	case net < 0:
		say("Cost %s more than without Dewpoint: %s instead of %s.", dollars(-net), dollars(charged+own), dollars(without))
	case net == 0:
		say("Spent %s, with nothing saved.", dollars(charged))
	default:
		say("Saved %s of %s (%s).", dollars(net), dollars(without), percent(net, without))
	}
	if own > 0 {
		say("Calls of Dewpoint's own cost %s, which is counted.", dollars(own))
	}
	if t.own.Unpriced > 0 {
		say("%s of Dewpoint's own went to models without a known price, and are not counted: set models.NAME.price.", plural(int(t.own.Unpriced), "call"))
	}
	if n := t.all.Reckoned; n > 0 && charged > 0 {
		say("Upstream did not report what %s used, so %s by Dewpoint's count.", plural(int(n), "request"), isAre(n))
	}
	if t.all.UnpricedSent > 0 {
		say("%s", tokensOnly(int(t.all.UnpricedSent), int(t.all.UnpricedForwarded)))
	}
	if t.all.Spared != 0 {
		say("Condensing would have saved about %s; it was only observed.", dollars(t.all.Spared.USD()))
	}
	if t.all.Failed > 0 {
		say("%s failed.", plural(int(t.all.Failed), "request"))
	}
	return all
}

func isAre(n int64) string {
	if n == 1 {
		return "its cost is"
	}
	return "their cost is"
}

// tokensOnly says what was saved where no price is known.
func tokensOnly(before, after int) string {
	const where = "Where tokens have no known price"
	switch {
	case after > before:
		return fmt.Sprintf("%s: %s prompt tokens instead of %s, which is more.", where, count(after), count(before))
	case after == before:
		return fmt.Sprintf("%s: %s prompt tokens, as clients sent them.", where, count(before))
	}
	return fmt.Sprintf("%s: %s prompt tokens instead of %s, %s fewer.", where, count(after), count(before),
		percent(float64(before-after), float64(before)))
}
