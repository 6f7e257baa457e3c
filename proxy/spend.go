package proxy

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// purse is what a request has taken from budgets.
type purse struct {
	id       string // empty: nothing is reserved
	unsure   bool   // the store did not say whether it is
	accounts []allowance
	prompt   int // tokens that were charged before the answer
	room     int // tokens that are held for it
}

// allowance is a budget that a request spends, in one unit.
type allowance struct {
	session.Account
	key    string // of the configuration: budget or session_budget
	budget limit.Budget
	price  model.Price // zero: it is in tokens
}

// What dollars are counted in: of budgets, and of calls of summarisers.
const (
	micros = 1e6
	nano   = 1e9
)

func (a *allowance) limit() int64 {
	if a.price.Known() {
		return int64(math.Round(a.budget.USD * micros))
	}
	return int64(a.budget.Tokens)
}

// value is what a usage costs in the account's unit.
func (a *allowance) value(u session.Usage) int64 {
	if !a.price.Known() {
		return int64(u.Input) + int64(u.Output)
	}
	return int64(math.Round(a.price.Call(model.Usage(u)) * micros))
}

// charges are those of the accounts for an amount of each.
func charges(accounts []allowance, amount func(*allowance) session.Charge) []session.Charge {
	out := make([]session.Charge, len(accounts))
	for i := range accounts {
		out[i] = amount(&accounts[i])
		out[i].Account, out[i].Limit = accounts[i].Account, accounts[i].limit()
	}
	return out
}

// accounts are the budgets that a session of the tenant spends; empty: its session is not known.
func (s *Server) accounts(t *Tenant, id session.SessionID, m ModelInfo) (all []allowance) {
	add := func(key, name string, b limit.Budget) {
		until := b.Until(s.o.Now())
		if b.Tokens > 0 {
			all = append(all, allowance{Account: session.Account{Tenant: t.Name, Name: name + "/tokens", Until: until}, key: key, budget: b})
		}
		switch {
		case b.USD > 0 && m.Price.Known():
			all = append(all, allowance{session.Account{Tenant: t.Name, Name: name + "/usd", Until: until}, key, b, m.Price})
		case b.USD > 0:
			s.unpriced(m.Name)
		}
	}
	if b := t.Limits.Budget; b.Set() {
		add("budget", "tenant", b)
	}
	if b := t.Limits.SessionBudget; b.Set() && id != "" {
		add("session_budget", "session/"+string(id), b)
	}
	return all
}

// unpriced says in the log that a budget does not count a model, once for each.
func (s *Server) unpriced(model string) {
	model = cmp.Or(model, OtherModel)
	if s.once.first("unpriced " + model) {
		s.o.Log.Warn("a budget in dollars does not count this model: its price is not known; configure it under models, or set a budget in tokens",
			zap.String("model", model))
	}
}

// spends are the budgets that the request spends: none where it only asks for a count, or is passed through.
func (r *request) spends() []allowance {
	if r.asked.dialect == nil || r.asked.counts {
		return nil
	}
	var id session.SessionID
	if r.turn != nil {
		id = r.turn.Place().Thread.Session
	}
	return r.server.accounts(r.tenant, id, r.model)
}

// Where a budget is to be saved: once four fifths are spent, a request may have a tenth of what is left, but no less than would lose
// the thread of what is done.
const (
	littleLeft = 5
	shareLeft  = 10
	leastLeft  = 8000
)

// ration has the history condensed harder where little is left of a budget that says so.
func (r *request) ration() {
	var saved []allowance
	for _, a := range r.spends() {
		if a.budget.Then == limit.Condense {
			saved = append(saved, a)
		}
	}
	if r.turn == nil || len(saved) == 0 {
		return
	}
	asked := charges(saved, func(*allowance) session.Charge { return session.Charge{} })
	got, err := r.server.o.Engine.Reserve(r.ctx, "", asked)
	if err != nil {
		return // reserve will say so
	}
	for i, b := range got.Balances {
		left := asked[i].Limit - b.Spent - b.Held
		if left <= 0 || left > asked[i].Limit/littleLeft {
			continue
		}
		tokens := float64(left) / shareLeft
		if price := saved[i].price; price.Known() {
			tokens /= price.Input
		}
		r.turn.LimitTo(max(int(tokens), leastLeft))
	}
}

