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
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// purse is what a request has taken from limits and budgets.
type purse struct {
	minute   int    // tokens from its tenant's minute
	id       string // of what is reserved of budgets; empty: nothing is
	unsure   bool   // the store did not say whether it is
	accounts []allowance
	prompt   int // tokens that were charged before the answer
	room     int // tokens that are held for it
}

// allowance is a budget that a request spends, in one unit.
type allowance struct {
	session.Account
	limit int64
	key   string      // of the configuration: budget or session_budget
	saves bool        // where little is left, histories are condensed harder
	price model.Price // zero: it is in tokens
}

// What dollars are counted in: of budgets, and of calls of summarisers.
const (
	micros = 1e6
	nano   = 1e9
)

// value is what a usage costs in the account's unit.
func (a *allowance) value(u session.Usage) int64 {
	if !a.price.Known() {
		return int64(u.Input) + int64(u.Output)
	}
	return int64(math.Round(a.price.Call(model.Usage(u)) * micros))
}

// charges are those of the accounts for an amount of each; nil: none.
func charges(accounts []allowance, amount func(*allowance) session.Charge) []session.Charge {
	out := make([]session.Charge, len(accounts))
	for i := range accounts {
		if amount != nil {
			out[i] = amount(&accounts[i])
		}
		out[i].Account, out[i].Limit = accounts[i].Account, accounts[i].limit
	}
	return out
}

