package proxy

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// payment is what a request has taken from limits and budgets.
type payment struct {
	minute   int    // tokens from its tenant's minute
	id       string // of its reservation in the store; empty: nothing is reserved
	unsure   bool   // the store did not answer whether the reservation was made
	accounts []allowance
	prompt   int // tokens that were charged before the answer
	room     int // tokens that are reserved for the answer
}

// allowance is a budget that a request spends, in one unit: tokens, or millionths of a dollar.
type allowance struct {
	session.Account
	limit int64
	key   string      // in the configuration: budget or session_budget
	saves bool        // histories are condensed harder when little is left
	price model.Price // zero: the unit is tokens
}

// Units of money: budgets count in micros of a dollar, calls of summarisers in nanos.
const (
	microsPerUSD = engine.MicrosPerUSD
	nanosPerUSD  = 1e9
)

// cost returns what a usage costs in the account's unit.
func (a *allowance) cost(u session.Usage) int64 {
	if !a.price.Known() {
		return int64(u.Input) + int64(u.Output)
	}
	return int64(math.Round(a.price.Call(model.Usage(u)) * microsPerUSD))
}

// charges returns a charge for each account. amount says how much; nil charges nothing.
func charges(accounts []allowance, amount func(*allowance) session.Charge) []session.Charge {
	out := make([]session.Charge, len(accounts))
	for i := range accounts {
		if amount != nil {
			out[i] = amount(&accounts[i])
		}
		out[i].Account = accounts[i].Account
		out[i].Limit = accounts[i].limit
	}
	return out
}

// accounts returns the budgets that a session of the tenant spends. An empty id is a session that is not known.
func (s *Server) accounts(t *Tenant, id session.SessionID, m ModelInfo) (all []allowance) {
	add := func(key string, b engine.Budget) {
		a, now := allowance{key: key, saves: b.Then == limit.Condense}, s.o.Now()
		if b.Tokens > 0 {
			a.Account, a.limit = b.Account(engine.UnitTokens, now), int64(b.Tokens)
			all = append(all, a)
		}
		if b.USD <= 0 {
			return
		}
		if m.Price.Known() {
			a.Account, a.limit, a.price = b.Account(engine.UnitUSD, now), int64(math.Round(b.USD*microsPerUSD)), m.Price
			all = append(all, a)
			return
		}
		model := cmp.Or(m.Name, OtherModel)
		if s.first("unpriced", model) {
			s.o.Log.Warn("a budget in dollars does not count this model: its price is not known; configure it under models, or set a budget in tokens",
				zap.String("model", model))
		}
	}
	if b := t.Limits.Budget; b.Set() {
		add("budget", engine.Budget{Budget: b, Tenant: t.Name})
	}
	if b := t.Limits.SessionBudget; b.Set() && id != "" {
		add("session_budget", engine.Budget{Budget: b, Tenant: t.Name, Session: id})
	}
	return all
}

// budgets returns the budgets that the request spends. A request that is passed through or only counts tokens spends none.
func (r *request) budgets() []allowance {
	if r.params.dialect == nil || r.params.counts {
		return nil
	}
	return r.server.accounts(r.tenant, r.form.Place().Thread.Session, r.parsed.model)
}

// When less than 1/lowBudget of a budget is left, a request may use 1/requestShare of the rest, but at least minRequest tokens: with fewer
// the model would lose track of its task.
const (
	lowBudget    = 5
	requestShare = 10
	minRequest   = 8000
)

