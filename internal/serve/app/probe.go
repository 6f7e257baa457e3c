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
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Probed is the result of probing a configured model.
type Probed struct {
	Name, Model, URL string
	Skipped          bool  // the model is called with clients' keys, which a probe does not have
	Err              error // why the model does not answer
}

// String describes the result without secrets.
func (p Probed) String() string {
	model := fmt.Sprintf("%s at %s", p.Model, p.URL)
	switch {
	case p.Skipped:
		return model + " is called with each client's own key: not probed"
	case p.Err != nil:
		return fmt.Sprintf("%s does not answer: %v", model, p.Err)
	}
	return model + " answers"
}

// probeOutput bounds the answer, in tokens. It leaves room for a model that reasons.
const probeOutput = 64

// Probe sends a small request to each model of llms, once for each endpoint at which tenants' requests would call it.
func Probe(ctx context.Context, cfg *config.Config) []Probed {
	transport := proxy.NewTransport(cfg.Limits.UpstreamResponseHeaderTimeout, dial.Guard{})
	defer transport.CloseIdleConnections()
	out := &calls{transport: transport, mark: unmarked}
	out.confine(cfg)
	defer out.confined.closeAll()
	seen := map[condense.Attempt]bool{}
	var all []Probed
	for _, name := range slices.Sorted(maps.Keys(cfg.LLMs)) {
		for _, t := range cfg.EveryTenant() {
			up := cfg.UpstreamFor(t)
			llm, _ := cfg.LLMFor(name, up)
			a := condense.Attempt{Endpoint: endpoint(llm), Model: llm.Model}
			if seen[a] {
				continue
			}
			seen[a] = true
			p := Probed{Name: name, Model: llm.Model, URL: summariser.Shown(llm.BaseURL)}
			atUpstream := llm.BaseURL == up.BaseURL
			if atUpstream && a.Endpoint.APIKey == "" {
				p.Skipped = true
			} else {
				p.Err = probeAny(ctx, out.caller(out.transportOf(cfg, t), llm.Timeout, llm.Temperature), a, atUpstream && llm.API == "")
			}
			all = append(all, p)
		}
	}
	return all
}

// probeAny probes a model in its configured protocol. If anyAPI is set, the model is called in the protocol of each request,
// so any protocol will do.
func probeAny(ctx context.Context, model summariser.Caller, a condense.Attempt, anyAPI bool) error {
	err := probe(ctx, model, a)
	if call, ok := errors.AsType[*condense.CallError](err); !anyAPI || !ok || !call.Missing() {
		return err
	}
	for _, api := range [...]string{condense.APIMessages, condense.APIResponses} {
		a.Endpoint.Way.API = api
		if probe(ctx, model, a) == nil {
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
	return err // it names the call
}
