package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/replay/missing"
)

// direct is a run as it was without the proxy. It is the same under every configuration.
type direct struct {
	run     Run
	asked   string // the model that all calls ask for; empty: the recorded one
	steps   []sent
	sources *sources
	known   *counts

	parts []part // of the longest request so far
	ends  []int  // of each message of the run, the parts up to its end

	largest   int // tokens of the largest request
	messages  int // tokens of the messages in it
	events    int // messages in it
	estimated int // tokens of system and tools that the run has no text of
}

// sent is one request of the agent.
type sent struct {
	call     Call
	model    string
	usage    model.Usage
	messages int      // as the dialect counts them
	action   []string // what the answer's calls name
}

// measure plays a run without a proxy.
func measure(ctx context.Context, run Run, name string, c *counter) (*direct, error) {
	d := &direct{run: run, asked: name, sources: newSources(), known: c.counts}
	m := newMeter(c, wires[run.Protocol])
	calls := run.Calls()
	if err := d.furnish(m, calls); err != nil {
		return nil, err
	}
	for _, call := range calls {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := d.add(m, call); err != nil {
			return nil, fmt.Errorf("step %d: %w", len(d.steps)+1, err)
		}
	}
	return d, nil
}

// modelOf returns the model that a call asks for.
func (d *direct) modelOf(c Call) string {
	return cmp.Or(d.asked, c.Recorded.Model, DefaultModel)
}

// body returns the request of a call.
func (d *direct) body(c Call) []byte {
	return wires[d.run.Protocol].body(&d.run, d.modelOf(c), c.Messages)
}

// add adds a call. Each request begins with the one before it, so only what is new in it is read.
func (d *direct) add(m *meter, c Call) error {
	name := d.modelOf(c)
	if err := d.read(m, name, c.Messages); err != nil {
		return err
	}
	p := d.prompt(m, name, len(c.Messages))
	usage, err := m.measure(p, c.Answer)
	if err != nil {
		return err
	}
	answer, err := m.dialect.Read(c.Answer)
	if err != nil {
		return fmt.Errorf("read an answer: %w", err)
	}
	var arguments strings.Builder
	for _, call := range answer.Calls {
		arguments.WriteString(call.Arguments + "\n")
	}
	d.sources.learn(p.parts)
	d.steps = append(d.steps, sent{call: c, model: name, usage: usage, messages: len(p.parts), action: missing.Names(arguments.String())})
	if usage.Input > d.largest {
		fixed, err := d.fixed(m, name)
		d.largest, d.messages, d.events = usage.Input, usage.Input-fixed, len(p.parts)
		return err
	}
	return nil
}

// read splits the messages that were not read yet into parts, and the system prompt before the first of them.
func (d *direct) read(m *meter, name string, messages []json.RawMessage) error {
	run := Run{System: d.run.System}
	for i := len(d.ends); i < len(messages); i++ {
		if i > 0 {
			run.System = nil
		}
		r, err := m.dialect.Split("", m.wire.body(&run, name, messages[i:i+1]))
		if err != nil {
			return fmt.Errorf("read a message: %w", err)
		}
		for _, message := range r.Messages {
			d.parts = append(d.parts, partOf(bytes.Clone(m.wire.plain(message.Raw))))
		}
		d.ends = append(d.ends, len(d.parts))
	}
	return nil
}

// prompt returns the request with the first messages of the run.
func (d *direct) prompt(m *meter, name string, messages int) prompt {
	p := prompt{model: name, tools: partOf(d.run.Tools)}
	if messages > 0 {
		p.parts = d.parts[:d.ends[messages-1]]
	}
	for i := range p.parts {
		if last := len(p.parts) - 1; m.wire.automatic() || i == last || i == 0 && len(d.run.System) > 0 {
			p.marks = append(p.marks, i)
		}
	}
	return p
}

// fixed counts what every request has beside its messages.
func (d *direct) fixed(m *meter, name string) (int, error) {
	tools, err := m.text(name, partOf(d.run.Tools))
	if err != nil || len(d.run.System) == 0 {
		return tools + replyPriming, err
	}
	system, err := m.message(m.dialect, name, d.parts[0])
	return tools + system + replyPriming, err
}

// furnish gives a run without tools a text of the size that is missing from its first request, as far as that was recorded. So the run bills,
// and condenses, as if it had its system prompt and its tools.
func (d *direct) furnish(m *meter, calls []Call) error {
	first := slices.IndexFunc(calls, func(c Call) bool { return c.Recorded.Prompt > 0 })
	if first < 0 || len(d.run.Tools) > 0 {
		return nil
	}
	bare := d.run
	size := func() (int, error) {
		d.parts, d.ends = nil, nil
		if err := d.read(m, d.modelOf(calls[first]), calls[first].Messages); err != nil {
			return 0, err
		}
		usage, err := newMeter(m.counter, m.wire).measure(d.prompt(m, d.modelOf(calls[first]), len(calls[first].Messages)), calls[first].Answer)
		return usage.Input, err
	}
	found, err := size()
	missing := calls[first].Recorded.Prompt - found
	if err != nil || missing < smallestTool {
		return err
	}
	for words, tries := missing, 0; tries < 3 && found != calls[first].Recorded.Prompt; tries++ {
		d.run = m.wire.furnish(bare, strings.Repeat(" use", max(words, 1)))
		if found, err = size(); err != nil {
			return err
		}
		words += calls[first].Recorded.Prompt - found
	}
	d.estimated = missing
	return nil
}

// smallestTool is more than an empty tool has, in tokens.
const smallestTool = 100

// tooShort is the number of tokens in a run's messages below which no condensation by price can pay for itself.
const tooShort = 8000

// short reports whether no request of the run can be condensed, so that it need not be played.
func (d *direct) short(cfg *config.Config) bool {
	for _, s := range cfg.Condenser.Stages() {
		info, _ := cfg.ModelFor(d.steps[0].model)
		if !s.Entry().Wraps() && d.reaches(s, info.ContextWindow) {
			return false
		}
	}
	return d.messages < tooShort
}

// reaches reports whether the largest request may reach a limit of a condenser that has limits, or meets one without.
func (d *direct) reaches(s catalogue.Settings, window int) bool {
	if s.Type == catalogue.TypeNoop {
		return false
	}
	if !s.Entry().Rolling() || len(s.PerModel) > 0 {
		return true
	}
	limit := s.MaxTokens
	if limit <= 1 {
		limit *= float64(window)
	}
	return d.events > s.MaxSize && s.MaxSize > 0 && d.messages >= s.MinTokens || limit > 0 && float64(d.largest) > limit || d.largest > window/2
}
