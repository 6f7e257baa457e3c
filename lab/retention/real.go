package retention

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// Real says how summaries by real models are measured.
type Real struct {
	Summariser condense.Summariser
	Endpoint   condense.Endpoint
	Models     []string
	Prompts    []Prompt
	Runs       int     // that are measured at most
	Moments    int     // of a run at most
	Minimum    int     // tokens of a history
	Share      float64 // budget, as a share of the history's tokens
	Window     int     // of the models, in tokens; 0: condense.DefaultWindow
	Counter    Counter
}

// Prompt is a way to ask for a summary.
type Prompt struct {
	Name string
	Type string // of the condenser
	Text string // instructions in place of the built-in ones; empty: those
}

// Prompts lists the built-in ways.
func Prompts() []Prompt {
	return []Prompt{{Name: catalogue.TypeLLM, Type: catalogue.TypeLLM}, {Name: catalogue.TypeStructuredSummary, Type: catalogue.TypeStructuredSummary}}
}

// Summaries is what was counted of one prompt and model.
type Summaries struct {
	Prompt, Model   string
	Asked, Passed   int            // summaries, and those that passed all checks
	Failures        map[string]int // by kind
	Lines, Grounded int            // lines of those that passed that name something, before others were struck out
	Kept, Excerpted Counts         // what is to be seen where they passed, and under excerpts of the same moments
	Calls           int
	Input, Output   int
}

// ErrNoMoment is returned if no run has an action to measure.
var ErrNoMoment = errors.New("no run is long enough to be measured")

// Measure asks for a summary of the history before the same actions with each prompt and each model. It stops if a server does not answer or refuses
// the key: then nothing was measured.
func (o Real) Measure(ctx context.Context, runs []replay.Run) (all []Summaries, err error) {
	var moments []*moment
	measured := 0
	for _, recorded := range runs {
		if measured == o.Runs {
			break
		}
		r, err := newRun(recorded, o.Counter)
		if err != nil {
			return nil, err
		}
		some := r.moments(o.Minimum, o.Share/2, o.Moments, (*moment).refers)
		measured += one(len(some) > 0)
		moments = append(moments, some...)
	}
	if len(moments) == 0 {
		return nil, ErrNoMoment
	}
	for _, model := range o.Models {
		for _, prompt := range o.Prompts {
			s := Summaries{Prompt: prompt.Name, Model: model, Failures: map[string]int{}}
			for _, m := range moments {
				if err := o.summarise(ctx, &s, m, prompt); err != nil {
					return nil, fmt.Errorf("ask %s about message %d of %s: %w", model, m.at, m.run.name, err)
				}
			}
			all = append(all, s)
		}
	}
	return all, nil
}

// summarise condenses the history of a moment once and counts what comes of it.
func (o Real) summarise(ctx context.Context, s *Summaries, m *moment, prompt Prompt) error {
	budget := int(o.Share * float64(m.total))
	asked := &meter{of: o.Summariser, into: s}
	c, err := catalogue.Build(prompt.Type, settings(prompt.Type), realLimits{limits: limits{budget: budget}, of: o, asked: asked, model: s.Model, prompt: prompt.Text})
	if err != nil {
		return fmt.Errorf("build condenser: %w", err)
	}
	v := m.project(nil)
	in := m.input(&v)
	in.Window = 2*budget - fixedTokens(&in)
	job := c.Condense(in).Job
	if job == nil {
		return nil // there is nothing to hide
	}
	made, err := job.Run(ctx)
	if err == nil {
		err = made.Fallback
	}
	if call, ok := errors.AsType[*condense.CallError](err); ok && call.Kind != condense.FailureMalformed && call.Kind != condense.FailureTimeout {
		return call
	}
	s.Asked++
	if err != nil {
		s.Failures[kindOf(err)]++
		return ctx.Err()
	}
	s.Passed++
	s.Lines += made.Condensation.Grounding.Lines
	s.Grounded += made.Condensation.Grounding.Grounded
	v = m.project(journal{}.add(made.Condensation))
	s.Kept.Add(m.score(m.show(&v), budget))
	quoted, _, err := m.settle(condense.Excerpts{Settings: condense.Settings{KeepFirst: KeepFirst}}, nil, budget, nil)
	if err == nil {
		s.Excerpted.Add(m.score(m.show(&quoted), budget))
	}
	return err
}

// kindOf returns the kind of a failure.
func kindOf(err error) string {
	if bad, ok := errors.AsType[*condense.SummaryError](err); ok {
		return string(bad.Kind)
	}
	if call, ok := errors.AsType[*condense.CallError](err); ok {
		return string(call.Kind)
	}
	return "other"
}

// meter counts the calls of a summariser.
type meter struct {
	of   condense.Summariser
	into *Summaries
}

func (m *meter) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	reply, err := m.of.Summarise(ctx, r)
	m.into.Calls++
	m.into.Input += reply.Usage.Input
	m.into.Output += reply.Usage.Output
	if err != nil {
		return reply, fmt.Errorf("summarise: %w", err)
	}
	return reply, nil
}

// realLimits set a condenser as limits do, with a real model.
type realLimits struct {
	limits
	of     Real
	asked  condense.Summariser
	model  string
	prompt string
}

// Asking implements catalogue.Dependencies.
func (l realLimits) Asking(_ string, s catalogue.Settings) (func(condense.Input) condense.LLMSettings, error) {
	return func(condense.Input) condense.LLMSettings {
		return condense.LLMSettings{
			Settings: s.Rolling(), Summariser: l.asked, Endpoint: l.of.Endpoint, Model: l.model, Prompt: l.prompt, Window: l.of.Window,
			MaxOutput: min(condense.DefaultMaxOutput, max(l.budget/4, 256)),
		}
	}, nil
}

// WriteSummaries writes a row for each prompt and model.
func WriteSummaries(w io.Writer, all []Summaries) {
	fmt.Fprintln(w, "| prompt | model | asked | passed | failed | lines grounded | RR_mem | DS | `excerpts`: RR_mem | DS | calls | tokens in, out |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|---|---|")
	of := func(part, whole int) string {
		if whole == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f%% of %d", 100*float64(part)/float64(whole), whole)
	}
	for _, s := range all {
		var failures []string
		for _, kind := range slices.Sorted(maps.Keys(s.Failures)) {
			failures = append(failures, fmt.Sprintf("%d %s", s.Failures[kind], kind))
		}
		fmt.Fprintf(w, "| %s | %s | %d | %d | %s | %s | %s | %s | %s | %s | %d | %d, %d |\n", s.Prompt, s.Model, s.Asked, s.Passed,
			strings.Join(failures, ", "), of(s.Grounded, s.Lines), of(s.Kept.Recalled, s.Kept.Memory), of(s.Kept.Stated, s.Kept.Relied),
			of(s.Excerpted.Recalled, s.Excerpted.Memory), of(s.Excerpted.Stated, s.Excerpted.Relied), s.Calls, s.Input, s.Output)
	}
}
