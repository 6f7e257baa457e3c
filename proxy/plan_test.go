package proxy_test

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// payer is a summariser that notes whether a subscription pays for its calls.
type payer struct{ calls, ofPlan atomic.Int64 }

func (p *payer) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	p.calls.Add(1)
	if limit.OfPlan(ctx, r.Endpoint.APIKey) {
		p.ofPlan.Add(1)
	}
	return condense.Reply{}, context.Canceled
}

// TestASubscriptionPaysForItsSummaries: a summary that is made with the client's key is paid by what pays for its requests.
func TestASubscriptionPaysForItsSummaries(t *testing.T) {
	for key, plan := range map[string]bool{"sk-ant-oat01-x": true, "sk-x": false} {
		var p payer
		r := condensing(t, setup{condenser: condense.NewLLM(condense.LLMSettings{
			Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Summariser: &p, Model: cheapModel,
		})})
		if resp, text := r.ask(messages(turns("ships", 13)...), "Authorization", "Bearer "+key); resp.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", resp.StatusCode, text)
		}
		if p.calls.Load() == 0 || (p.ofPlan.Load() == p.calls.Load()) != plan {
			t.Errorf("key %s: %d calls, %d of them paid by a subscription", key, p.calls.Load(), p.ofPlan.Load())
		}
	}
}
