package runs

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

func answered(before, after int, charged, saved float64) *proxy.Record {
	turn := &proxy.TurnRecord{Before: session.Size{Tokens: before}, After: session.Size{Tokens: after}}
	turn.Charged, turn.Saved.NotSent = charged, saved
	return &proxy.Record{
		Status: http.StatusOK, Asked: proxy.Asked{Path: "/v1/chat/completions"}, Turn: turn, Call: proxy.Call{Status: http.StatusOK},
		Bill: &proxy.Bill{Reported: true, Priced: charged > 0, Pico: int64(charged * 1e12)},
	}
}

func TestLineOfTotals(t *testing.T) {
	count := answered(900, 900, 1, 0)
	count.Asked.Path = "/v1/messages/count_tokens"
	left := answered(900, 900, 0.2, 0)
	left.Code = proxy.CodeClientGone
	observed := answered(2_000_000, 2_000_000, 3, 0)
	observed.Turn.Spared, observed.Turn.Spare.NotSent, observed.Turn.Made = 500_000, 1.5, true
	for want, c := range map[string]struct {
		observe bool
		records []*proxy.Record
		calls   []limit.Call
	}{
		"no request of the agent's":              {records: []*proxy.Record{count, {Status: http.StatusOK}}},
		"no step was answered, 1 request failed": {records: []*proxy.Record{{Status: http.StatusBadGateway, Code: "upstream_unreachable"}}},
		"2 steps, 0 condensations, 1.8k of 2.5k tokens sent (28% fewer), 2.00 USD instead of 3.50 (43% saved)": {
			records: []*proxy.Record{answered(1000, 900, 1, 0.5), answered(1500, 900, 1, 1), count},
		},
		"2 steps, 0 condensations, 1.8k of 1.8k tokens sent, 1.30 USD with and without Dewpoint": { // one of them after which the client left
			records: []*proxy.Record{answered(900, 900, 1, 0), left, {Status: http.StatusOK, Code: "store_full", Bill: &proxy.Bill{Priced: true, Pico: 1e11}}},
		},
		"1 step, 0 condensations, 800 of 900 tokens sent (11% fewer), 1.30 USD, 0.0500 more than without Dewpoint": {
			records: []*proxy.Record{answered(900, 800, 1, 0.25)}, calls: []limit.Call{{USD: 0.3, Pico: 3e11, Known: true, Input: 9}},
		},
		"1 step, 0 condensations, 900 of 900 tokens sent, 0.0200 USD with and without Dewpoint":        {records: []*proxy.Record{answered(900, 900, 0.02, 0)}},
		"1 step, 0 condensations, 800 of 900 tokens sent (11% fewer); no price is known for the model": {records: []*proxy.Record{answered(900, 800, 0, 0)}},
		"observed 1 step, which were forwarded unchanged. With Dewpoint: 1 condensation, 1.5M of 2.0M tokens sent (25% fewer), 1.50 USD instead of 3.00 (50% saved)": {
			observe: true, records: []*proxy.Record{observed},
		},
	} {
		totals := Totals{Observe: c.observe}
		for _, r := range c.records {
			totals.add(r)
		}
		for _, call := range c.calls {
			totals.addCall(call)
		}
		if got := totals.Line(); !strings.HasPrefix(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
	}
}
