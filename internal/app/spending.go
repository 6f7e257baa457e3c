package app

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// spending is a tenant's summariser within the tenant's limits. It spends a key of the operator on trusted clients only.
type spending struct {
	condense.Summariser
	keys   []string // the operator's
	limits limit.Tenant
	purse  *purse
}

var _ condense.Summariser = spending{}

// purse is what a tenant has spent on summaries. It outlives a configuration.
type purse struct{ calls, tokens limit.Bucket }

// purses are those of all tenants.
type purses struct {
	mu  sync.Mutex
	all map[string]*purse
}

func (p *purses) of(tenant string) *purse {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[tenant] == nil {
		if p.all == nil {
			p.all = map[string]*purse{}
		}
		p.all[tenant] = &purse{}
	}
	return p.all[tenant]
}

// Summarise implements condense.Summariser.
func (s spending) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	if r.Endpoint.APIKey != "" && slices.Contains(s.keys, r.Endpoint.APIKey) && !limit.Trusted(ctx) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureUntrusted}
	}
	if !s.within(time.Now()) {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureLimited}
	}
	reply, err := s.Summariser.Summarise(ctx, r)
	if s.limits.SummaryTokens > 0 {
		s.purse.tokens.Correct(cost(r, reply))
	}
	return reply, err //nolint:wrapcheck // it is the summariser's
}

// within reports whether another call is within the limits, and takes it.
func (s spending) within(now time.Time) bool {
	if most := s.limits.SummaryTokens; most > 0 && s.purse.tokens.Full(now, most) > 0 {
		return false
	}
	if most := s.limits.Summaries; most > 0 {
		_, ok := s.purse.calls.Take(now, 1, most)
		return ok
	}
	return true
}

// cost is what a call took, in tokens; a guess where the server does not say.
func cost(r condense.Request, reply condense.Reply) int {
	if n := max(reply.Usage.Input, 0) + max(reply.Usage.Output, 0); n > 0 {
		return n
	}
	n := len(r.System) + len(r.User) + len(reply.Text)
	for _, event := range r.Events {
		n += len(event)
	}
	return n / 4
}

// operatorsKeys are the keys by which a tenant's summaries may be paid that are not its clients' own.
func operatorsKeys(llm config.LLM, up config.Upstream) []string {
	return []string{llm.APIKey.Reveal(), up.APIKey.Reveal()}
}

// openKeys names the keys that every client spends, where none has to authenticate.
func openKeys(cfg *config.Config) (names []string) {
	if len(cfg.Tenants) > 0 {
		return nil
	}
	if cfg.Upstream.APIKey != "" {
		names = append(names, "upstream.api_key")
	}
	for name, llm := range cfg.LLMs {
		if llm.APIKey != "" {
			names = append(names, "llms."+name+".api_key")
		}
	}
	slices.Sort(names)
	return names
}
