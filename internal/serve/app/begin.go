package app

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/figures"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Begin says when condensing begins for a model. The zero value but for the model says that it never does.
type Begin struct {
	Model    string
	From, To int // tokens of a request at which it pays, from and to; both 0: only limits count
	Tokens   int // tokens of a request that a limit allows
	Events   int // events that a limit allows
	Memory   int // tokens of history that the limit of tokens leaves to an agent with a large prompt and many tools
}

// String describes it in words.
func (b Begin) String() string {
	if b.Tokens == 0 {
		return b.Model + " is never condensed"
	}
	limits := fmt.Sprintf("above %s tokens or %d events", figures.Grouped(b.Tokens), b.Events)
	if b.From == 0 || b.From >= b.Tokens {
		return fmt.Sprintf("%s is condensed %s", b.Model, limits)
	}
	return fmt.Sprintf("%s is condensed when that pays, usually from %s to %s tokens; at the latest %s", b.Model,
		figures.Grouped(b.From), figures.Grouped(min(b.To, b.Tokens)), limits)
}

// Cramped says that the limit of tokens leaves too little memory to such an agent, and what to do. It is empty if it does not.
func (b Begin) Cramped() string {
	if b.Tokens <= sampleRuns[0].fixed || b.Memory >= condense.LeastMemory { // a limit that each request exceeds is reported as such
		return ""
	}
	return fmt.Sprintf("%s: a limit of %s tokens leaves %s tokens of the history to an agent whose system prompt and tools have %s, such as Claude Code: "+
		"set max_tokens higher", b.Model, figures.Grouped(b.Tokens), figures.Grouped(b.Memory), figures.Grouped(largePrompt))
}

// Begins says when a condenser begins to condense for models. When that pays depends on the run: it is worked out for runs with few and with many
// tokens of tools, in small and in large steps.
func Begins(cfg *config.Config, c config.Condenser, models []string) ([]Begin, error) {
	b := builder{config: cfg, out: newCalls(nil, zap.NewNop())}
	b.health = b.out.health.Tenant()
	byPrice, err := catalogue.Build("condenser", withoutEvents(c, c.Trigger), b)
	if err != nil {
		return nil, fmt.Errorf("when condensing begins: %w", err)
	}
	atLimits, err := catalogue.Build("condenser", withoutEvents(c, catalogue.TriggerLimits), b)
	if err != nil {
		return nil, fmt.Errorf("when condensing begins: %w", err)
	}
	begins := make([]Begin, len(models))
	for i, name := range models {
		info, _ := cfg.ModelFor(name)
		begins[i] = Begin{Model: name, Events: eventLimit(c)}
		begins[i].Tokens, _ = sampleRuns[0].begins(atLimits, name, info)
		begins[i].Memory = max(begins[i].Tokens-largePrompt, 0) / 2
		for _, r := range sampleRuns {
			if pays, why := r.begins(byPrice, name, info); why == session.ReasonEconomics {
				begins[i].From, begins[i].To = min(cmp.Or(begins[i].From, pays), pays), max(begins[i].To, pays)
			}
		}
	}
	return begins, nil
}

// withoutEvents returns a condenser without limits of events. With TriggerLimits, no prices make it condense either.
func withoutEvents(c config.Condenser, trigger string) config.Condenser {
	if c.Entry().Rolling() {
		c.MaxSize = math.MaxInt32
		if trigger == catalogue.TriggerLimits {
			c.Trigger = trigger
		}
	}
	c.Condensers = slices.Clone(c.Condensers)
	for i, stage := range c.Condensers {
		c.Condensers[i] = withoutEvents(stage, trigger)
	}
	return c
}

// eventLimit returns the lowest limit of events of a condenser and its stages.
func eventLimit(c config.Condenser) int {
	limit := math.MaxInt32
	for _, stage := range c.Stages() {
		if stage.Entry().Rolling() {
			limit = min(limit, stage.MaxSize)
		}
	}
	return limit
}

// sampleRun is an agent's run of tool calls: tokens of system prompt and tools, and of each step.
type sampleRun struct{ fixed, step int }

// sampleRuns lists the shapes of most recorded runs.
var sampleRuns = []sampleRun{{3000, 500}, {3000, 2000}, {largePrompt, 500}, {largePrompt, 2000}}

// largePrompt is the number of tokens of system prompt and tools that agents with many tools send.
const largePrompt = 20000

// Parts of a step in tokens: the model's call; its result is the rest. And of a run's first message.
const (
	callTokens = 120
	taskTokens = 500
)

// begins returns the tokens of the last request of the run before one that is condensed, and why that is. They are 0 and "" if none within twice
// the window is.
func (r sampleRun) begins(c condense.Condenser, name string, of model.Info) (tokens int, why session.Reason) {
	due := func(steps int) condense.Decision { return c.Condense(r.input(steps, name, of)) }
	is := func(d condense.Decision) bool { return d.Job != nil || d.Obstacle != "" }
	most := 16
	for ; !is(due(most)); most *= 2 {
		if r.tokens(most) > 2*of.ContextWindow {
			return 0, ""
		}
	}
	steps := sort.Search(most, func(n int) bool { return is(due(n)) })
	return r.tokens(steps - 1), reason(due(steps))
}

// reason returns why a condensation is due, or "" if none is made.
func reason(d condense.Decision) session.Reason {
	if d.Job == nil {
		return ""
	}
	return d.Job.Need().Reason
}

func (r sampleRun) tokens(steps int) int { return r.fixed + taskTokens + steps*r.step }

// input returns the request after a number of steps.
func (r sampleRun) input(steps int, name string, of model.Info) condense.Input {
	messages := []session.Message{{Kind: session.User, Raw: []byte(`{"role":"user","content":"Go."}`)}}
	for n := range steps {
		id := fmt.Sprint("call_", n)
		messages = append(messages,
			session.Message{Kind: session.Action, Calls: []string{id}, Raw: fmt.Appendf(nil,
				`{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":"read","arguments":"{}"}}]}`, id)},
			session.Message{Kind: session.Observation, Result: id, Raw: fmt.Appendf(nil, `{"role":"tool","tool_call_id":%q,"content":"Done."}`, id)})
	}
	view := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	tokens := map[session.Kind]int{session.User: taskTokens, session.Action: callTokens, session.Observation: r.step - callTokens}
	return condense.Input{
		View: &view, Total: r.tokens(steps), Fixed: r.fixed, Window: of.ContextWindow, Reserved: min(of.MaxOutput, of.ContextWindow/8), Model: name, Codec: chat.New(chat.Options{}),
		Count: func(text string) int { return len(text) / 4 },
		Measure: func(items []session.Item) (counts []int) {
			for _, item := range items {
				counts = append(counts, tokens[item.Kind])
			}
			return counts
		},
	}
}
