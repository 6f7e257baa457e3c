package admin

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/holdout"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// money is in USD. Cache rewrites and own calls are costs, so they are negative.
type money struct {
	NotSent       float64 `json:"not_sent"`
	CacheRewrites float64 `json:"cache_rewrites"`
	OwnCalls      float64 `json:"own_calls"`
	Net           float64 `json:"net"`
}

// nanoPerUSD converts the store's unit of money to USD.
const nanoPerUSD = 1e9

// savings is what condensing saved, less what it cost. It may be negative.
type savings struct {
	Condensations int      `json:"condensations"`
	TokensNotSent int64    `json:"tokens_not_sent"` // over all answered requests, as charged by upstream
	OwnCalls      usage    `json:"own_calls"`
	Calls         int      `json:"calls"`    // to summarisers, including failed ones
	Seconds       float64  `json:"seconds"`  // spent on condensing, successful or not
	USD           *money   `json:"usd"`      // null if a price is not known
	Unpriced      []string `json:"unpriced"` // models without a known price
}

type threadSavingsBody struct {
	Session session.SessionID `json:"session"`
	Thread  session.ThreadID  `json:"thread"`
	savings
}

type sessionSavingsBody struct {
	Session session.SessionID `json:"session"`
	savings
	Threads []threadSavingsBody `json:"threads"`
}

func (a *api) threadSavings(r *http.Request, q *query) (any, error) {
	t, err := a.threadAt(r, q)
	if err != nil {
		return nil, err
	}
	s, err := a.sumsOf(r.Context(), t)
	return threadSavingsBody{Session: t.Session, Thread: t.ID, savings: s.savings()}, err
}

func (a *api) sessionSavings(r *http.Request, q *query) (any, error) {
	ses, threads, err := a.sessionAt(r, q)
	if err != nil {
		return nil, err
	}
	var total sums
	out := sessionSavingsBody{Session: ses.ID, Threads: []threadSavingsBody{}}
	for _, t := range threads {
		s, err := a.sumsOf(r.Context(), t)
		if err != nil {
			return nil, err
		}
		total.add(s)
		out.Threads = append(out.Threads, threadSavingsBody{Session: ses.ID, Thread: t.ID, savings: s.savings()})
	}
	out.savings = total.savings()
	return out, nil
}

// sums are the stored savings of one or more threads.
type sums struct {
	session.Savings
	condensations int
	unpriced      []string // models without a known price
}

// sumsOf reads the sums that a thread's requests wrote.
func (a *api) sumsOf(ctx context.Context, t session.Thread) (sums, error) {
	stored, err := a.o.Store.Saved(ctx, t.ID)
	if err != nil {
		return sums{}, err // it names its operation
	}
	s := sums{Savings: stored}
	if stored.Unpriced != "" {
		s.unpriced = []string{stored.Unpriced}
	}
	for _, c := range t.Condensations {
		if c.ID.Thread != t.ID || c.Added > 0 {
			continue
		}
		s.condensations++
		if c.Calls == 0 { // the stored sum covers only condensations that called a model
			s.Took += c.Took
		}
	}
	return s, nil
}

func (s *sums) add(more sums) {
	s.Savings.Add(more.Savings)
	s.condensations += more.condensations
	for _, model := range more.unpriced {
		if !slices.Contains(s.unpriced, model) {
			s.unpriced = append(s.unpriced, model)
		}
	}
}

// savings returns the sums as they are shown. USD is nil if the price of any model is not known.
func (s *sums) savings() savings {
	out := savings{
		Condensations: s.condensations, TokensNotSent: s.Tokens, OwnCalls: usageOf(s.Used), Calls: s.Calls,
		Seconds: s.Took.Seconds(), Unpriced: append([]string{}, s.unpriced...),
	}
	if len(s.unpriced) == 0 {
		out.USD = &money{
			NotSent:       float64(s.NotSent) / nanoPerUSD,
			CacheRewrites: float64(s.Rewritten) / nanoPerUSD,
			OwnCalls:      float64(-s.Nano) / nanoPerUSD,
			Net:           float64(s.NotSent+s.Rewritten-s.Nano) / nanoPerUSD,
		}
	}
	return out
}

// holdouts compares the cost of held-out and condensed sessions for each tenant that holds sessions out.
func (a *api) holdouts(r *http.Request, _ *query) (any, error) {
	list, err := a.holdoutsOf(r)
	return map[string][]holdout.Report{"holdouts": list}, err
}

// holdoutsOf returns the comparisons of the tenants that the request may see.
func (a *api) holdoutsOf(r *http.Request) ([]holdout.Report, error) {
	list := []holdout.Report{}
	for _, t := range a.tenantsOf(who(r)) {
		if t.Holdout == 0 {
			continue
		}
		h := session.Holdout{Share: t.Holdout, Variant: t.HoldoutVariant}
		experiment, err := a.o.Forwarder.Experiment(r.Context(), t.Name, h)
		if err != nil {
			return nil, fmt.Errorf("read holdout of tenant %s: %w", t.Name, err)
		}
		ended := t.Condensing.InForce == ModeMain
		list = append(list, holdout.Report{
			Tenant: t.Name, Share: t.Holdout, Condenser: t.HoldoutCondenser, Ended: ended, Comparison: holdout.Compare(&experiment, h),
		})
	}
	return list, nil
}