// accounts are the budgets that a session of the tenant spends; empty: its session is not known.
func (s *Server) accounts(t *Tenant, id session.SessionID, m ModelInfo) (all []allowance) {
	add := func(key, name string, b limit.Budget) {
		a := allowance{Account: session.Account{Tenant: t.Name, Until: b.Until(s.o.Now())}, key: key, saves: b.Then == limit.Condense}
		if b.Tokens > 0 {
			a.Name, a.limit = name+"/tokens", int64(b.Tokens)
			all = append(all, a)
		}
		switch model := cmp.Or(m.Name, OtherModel); {
		case b.USD > 0 && m.Price.Known():
			a.Name, a.limit, a.price = name+"/usd", int64(math.Round(b.USD*micros)), m.Price
			all = append(all, a)
		case b.USD > 0 && s.first("unpriced", model):
			s.o.Log.Warn("a budget in dollars does not count this model: its price is not known; configure it under models, or set a budget in tokens",
				zap.String("model", model))
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
	saved := slices.DeleteFunc(r.spends(), func(a allowance) bool { return !a.saves })
	if r.turn == nil || len(saved) == 0 {
		return
	}
	asked := charges(saved, nil)
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

// pay takes the tokens of what is forwarded from the tenant's minute, charges the request's budgets for its prompt, and holds what its
// answer may cost, so that whatever is under way, no more than one request goes beyond a budget. Tokens are those of the count; what
// cannot be counted, because the store is away, is guessed by its size. Paths that are passed through cost nothing, nor do questions for
// a count.
func (r *request) pay() error {
	r.giveBack() // what was sent before, in vain
	perMinute, accounts := r.tenant.Limits.Tokens, r.spends()
	if r.asked.dialect == nil || r.asked.counts || perMinute == 0 && len(accounts) == 0 {
		return nil
	}
	p := purse{accounts: accounts, prompt: len(r.body.bytes) / 4, room: unknownOutput}
	if r.seen.record.Unread == unreadEncoding {
		p.prompt = len(r.body.bytes) // text is about four times as long as it is compressed
	}
	if r.turn != nil {
		r.orAsItCame(func() {
			p.prompt = r.turn.Adjust(r.turn.Sent().Tokens)
			p.room = min(cmp.Or(r.turn.MostOutput(), unknownOutput), mostCharged)
		})
	}
	p.prompt = max(p.prompt, 1)
	if perMinute > 0 {
		if wait, ok := r.tenant.tokens().Take(r.server.o.Now(), p.prompt, perMinute); !ok {
			return r.outOfTokens(wait)
		}
		p.minute = p.prompt
	}
	r.lease.purse = p
	return r.reserve()
}

// reserve has the request's budgets pay. Where the store does not answer, the request passes; what it may have held all the same is
// settled.
func (r *request) reserve() error {
	p := &r.lease.purse
	if len(p.accounts) == 0 {
		return nil
	}
	id, all := rand.Text(), charges(p.accounts, func(a *allowance) session.Charge {
		prompt := a.value(session.Usage{Input: p.prompt})
		return session.Charge{Amount: prompt, Room: a.value(session.Usage{Output: p.room}) + prompt/4} // our count may be too low
	})
	got, err := r.server.o.Engine.Reserve(r.ctx, id, all)
	switch {
	case err != nil:
		r.server.degraded.note("budget", err)
		p.unsure = true
	case got.Full:
		accounts := p.accounts
		r.giveBack()
		return r.spent(accounts, all, got.Balances)
	}
	p.id = id
	return nil
}

// unknownOutput is how long an answer may be, in tokens, where neither the client nor what is known of the model says.
const unknownOutput = 16_000

// spent is the answer to a request whose budget is spent.
func (r *request) spent(accounts []allowance, all []session.Charge, balances []session.Balance) apiError {
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
	e := apiError{Status: http.StatusTooManyRequests, Type: typeLimit, Code: a.key + "_spent", Retry: 1}
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

// settle gives, once, what corrects what the request has paid by what upstream's answer cost: in its tenant's minute, which replicas may
// share, and in its budgets. Both are nil where it has paid nothing.
func (r *request) settle(status int, answer dialect.Answer) (minute, budgets func()) {
	paid, tenant, server := r.lease.purse, r.tenant, r.server
	if paid.minute == 0 && paid.id == "" {
		return nil, nil
	}
	r.lease.purse = purse{}
	used, known := usedOf(status, answer, paid.prompt)
	minute = func() {
		if paid.minute > 0 && known {
			tenant.tokens().Correct(used.Input+used.Output-paid.minute, tenant.Limits.Tokens)
		}
	}
	return minute, func() {
		if paid.id != "" {
			server.settleBudgets(paid, used)
		}
	}
}

// settleLater settles budgets in the background.
func (r *request) settleLater(status int, answer dialect.Answer) {
	if minute, budgets := r.settle(status, answer); minute != nil {
		minute()
		r.server.inBackground(budgets)
	}
}

// giveBack settles what was sent in vain: upstream refused it, or never got it.
func (r *request) giveBack() { r.settleLater(http.StatusBadRequest, dialect.Answer{}) }

func (s *Server) settleBudgets(p purse, u session.Usage) {
	err := s.o.Engine.Settle(s.ctx, p.id, charges(p.accounts, func(a *allowance) session.Charge {
		return session.Charge{Amount: a.value(u) - a.value(session.Usage{Input: p.prompt})}
	}))
	if err != nil && !p.unsure { // else it was noted
		s.degraded.note("budget", err)
	}
}

// mostCharged bounds what an upstream may say that a request took, in tokens.
const mostCharged = 1 << 30

// usedOf is what a request with a prompt has used: what upstream says, or else what can be seen of its answer, which is not known
// for sure. What upstream refused took nothing.
func usedOf(status int, answer dialect.Answer, prompt int) (used session.Usage, known bool) {
	if u := answer.Usage; u != nil {
		return session.Usage{
			Input: min(max(u.Input, 0), mostCharged), Output: min(max(u.Output, 0), mostCharged), Cached: u.Cached,
			Written: u.Written, WrittenLong: u.WrittenLong,
		}, true
	}
	if status >= http.StatusBadRequest {
		return session.Usage{}, true
	}
	n := len(answer.Text)
	for _, c := range answer.Calls {
		n += len(c.Name) + len(c.Arguments)
	}
	return session.Usage{Input: prompt, Output: n / 4}, false
}

// spend charges budgets for a call of a summariser, full or not: it was made.
func (n noted) spend(id session.SessionID, c limit.Call) {
	used := session.Usage{Input: c.Input, Cached: c.Cached, Written: c.Written, Output: c.Output}
	if used == (session.Usage{}) {
		return
	}
	s, p := n.server, purse{id: rand.Text()}
	if p.accounts = s.accounts(n.tenant, id, s.live.Load().Models(c.Model)); len(p.accounts) == 0 {
		return
	}
	all := charges(p.accounts, nil)
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
