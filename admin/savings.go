package admin

import (
	"net/http"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// money is in USD. Cache rewrites and own calls are costs, and are negative.
type money struct {
	NotSent       float64 `json:"not_sent"`
	CacheRewrites float64 `json:"cache_rewrites"`
	OwnCalls      float64 `json:"own_calls"`
	Net           float64 `json:"net"`
}

// savings is what condensing saved, net, as far as the log tells. It may be negative.
type savings struct {
	Condensations int      `json:"condensations"`
	TokensNotSent int      `json:"tokens_not_sent"` // over all requests
	OwnCalls      usage    `json:"own_calls"`
	Calls         int      `json:"calls"`    // of summarisers, those of OwnCalls
	Seconds       float64  `json:"seconds"`  // that the condensations took
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
	s, err := a.saved(r, t)
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
		s, err := a.saved(r, t)
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

func (a *api) saved(r *http.Request, t session.Thread) (savings, error) {
	out := newSavings()
	if len(t.Condensations) == 0 {
		return out, nil
	}
	l, err := a.read(r.Context(), t)
	if err != nil {
		return out, err
	}
	var base session.CondensationID
	for _, c := range t.Condensations {
		applies := c.Base == base
		if applies {
			base = c.ID
		}
		out.add(l.savedBy(c, applies, a.o.Settings.Price))
	}
	return out, nil
}

// savedBy reckons what one condensation saved in this thread. Each request after it, and the one that it was made for,
// was smaller by what it took away; those tokens are valued as cached ones, the cheapest that they could have been. What
// follows the unchanged beginning had to be written to the provider's cache anew, once. A condensation that was inherited
// cost this thread nothing, and one that was overtaken by another replica's saved nothing.
func (l *log) savedBy(c session.Condensation, applies bool, price func(string) (model.Price, bool)) savings {
	out := newSavings()
	if c.Added > 0 { // it condenses nothing
		return out
	}
	made := c.ID.Thread == l.thread.ID
	requests := l.requestsAfter(c)
	if made {
		out.Condensations, out.OwnCalls, out.Calls, out.Seconds = 1, usageOf(c.Usage), c.Calls, c.Took.Seconds()
		requests++
	}
	rewrite := 0
	if applies {
		out.TokensNotSent = requests * (c.Before.Tokens - c.After.Tokens)
	}
	if applies && made && c.Answers() {
		rewrite = max(c.After.Tokens-l.tokensBefore(c), 0)
	}
	if out.TokensNotSent != 0 || rewrite != 0 {
		out.value(c.Request, price, func(p model.Price) {
			out.USD.NotSent, out.USD.CacheRewrites = p.Saved(model.Prompt{
				NotSent: float64(out.TokensNotSent), Rewritten: float64(rewrite), Caching: true,
			})
		})
	}
	if out.OwnCalls != (usage{}) {
		for _, cost := range c.Costs() {
			out.value(cost.Model, price, func(p model.Price) { out.USD.OwnCalls -= p.Call(model.Usage(cost.Usage)) })
		}
	}
	if out.USD != nil {
		out.USD.Net = out.USD.NotSent + out.USD.CacheRewrites + out.USD.OwnCalls
	}
	return out
}

func (s *savings) value(name string, price func(string) (model.Price, bool), with func(model.Price)) {
	p, known := price(name)
	if !known {
		s.unpriced(name)
	} else if s.USD != nil {
		with(p)
	}
}

// requestsAfter counts the requests that the thread logged after a condensation: all that one brought has one time.
// Requests that brought nothing new are not counted.
func (l *log) requestsAfter(c session.Condensation) int {
	n, last := 0, int64(0)
	for _, e := range l.own {
		if e.Pos == 0 || c.ID.Thread == l.thread.ID && e.Seq < c.ID.Seq {
			continue
		}
		if at := e.Time.UnixNano(); at != last {
			n, last = n+1, at
		}
	}
	return n
}

// tokensBefore is what stands before all that a condensation changed.
func (l *log) tokensBefore(c session.Condensation) int {
	first := c.Prefix + 1
	if c.Offset > 0 {
		first = c.Offset
	}
	for _, f := range c.Forgotten {
		first = min(first, f.From)
	}
	tokens := 0
	for p := 1; p < first && p <= len(l.chain); p++ {
		tokens += l.chain[p-1].Tokens
	}
	return tokens
}
