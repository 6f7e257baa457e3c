package journal

import (
	"context"
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// SumsOf returns what a request comes to. All totals add these up: those in the store, at the terminal and of runs.
func SumsOf(r *proxy.Record) account.Sums {
	s := account.Sums{Requests: 1}
	if r.Code != "" && r.Code != proxy.CodeClientGone {
		s.Failed = 1
	}
	b := r.Bill
	if r.Reported != nil { // by a gateway, of an earlier request, which was counted
		s.Requests, b = 0, &r.Reported.Bill
	}
	if b != nil {
		s.Input, s.Cached, s.Written = int64(b.Input), int64(b.Cached), int64(b.Written)
		s.WrittenLong, s.Output = int64(b.WrittenLong), int64(b.Output)
		s.Charged, s.Reckoned, s.Unpriced = account.Pico(b.Pico), one(!b.Reported), one(!b.Priced)
	}
	if r.IsStep() {
		addStep(&s, r.Turn, r.Bill != nil && r.Bill.Priced || r.Plug != "" && r.Turn.Priced)
	}
	return s
}

// addStep adds what a step was, and what condensing saved on it.
func addStep(s *account.Sums, t *proxy.TurnRecord, priced bool) {
	s.Steps, s.Sent, s.Forwarded = 1, int64(t.Before.Tokens), int64(t.After.Tokens)
	for i := range t.Condensed {
		s.Condensations += one(t.Condensed[i].Answers())
	}
	if !priced {
		s.UnpricedSent, s.UnpricedForwarded = s.Sent, s.Forwarded
		return
	}
	s.NotSent, s.Rewritten, s.Spared = pico(t.Saved.NotSent), pico(t.Saved.Rewritten), pico(t.Spare.USD())
}

// SumsOfCall returns what a call of the proxy's own comes to, nothing if it is not charged.
func SumsOfCall(c *limit.Call) (s account.Sums) {
	if !c.Charged() {
		return s
	}
	s = account.Sums{
		Requests: 1, Failed: one(c.Failed), Input: int64(c.Input), Cached: int64(c.Cached), Written: int64(c.Written), WrittenLong: int64(c.Long),
		Output: int64(c.Output), Charged: account.Pico(c.Pico), Unpriced: one(!c.Known),
	}
	if c.Plan {
		s.Charged, s.Unpriced = 0, 0
	}
	return s
}

func one(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func pico(usd float64) account.Pico { return account.Pico(math.Round(usd * 1e12)) }

// count adds a request to the totals of its tenant. A request that belongs to none is not counted.
func (j *Journal) count(r *proxy.Record) {
	if r.Tenant == "" || r.Dialect == "" && r.Reported == nil || r.Counts() {
		return
	}
	key := account.Key{Day: dayOf(r.Times.Ended), Tenant: r.Tenant, Model: r.Model, Client: account.ClientOf(r.Asked.Agent)}
	if r.Turn != nil {
		key.Arm = r.Turn.Arm
	}
	if r.Reported != nil {
		key.Arm = r.Reported.Arm
	}
	if r.Asked.Plan {
		key.Kind = account.Plan
	}
	sums := SumsOf(r)
	j.addTotal(key, &sums)
}

// Called adds a model call of the proxy's own to the totals of its tenant.
func (j *Journal) Called(c proxy.OwnCall) {
	sums := SumsOfCall(&c.Call)
	if sums == (account.Sums{}) {
		return
	}
	key := account.Key{
		Day: dayOf(j.o.Now()), Tenant: c.Tenant, Model: c.Model, Client: account.ClientOf(c.Agent), Arm: c.Arm, Kind: account.Own,
	}
	if c.Plan {
		key.Kind = account.Plan
	}
	j.addTotal(key, &sums)
}

func (j *Journal) addTotal(key account.Key, more *account.Sums) {
	j.mu.Lock()
	defer j.mu.Unlock()
	key.Client = j.clients.Of(key.Client)
	if j.totals == nil {
		j.totals = map[account.Key]*account.Sums{}
	}
	if j.totals[key] == nil {
		j.totals[key] = &account.Sums{}
	}
	j.totals[key].Add(more)
	j.schedule()
}

func dayOf(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// Past returns the time, but none after now: the days that are yet to come would take the place of earlier ones that ReadRows reads.
func Past(t, now time.Time) time.Time {
	if t.After(now) {
		return now
	}
	return t
}

// maxDays bounds how many days are read at once.
const maxDays = 400

// Rows reads the totals of all days from that of since to that of until, in UTC. It includes what this process has not written yet.
func (j *Journal) Rows(ctx context.Context, since, until time.Time) (rows []account.Row, err error) {
	if err := j.Flush(ctx); err != nil {
		return nil, err
	}
	return ReadRows(ctx, j.o.Store, since, Past(until, j.o.Now()))
}

// ReadRows reads the totals of all days from that of since to that of until, in UTC, at most the last 400.
func ReadRows(ctx context.Context, store session.Journal, since, until time.Time) (rows []account.Row, err error) {
	day := until.UTC()
	for n := 0; n < maxDays && dayOf(day) >= dayOf(since); n++ {
		totals, err := store.Totals(ctx, dayOf(day))
		if err != nil {
			return nil, err
		}
		for i := range totals {
			if row, err := account.RowOf(&totals[i]); err == nil { // otherwise another version wrote it
				rows = append(rows, row)
			}
		}
		day = day.AddDate(0, 0, -1)
	}
	return rows, nil
}