// limitToBudgets has the history condensed harder if little is left of a budget that is configured to save.
func (r *request) limitToBudgets() {
	saving := slices.DeleteFunc(r.budgets(), func(a allowance) bool { return !a.saves })
	if !r.form.Turn().Recognised() || len(saving) == 0 {
		return
	}
	queries := charges(saving, nil)
	got, err := r.server.o.Engine.Reserve(r.ctx, "", queries)
	if err != nil {
		return // reserve meets the same error and logs it
	}
	for i, b := range got.Balances {
		left := queries[i].Limit - b.Spent - b.Held
		if left <= 0 || left > queries[i].Limit/lowBudget {
			continue
		}
		tokens := float64(left) / requestShare
		if price := saving[i].price; price.Known() {
			tokens /= price.Input
		}
		r.adopt(r.form.LimitTo(max(int(tokens), minRequest)))
	}
}

// pay takes the prompt's tokens from the tenant's minute, charges the request's budgets for the prompt, and reserves what the answer may
// cost. So however many requests are under way, at most one of them exceeds a budget. The prompt is what the turn counted; if nothing was
// counted, because the store is unavailable, it is estimated from the body's size. Requests that are passed through, and those that only
// count tokens, are free.
func (r *request) pay() error {
	r.refund() // for an earlier call that got no answer
	perMinute, accounts := r.tenant.Limits.Tokens, r.budgets()
	if r.params.dialect == nil || r.params.counts || perMinute == 0 && len(accounts) == 0 {
		return nil
	}
	p := payment{accounts: accounts, prompt: len(r.body.bytes) / 4, room: unknownOutput}
	if r.recorder.record.Unread == unreadEncoding {
		p.prompt = len(r.body.bytes) // compressed text has about a token per byte
	}
	if r.form.Turn().Recognised() {
		r.orPassThrough(func() {
			p.prompt = r.form.Adjust(r.form.Sent().Tokens)
			p.room = min(min(cmp.Or(r.form.MaxOutput(), unknownOutput), maxCharged)*r.form.Turn().Choices(), maxCharged)
		})
	}
	p.prompt = max(p.prompt, 1)
	if perMinute > 0 {
		if wait, ok := r.tenant.tokens().Take(r.server.o.Now(), p.prompt, perMinute); !ok {
			return r.outOfTokens(wait)
		}
		p.minute = p.prompt
	}
	r.lease.payment = p
	return r.reserve()
}

// reserve charges the request's budgets. If the store does not answer, the request passes; the reservation may have been made all the same,
// so it is settled later.
func (r *request) reserve() error {
	p := &r.lease.payment
	if len(p.accounts) == 0 {
		return nil
	}
	id := rand.Text()
	all := charges(p.accounts, func(a *allowance) session.Charge {
		prompt := a.cost(session.Usage{Input: p.prompt})
		return session.Charge{Amount: prompt, Room: a.cost(session.Usage{Output: p.room}) + prompt/4} // our count may be too low
	})
	got, err := r.server.o.Engine.Reserve(r.ctx, id, all)
	if err != nil {
		r.server.degraded.writeFailed("budget", err)
		p.unsure = true
	} else if got.Full {
		accounts := p.accounts
		r.refund()
		return r.budgetSpent(accounts, all, got.Balances)
	}
	p.id = id
	return nil
}

// unknownOutput is the assumed length of an answer, in tokens, if neither the request nor the model's entry bounds it.
const unknownOutput = 16_000

// budgetSpent returns the answer to a request one of whose budgets is full.
func (r *request) budgetSpent(accounts []allowance, all []session.Charge, balances []session.Balance) apiError {
	i := 0
	for !all[i].Full(balances[i]) {
		i++
	}
	a, b := &accounts[i], balances[i]
	unit, perUnit := "tokens", 1.0
	if a.price.Known() {
		unit, perUnit = "USD", microsPerUSD
	}
	format := func(n int64) string { return strconv.FormatFloat(float64(n)/perUnit, 'f', -1, 64) }
	e := apiError{Status: http.StatusTooManyRequests, Type: typeLimit, Code: a.key + "_spent", Retry: 1}
	if b.Spent < all[i].Limit {
		e.Message = fmt.Sprintf("The budget limits.%s of %s %s has %s left, which requests under way may use up. Try again when they have ended.",
			a.key, format(all[i].Limit), unit, format(all[i].Limit-b.Spent))
		return e
	}
	e.Retry = int(a.Until.Sub(r.server.o.Now())/time.Second) + 1
	e.Message = fmt.Sprintf("The budget limits.%s is spent: %s of %s %s. The next period begins at %s.",
		a.key, format(b.Spent), format(all[i].Limit), unit, a.Until.Format(time.RFC3339))
	return e
}

