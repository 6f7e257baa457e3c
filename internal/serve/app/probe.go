package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/dialect/protocols"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/dial"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Probed is the result of probing a configured model in one form.
type Probed struct {
	Name, Model, URL string
	Type             string // of the condensers that ask in this form; empty: none but for text
	Skipped          bool   // the model is called with clients' keys, which a probe does not have
	Err              error  // why the model does not answer
}

// String describes the result without secrets.
func (p Probed) String() string {
	model, form := fmt.Sprintf("%s at %s", p.Model, p.URL), ""
	if p.Type != "" {
		form = " in the form that " + p.Type + " needs"
	}
	switch {
	case p.Skipped:
		return model + " is called with each client's own key: not probed"
	case p.Err != nil:
		return fmt.Sprintf("%s does not answer%s: %v", model, form, p.Err)
	}
	return model + " answers" + form
}

// Probe sends a small request to each model of llms, once for each endpoint at which tenants' requests would call it, in each form in which
// the condensers that name it ask.
func Probe(ctx context.Context, cfg *config.Config) []Probed {
	transport := proxy.NewTransport(cfg.Limits.UpstreamResponseHeaderTimeout, dial.Guard{})
	defer transport.CloseIdleConnections()
	out := &calls{transport: transport, mark: unmarked}
	out.confine(cfg)
	defer out.confined.closeAll()
	type target struct {
		at            condense.Attempt
		condenserType string
	}
	seen := map[target]bool{}
	var all []Probed
	for _, name := range slices.Sorted(maps.Keys(cfg.LLMs)) {
		for _, t := range cfg.EveryTenant() {
			up := cfg.UpstreamFor(t, config.General)
			llm, _ := cfg.LLMFor(name, t, up)
			a := condense.Attempt{Endpoint: endpoint(llm), Model: llm.Model}
			for _, form := range formsOf(cfg, name, t) {
				if seen[target{a, form}] {
					continue
				}
				seen[target{a, form}] = true
				p := Probed{Name: name, Model: llm.Model, URL: summariser.Shown(llm.BaseURL), Type: form}
				atUpstream := llm.BaseURL == up.BaseURL
				if p.Skipped = atUpstream && a.Endpoint.APIKey == ""; p.Skipped {
					all = append(all, p)
					break
				}
				p.Err = probeAny(ctx, out.caller(out.transportOf(cfg, t), 0, llm), a, form, atUpstream && llm.API == "")
				all = append(all, p)
			}
		}
	}
	return all
}

// formsOf lists the types of a tenant's condensers that ask a model by name in a form of their own. An empty one stands for text; it is listed
// if a condenser asks for that, or if none asks for anything.
func formsOf(cfg *config.Config, name string, t config.Tenant) (forms []string) {
	chosen := cfg.CondenserFor(t)
	for _, stage := range chosen.Stages() {
		if !stage.Entry().AsksModel() || stage.LLMConfig != name {
			continue
		}
		form := stage.Type
		if form == catalogue.TypeLLM {
			form = ""
		}
		forms = append(forms, form)
	}
	if len(forms) == 0 {
		forms = []string{""}
	}
	slices.Sort(forms)
	return slices.Compact(forms)
}

// probeAny probes a model in its configured protocol. If anyAPI is set, the model is called in the protocol of each request,
// so any protocol will do.
func probeAny(ctx context.Context, model summariser.Caller, a condense.Attempt, form string, anyAPI bool) error {
	err := probe(ctx, model, a, form)
	if call, ok := errors.AsType[*condense.CallError](err); !anyAPI || !ok || !call.Missing() {
		return err
	}
	for _, other := range protocols.All()[1:] {
		a.Endpoint.Way.API = other.Name
		if probe(ctx, model, a, form) == nil {
			return nil
		}
	}
	return err
}

func probe(ctx context.Context, model summariser.Caller, a condense.Attempt, form string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, check := condense.Probe(form)
	r.Endpoint, r.Model = a.Endpoint, a.Model
	reply, err := model.Summarise(ctx, r)
	if err != nil {
		return err // it names the call
	}
	if err := check(reply); err != nil {
		return fmt.Errorf("%w: name a model that does, or use type llm", err)
	}
	return nil
}
