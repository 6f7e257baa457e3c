package admin

import (
	"context"
	"net/http"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// money is in USD. Cache rewrites and own calls are costs, and are negative.
type money struct {
	NotSent       float64 `json:"not_sent"`
	CacheRewrites float64 `json:"cache_rewrites"`
	OwnCalls      float64 `json:"own_calls"`
	Net           float64 `json:"net"`
}

// nano is what the store counts dollars in.
const nano = 1e9

// savings is what condensing saved, net. It may be negative.
type savings struct {
	Condensations int      `json:"condensations"`
	TokensNotSent int64    `json:"tokens_not_sent"` // over all answered requests, as upstream charges them
	OwnCalls      usage    `json:"own_calls"`
	Calls         int      `json:"calls"`    // of summarisers, those in vain included
	Seconds       float64  `json:"seconds"`  // that condensing took, in vain or not
	USD           *money   `json:"usd"`      // null where a price is not known
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
	s, err := a.saved(r.Context(), t)
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
		s, err := a.saved(r.Context(), t)
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
	for _, name := range more.Unpriced {
		s.unpriced(name)
	}
	if s.USD != nil && more.USD != nil {
		s.USD.NotSent += more.USD.NotSent
		s.USD.CacheRewrites += more.USD.CacheRewrites
		s.USD.OwnCalls += more.USD.OwnCalls
		s.USD.Net += more.USD.Net
	}
}

// unpriced gives up on money: what is not known of a part is not known of the whole.
func (s *savings) unpriced(name string) {
	s.USD = nil
	if !slices.Contains(s.Unpriced, name) {
		s.Unpriced = append(s.Unpriced, name)
	}
}

// saved is what a thread saved, and what its condensing cost: the sums that its requests left.
func (a *api) saved(ctx context.Context, t session.Thread) (savings, error) {
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
		if c.Calls == 0 { // the sum is of those that asked a model
			took += c.Took
		}
	}
	out.Seconds = took.Seconds()
	out.TokensNotSent, out.OwnCalls, out.Calls = sum.Tokens, usageOf(sum.Used), sum.Calls
	if sum.Unpriced != "" {
		out.unpriced(sum.Unpriced)
		return out, nil
	}
	out.USD = &money{NotSent: float64(sum.NotSent) / nano, CacheRewrites: float64(sum.Rewritten) / nano, OwnCalls: -float64(sum.Nano) / nano}
	out.USD.Net = out.USD.NotSent + out.USD.CacheRewrites + out.USD.OwnCalls
	return out, nil
}