// settle ends the request's payment. It returns a function that replaces what was paid by what upstream's answer cost, in the tenant's minute
// and, by run, in the budgets. Both may call the store.
func (r *request) settle(status int, answer dialect.Answer) (correct func(run func(*Server, func()))) {
	paid, tenant, server := r.lease.payment, r.tenant, r.server
	if paid.minute == 0 && paid.id == "" {
		return func(func(*Server, func())) {}
	}
	r.lease.payment = payment{}
	used, known := usedBy(status, answer, paid.prompt)
	return func(run func(*Server, func())) {
		if paid.minute > 0 && known {
			tenant.tokens().Correct(used.Input+used.Output-paid.minute, tenant.Limits.Tokens)
		}
		if paid.id != "" {
			run(server, func() { server.settleBudgets(paid, used) })
		}
	}
}

// atOnce is inBackground, but waits.
func (s *Server) atOnce(work func()) { work() }

// refund returns what was paid for a call that upstream refused or never got.
func (r *request) refund() {
	r.settle(http.StatusBadRequest, dialect.Answer{})((*Server).inBackground)
}

func (s *Server) settleBudgets(p payment, used session.Usage) {
	err := s.o.Engine.Settle(s.ctx, p.id, charges(p.accounts, func(a *allowance) session.Charge {
		return session.Charge{Amount: a.cost(used) - a.cost(session.Usage{Input: p.prompt})}
	}))
	if err != nil && !p.unsure { // otherwise reserve has logged it
		s.degraded.writeFailed("budget", err)
	}
}

// maxCharged bounds how many tokens an upstream can report for a request.
const maxCharged = 1 << 30

// usedBy returns what a request has used: upstream's report, or an estimate from the answer, which is not known to be right. What upstream
// refused used nothing.
func usedBy(status int, answer dialect.Answer, prompt int) (used session.Usage, known bool) {
	if u := answer.Usage; u != nil {
		used = *u
		used.Input = min(max(u.Input, 0), maxCharged)
		used.Output = min(max(u.Output, 0), maxCharged)
		return used, true
	}
	if status >= http.StatusBadRequest {
		return session.Usage{}, true
	}
	return session.Usage{Input: prompt, Output: answer.Wrote / 4}, false
}

// budgets returns a charge of nothing to each budget that a session's requests to a model spend.
func (p reporter) budgets(id session.SessionID, model string) []session.Charge {
	return charges(p.server.accounts(p.tenant, id, p.server.live.Load().Models(model)), nil)
}

// chargeSummary charges the tenant's budgets for a call of a summariser, even if they are full: the call was made.
func (p reporter) chargeSummary(id session.SessionID, c limit.Call) {
	s, used := p.server, session.Usage{Input: c.Input, Cached: c.Cached, Written: c.Written, WrittenLong: c.Long, Output: c.Output}
	accounts := s.accounts(p.tenant, id, s.live.Load().Models(c.Model))
	if used == (session.Usage{}) || len(accounts) == 0 {
		return
	}
	paid := payment{id: rand.Text(), accounts: accounts}
	all := charges(accounts, nil)
	for i := range all {
		all[i].Limit = math.MaxInt64
	}
	s.inBackground(func() {
		if _, err := s.o.Engine.Reserve(s.ctx, paid.id, all); err != nil {
			s.degraded.writeFailed("budget", err)
			return
		}
		s.settleBudgets(paid, used)
	})
}
