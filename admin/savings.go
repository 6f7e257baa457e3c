package admin

import (
	"context"
	"net/http"
	"slices"

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
	Calls         int      `json:"calls"`    // to summarisers, failed ones included
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
	s, err := a.savingsOf(r.Context(), t)
	return threadSavingsBody{Session: t.Session, Thread: t.ID, savings: s}, err
}

func (a *api) sessionSavings(r *http.Request, q *query) (any, error) {
	ses, err := a.sessionAt(r, q)
	if err != nil {
		return nil, err
	}
	threads, err := a.threadsOf(r, ses)
	if err != nil {
		return nil, err
	}
	out := sessionSavingsBody{Session: ses.ID, savings: newSavings(), Threads: []threadSavingsBody{}}
	for _, t := range threads {
		s, err := a.savingsOf(r.Context(), t)
		if err != nil {
			return nil, err
		}
		out.add(s)
		out.Threads = append(out.Threads, threadSavingsBody{Session: ses.ID, Thread: t.ID, savings: s})
	}
	return out, nil
}

func newSavings() savings { return savings{USD: &money{}, Unpriced: []string{}} }

func (s *savings) add(more savings) {
	s.Condensations += more.Condensations
	s.TokensNotSent += more.TokensNotSent
	s.OwnCalls.Input += more.OwnCalls.Input
	s.OwnCalls.Cached += more.OwnCalls.Cached
	s.OwnCalls.Output += more.OwnCalls.Output
	s.Calls += more.Calls
	s.Seconds += more.Seconds
	for _, model := range more.Unpriced {
		s.addUnpriced(model)
	}
	if s.USD != nil && more.USD != nil {
		s.USD.NotSent += more.USD.NotSent
		s.USD.CacheRewrites += more.USD.CacheRewrites
		s.USD.OwnCalls += more.USD.OwnCalls
		s.USD.Net += more.USD.Net
	}
}

// addUnpriced records a model without a known price. The total in USD is then unknown as well.
func (s *savings) addUnpriced(model string) {
	s.USD = nil
	if !slices.Contains(s.Unpriced, model) {
		s.Unpriced = append(s.Unpriced, model)
	}
}

// savingsOf returns the savings of a thread, from the sums that its requests wrote.
func (a *api) savingsOf(ctx context.Context, t session.Thread) (savings, error) {
	out := newSavings()
	sum, err := a.o.Store.Saved(ctx, t.ID)
	if err != nil {
		return out, err //nolint:wrapcheck // it names its operation
	}
	took := sum.Took
	for _, c := range t.Condensations {
		if c.ID.Thread != t.ID || c.Added > 0 {
			continue
		}
		out.Condensations++
		if c.Calls == 0 { // the sum covers only condensations that called a model
			took += c.Took
		}
	}
	out.Seconds = took.Seconds()
	out.TokensNotSent, out.OwnCalls, out.Calls = sum.Tokens, usageOf(sum.Used), sum.Calls
	if sum.Unpriced != "" {
		out.addUnpriced(sum.Unpriced)
		return out, nil
	}
	out.USD = &money{
		NotSent:       float64(sum.NotSent) / nanoPerUSD,
		CacheRewrites: float64(sum.Rewritten) / nanoPerUSD,
		OwnCalls:      -float64(sum.Nano) / nanoPerUSD,
	}
	out.USD.Net = out.USD.NotSent + out.USD.CacheRewrites + out.USD.OwnCalls
	return out, nil
}