// reserve charges the request's budgets for its prompt and holds what its answer may cost, so that whatever is under way, no more than
// one request goes beyond a budget. Where the store does not answer, the request passes; what it may have held all the same is settled.
func (r *request) reserve() error {
	r.finish(session.Usage{}) // of what was sent before, in vain
	accounts := r.spends()
	if len(accounts) == 0 {
		return nil
	}
	p := purse{id: rand.Text(), accounts: accounts, prompt: max(len(r.body.bytes)/4, 1), room: unknownOutput}
	if r.turn != nil {
		r.orAsItCame(func() {
			p.prompt = max(r.turn.Adjust(r.turn.Sent().Tokens), 1)
			p.room = min(cmp.Or(r.turn.MostOutput(), unknownOutput), mostCharged)
		})
	}
	all := charges(p.accounts, func(a *allowance) session.Charge {
		prompt := a.value(session.Usage{Input: p.prompt})
		return session.Charge{Amount: prompt, Room: a.value(session.Usage{Output: p.room}) + prompt/4} // our count may be too low
	})
	got, err := r.server.o.Engine.Reserve(r.ctx, p.id, all)
	switch {
	case err != nil:
		r.server.degraded.note("budget", err)
		p.unsure = true
	case got.Full:
		return r.spent(p.accounts, all, got.Balances)
	}
	r.lease.purse = p
	return nil
}

// unknownOutput is how long an answer may be, in tokens, where neither the client nor what is known of the model says.
const unknownOutput = 16_000

// spent is the answer to a request whose budget is spent.
func (r *request) spent(accounts []allowance, all []session.Charge, balances []session.Balance) *apiError {
	i := 0
	for !all[i].Full(balances[i]) {
		i++
	}
	a, b := &accounts[i], balances[i]
	r.seen.record.Limit = a.key
	unit, div := "tokens", 1.0
	if a.price.Known() {
		unit, div = "USD", micros
	}
	write := func(n int64) string { return strconv.FormatFloat(float64(n)/div, 'f', -1, 64) }
	e := &apiError{Status: http.StatusTooManyRequests, Type: typeLimit, Code: a.key + "_spent", Retry: 1}
	if b.Spent < all[i].Limit {
		e.Message = fmt.Sprintf("The budget limits.%s of %s %s has %s left, which requests under way may need. Try again when they are over.",
			a.key, write(all[i].Limit), unit, write(all[i].Limit-b.Spent))
		return e
	}
	e.Retry = int(a.Until.Sub(r.server.o.Now())/time.Second) + 1
	e.Message = fmt.Sprintf("The budget limits.%s is spent: %s of %s %s. The next period begins at %s.",
		a.key, write(b.Spent), write(all[i].Limit), unit, a.Until.Format(time.RFC3339))
	return e
}

// settling gives what settles the request's budgets by what it used. It does so once.
func (r *request) settling(u session.Usage) func() {
	p := r.lease.purse
	r.lease.purse = purse{}
	return func() {
		if p.id != "" {
			r.server.settleBudgets(p, u)
		}
	}
}

// finish settles the request's budgets, unless that was done.
func (r *request) finish(u session.Usage) {
	if r.lease.purse.id != "" {
		r.server.inBackground(r.settling(u))
	}
}

func (s *Server) settleBudgets(p purse, u session.Usage) {
	err := s.o.Engine.Settle(s.ctx, p.id, charges(p.accounts, func(a *allowance) session.Charge {
		return session.Charge{Amount: a.value(u) - a.value(session.Usage{Input: p.prompt})}
	}))
	if err != nil && !p.unsure { // else it was noted
		s.degraded.note("budget", err)
	}
}

// used is what a request has used: what upstream says, or else what can be seen of its answer.
func (p *purse) used(status int, answer dialect.Answer) session.Usage {
	if u := answer.Usage; u != nil {
		return session.Usage{
			Input: min(max(u.Input, 0), mostCharged), Output: min(max(u.Output, 0), mostCharged), Cached: u.Cached,
			Written: u.Written, WrittenLong: u.WrittenLong,
		}
	}
	if status >= http.StatusBadRequest {
		return session.Usage{}
	}
	n := len(answer.Text)
	for _, c := range answer.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return session.Usage{Input: p.prompt, Output: n / 4}
}

// spend charges budgets for a call of a summariser, full or not: it was made.
func (n noted) spend(id session.SessionID, c limit.Call) {
	used := session.Usage{Input: c.Input, Cached: c.Cached, Written: c.Written, Output: c.Output}
	if used == (session.Usage{}) {
		return
	}
	s, p := n.server, purse{id: rand.Text()}
	if p.accounts = s.accounts(n.tenant, id, s.live.Load().models(c.Model)); len(p.accounts) == 0 {
		return
	}
	all := charges(p.accounts, func(*allowance) session.Charge { return session.Charge{} })
	for i := range all {
		all[i].Limit = math.MaxInt64
	}
	s.inBackground(func() {
		if _, err := s.o.Engine.Reserve(s.ctx, p.id, all); err != nil {
			s.degraded.note("budget", err)
			return
		}
		s.settleBudgets(p, used)
	})
}
