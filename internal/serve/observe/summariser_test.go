package observe_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

type summariser struct {
	reply condense.Reply
	err   error
}

func (s summariser) Summarise(context.Context, condense.Request) (condense.Reply, error) {
	return s.reply, s.err
}

// TestBills checks that a call is billed by the usage that its server reports, and by the size of its prompt if the server may
// have read that without replying. A refused call costs nothing.
func TestBills(t *testing.T) {
	guess := []limit.Call{{Model: "cheap", Input: 25, USD: 25e-6, Known: true, Failed: true}}
	nothing := []limit.Call{{Model: "cheap", Known: true, Failed: true}}
	for name, c := range map[string]struct {
		by   summariser
		want []limit.Call
	}{
		"answered": {
			summariser{reply: condense.Reply{Usage: session.Usage{Input: 7, Cached: -1, Output: 3}}},
			[]limit.Call{{Model: "cheap", Input: 7, Output: 3, USD: 13e-6, Known: true}},
		},
		"cached for an hour": {
			summariser{reply: condense.Reply{Usage: session.Usage{Input: 7, Written: 5, WrittenLong: 4, Output: 3}}},
			[]limit.Call{{Model: "cheap", Input: 7, Written: 5, Long: 4, Output: 3, USD: 17e-6, Known: true}},
		},
		"without usage": {
			summariser{reply: condense.Reply{Text: "The sea is deep."}},
			[]limit.Call{{Model: "cheap", Input: 25, Output: 4, USD: 33e-6, Known: true}},
		},
		"silent":   {summariser{err: &condense.CallError{Kind: condense.FailureTimeout}}, guess},
		"given up": {summariser{err: &condense.CallError{Kind: condense.FailureCanceled}}, guess},
		"unread":   {summariser{err: errors.New("no JSON")}, guess},
		"refused":  {summariser{err: &condense.CallError{Kind: condense.FailureRejected, Status: 400}}, nothing},
		"away":     {summariser{err: &condense.CallError{Kind: condense.FailureUnreachable}}, nothing},
		"broken off": {
			summariser{err: &condense.CallError{Kind: condense.FailureUnreachable, Begun: &condense.Reply{Text: "The sea is ", Arguments: "{"}}},
			[]limit.Call{{Model: "cheap", Input: 25, Output: 3, USD: 31e-6, Known: true, Failed: true}},
		},
		"stalled, with usage": {
			summariser{err: &condense.CallError{Kind: condense.FailureTimeout, Begun: &condense.Reply{Text: "The sea is deep.", Usage: session.Usage{Input: 7, Output: 1}}}},
			[]limit.Call{{Model: "cheap", Input: 7, Output: 4, USD: 15e-6, Known: true, Failed: true}},
		},
		"not asked": {summariser{err: &condense.CallError{Kind: condense.FailureLimited}}, nothing},
	} {
		t.Run(name, func(t *testing.T) {
			var got []limit.Call
			ctx := limit.WithBill(t.Context(), func(_ context.Context, c limit.Call) { got = append(got, c) })
			metrics := observe.NewMetrics()
			s := observe.Summariser{Summariser: c.by, Tenant: "a", Metrics: metrics, Models: func(name string) proxy.ModelInfo {
				info := proxy.ModelInfo{Price: model.Price{Input: 1, Output: 2}}
				info.Name = name
				return info
			}}
			_, _ = s.Summarise(ctx, condense.Request{Model: "cheap", System: string(make([]byte, 60)), User: string(make([]byte, 40))})
			for i := range c.want {
				c.want[i].Pico = int64(math.Round(c.want[i].USD * 1e12))
			}
			if len(got) != len(c.want) || len(got) == 1 && got[0] != c.want[0] {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
			s.NoModel, got = true, nil
			if _, err := s.Summarise(ctx, condense.Request{Model: "cheap", System: "Condense this."}); len(got) != 1 ||
				got[0] != (limit.Call{Model: "cheap", Known: true, Failed: err != nil}) {
				t.Errorf("without a model it took %+v", got)
			}
			if c.want[0].USD > 0 {
				wantValues(t, metrics, map[string]float64{`dewpoint_spent_usd_total{kind="summariser",model="cheap",tenant="a"}`: c.want[0].USD})
			}
		})
	}
}

// TestASubscriptionPaysForCallsWithItsKey: such a call is not billed, and a call with another key is.
func TestASubscriptionPaysForCallsWithItsKey(t *testing.T) {
	for key, plan := range map[string]bool{"sk-ant-oat-1": true, "sk-2": false, "": false} {
		var got limit.Call
		ctx := limit.WithBill(limit.WithPlan(t.Context(), "sk-ant-oat-1"), func(_ context.Context, c limit.Call) { got = c })
		metrics := observe.NewMetrics()
		s := observe.Summariser{
			Summariser: summariser{reply: condense.Reply{Usage: session.Usage{Input: 7, Output: 3}}}, Tenant: "a", Metrics: metrics,
			Models: func(name string) proxy.ModelInfo {
				info := proxy.ModelInfo{Price: model.Price{Input: 1, Output: 2}}
				info.Name = name
				return info
			},
		}
		if _, err := s.Summarise(ctx, condense.Request{Model: "cheap", Endpoint: condense.Endpoint{APIKey: key}}); err != nil || got.Plan != plan {
			t.Errorf("key %q: %+v, %v", key, got, err)
		}
		if !plan {
			wantValues(t, metrics, map[string]float64{`dewpoint_spent_usd_total{kind="summariser",model="cheap",tenant="a"}`: 13e-6})
		}
	}
}
