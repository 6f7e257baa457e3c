package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Probed is what came of asking a configured model.
type Probed struct {
	Name, Model, URL string
	Skipped          bool  // it is called with a client's key, which is not there
	Err              error // why it does not answer
}

// String says it without secrets.
func (p Probed) String() string {
	what := fmt.Sprintf("%s at %s", p.Model, p.URL)
	switch {
	case p.Skipped:
		return what + " is called with each client's own key: not asked"
	case p.Err != nil:
		return fmt.Sprintf("%s does not answer: %v", what, p.Err)
	}
	return what + " answers"
}

// probeOutput is how many tokens an answer may have: some for a model that reasons.
const probeOutput = 64

// Probe asks each model of llms once, with a request of a few tokens, wherever a tenant's requests would have it called.
func Probe(ctx context.Context, cfg *config.Config) []Probed {
	transport := proxy.NewTransport(cfg.Limits.UpstreamResponseHeaderTimeout)
	defer transport.CloseIdleConnections()
	out := &calls{transport: transport}
	asked := map[condense.Attempt]bool{}
	var all []Probed
	for _, name := range slices.Sorted(maps.Keys(cfg.LLMs)) {
		for _, t := range cfg.EveryTenant() {
			up := cfg.UpstreamFor(t)
			llm, _ := cfg.LLMFor(name, up)
			a := condense.Attempt{Endpoint: endpoint(llm), Model: llm.Model}
			if asked[a] {
				continue
			}
			asked[a] = true
			p := Probed{Name: name, Model: llm.Model, URL: summariser.Shown(llm.BaseURL)}
			if p.Skipped = a.Endpoint.APIKey == "" && llm.BaseURL == up.BaseURL; !p.Skipped {
				p.Err = probeAny(ctx, out.model(llm.Timeout, llm.Temperature), a, llm.API == "" && llm.BaseURL == up.BaseURL)
			}
			all = append(all, p)
		}
	}
	return all
}

// probeAny asks a model in its protocol, or, where it is called in that of each request, in any.
func probeAny(ctx context.Context, model summariser.Caller, a condense.Attempt, every bool) error {
	err := probe(ctx, model, a)
	if call, ok := errors.AsType[*condense.CallError](err); !every || !ok || !call.Missing() {
		return err
	}
	for _, api := range [...]string{condense.APIMessages, condense.APIResponses} {
		if a.Endpoint.Way.API = api; probe(ctx, model, a) == nil {
			return nil
		}
	}
	return err
}

func probe(ctx context.Context, model summariser.Caller, a condense.Attempt) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	_, err := model.Summarise(ctx, condense.Request{
		Endpoint: a.Endpoint, Model: a.Model, System: "Answer in one word.", User: "Are you there?", MaxOutput: probeOutput,
	})
	return err //nolint:wrapcheck // it says what was called
}
