package replay

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// DefaultModel is the model that requests ask for if neither Options nor the run name one.
const DefaultModel = "gpt-4o"

// Options say how a run is replayed. The zero value is ready to use.
type Options struct {
	Model    string             // asked by all requests; empty: the recorded one, or else DefaultModel
	Encoders *tokenize.Registry // shared by several replays; nil: the replay has its own
	Each     func(Step)         // called after each step, in order; nil: not called
	Account  bool               // read the proxy's own accounts into the reports

	// Look is called after each step with what the agent sent and what reached upstream under a configuration, counted from 0. Its error ends the
	// replay. It may be nil.
	Look func(ctx context.Context, config int, s Seen) error
	look func(ctx context.Context, s Seen) error
}

// Seen is a step as the model saw it. Its functions may be called until Look returns.
type Seen struct {
	Run       *Run
	Step      int  // from 1
	Condensed bool // the model saw less than the agent sent
	Sent      func() []session.Content
	Shown     func() []session.Content
}

// Step is one model call of a run. Counts of tokens are the proxy's.
type Step struct {
	Number          int // from 1
	Events          int // messages that the agent sent
	EventsForwarded int
	Tokens          int // tokens that the agent sent
	TokensForwarded int
	Condensations   []Condensation // condensations that the step caused
}

// Play replays a run, step by step as its agent would, through the proxy with this configuration and in front of an upstream in this
// process. No request leaves the machine, except those of a custom condenser. Play reports what the run would have used and cost without
// and with the proxy. The configuration should come from Settings, and be valid.
func Play(ctx context.Context, cfg *config.Config, run Run, o Options) (Report, error) {
	reports, err := compare(ctx, []*config.Config{cfg}, run, o, false)
	if err != nil {
		return Report{}, err
	}
	return reports[0], nil
}

// Compare replays a run under several configurations, as Play does under one. It returns a report for each. A run that none of a
// configuration's limits can concern is not played under it: its report is Short.
func Compare(ctx context.Context, cfgs []*config.Config, run Run, o Options) ([]Report, error) {
	return compare(ctx, cfgs, run, o, true)
}

func compare(ctx context.Context, cfgs []*config.Config, run Run, o Options, skip bool) (reports []Report, err error) {
	o.Encoders = cmp.Or(o.Encoders, tokenize.New())
	known := newCounts()
	var d *direct
	var models map[string]model.Info // with which d was measured
	for i, cfg := range cfgs {
		o := o
		if look := o.Look; look != nil {
			o.look = func(ctx context.Context, s Seen) error { return look(ctx, i, s) }
		}
		if d == nil || !maps.Equal(cfg.Models, models) {
			models = cfg.Models
			if d, err = measure(ctx, run, o.Model, newCounter(cfg.Models, o.Encoders, known)); err != nil {
				return nil, fmt.Errorf("replay %s: %w", run.Name, err)
			}
		}
		r, err := d.play(ctx, *cfg, o, skip)
		if err != nil {
			return nil, fmt.Errorf("replay %s: %w", run.Name, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// play plays a run under a configuration.
func (d *direct) play(ctx context.Context, cfg config.Config, o Options, skip bool) (Report, error) {
	if len(d.steps) == 0 {
		return Report{}, errors.New("it has no answer of a model")
	}
	if skip && d.short(&cfg) {
		return d.unplayed(cfg), nil
	}
	p, err := newPlayer(cfg, d, o)
	if err != nil {
		return Report{}, err
	}
	for i := range d.steps {
		if err = p.step(ctx, i+1, &d.steps[i]); err != nil {
			err = fmt.Errorf("step %d: %w", i+1, err)
			break
		}
	}
	if err == nil && o.Account {
		err = p.account(ctx)
	}
	return p.report, errors.Join(err, p.close())
}

// account reads the proxy's own accounts into the report.
func (p *player) account(ctx context.Context) (err error) {
	p.client.CloseIdleConnections()
	if err = p.proxy.Stop(); err != nil {
		return err
	}
	p.report.Account, err = p.proxy.Account(ctx)
	return err
}

// report returns a report without steps.
func (d *direct) report() Report {
	r := newReport(d.run.Name)
	r.Estimated = d.estimated
	return r
}

// unplayed returns the report of a run that costs the same with the proxy as without.
func (d *direct) unplayed(cfg config.Config) Report {
	p := &player{cfg: cfg, direct: d, report: d.report()}
	p.report.Short = true
	for i := range d.steps {
		s := &d.steps[i]
		p.charge(s, []received{{Request: &dialect.Request{Model: s.model}, usage: s.usage}}, nil)
		p.report.Named += d.sources.named(s.action, s.messages)
	}
	return p.report
}

// player replays one run.
type player struct {
	cfg      config.Config
	options  Options
	direct   *direct
	wire     wire
	upstream *upstream
	server   *http.Server
	serving  sync.WaitGroup
	proxy    *Proxy
	client   *http.Client
	report   Report
}

// newPlayer starts an upstream and the proxy in front of it.
func newPlayer(cfg config.Config, d *direct, o Options) (*player, error) {
	cfg.LLMs = maps.Clone(cfg.LLMs)
	for name, llm := range cfg.LLMs {
		llm.API = string(ProtocolChat)
		cfg.LLMs[name] = llm
	}
	p := &player{
		cfg: cfg, options: o, direct: d, wire: wires[d.run.Protocol],
		upstream: newUpstream(newCounter(cfg.Models, o.Encoders, d.known)),
		client:   &http.Client{Transport: &http.Transport{}}, report: d.report(),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start upstream: %w", err)
	}
	p.server = &http.Server{Handler: p.upstream, ReadHeaderTimeout: time.Minute}
	p.serving.Go(func() { _ = p.server.Serve(listener) }) // always http.ErrServerClosed: only close ends it
	p.proxy, err = StartProxy(cfg, "http://"+listener.Addr().String()+"/v1", o.Encoders)
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *player) close() (err error) {
	p.client.CloseIdleConnections()
	if p.proxy != nil {
		err = p.proxy.Close()
	}
	err = errors.Join(err, p.server.Close())
	p.serving.Wait()
	return err
}

// step makes one model call, and adds it to the report.
func (p *player) step(ctx context.Context, number int, s *sent) error {
	p.upstream.expect(s.call.Answer)
	header, err := p.post(ctx, p.direct.body(s.call))
	if err != nil {
		return err
	}
	forwarded, own := p.upstream.take()
	if len(forwarded) == 0 {
		return errors.New("the request did not reach upstream")
	}
	p.charge(s, forwarded, own)
	if cause := header.Get("X-Dewpoint-Condense-Failed"); cause != "" {
		p.report.Failed[cause]++
	}
	shown := forwarded[len(forwarded)-1].Messages
	named, missing := p.direct.sources.look(s.action, s.messages, shown, p.wire.plain)
	p.report.Named += named
	p.report.Missing += missing
	step := p.describe(number, header, s, shown)
	p.report.add(step.Condensations)
	if p.options.Each != nil {
		p.options.Each(step)
	}
	if p.options.look != nil {
		return p.options.look(ctx, p.seen(step, s, shown))
	}
	return nil
}

// seen returns a step as the model saw it.
func (p *player) seen(step Step, s *sent, shown []session.Message) Seen {
	contents := func(messages []session.Message) (all []session.Content) {
		for i := range messages {
			if c, err := p.wire.dialect().Read(messages[i].Raw); err == nil { // upstream has read them
				all = append(all, c)
			}
		}
		return all
	}
	return Seen{
		Run: &p.direct.run, Step: step.Number, Condensed: step.TokensForwarded < step.Tokens,
		Shown: func() []session.Content { return contents(shown) },
		Sent: func() []session.Content {
			r, err := p.wire.dialect().Split("", p.direct.body(s.call))
			if err != nil {
				return nil
			}
			return contents(r.Messages)
		},
	}
}

// charge adds the usage of a step to the report: without the proxy, through the proxy, and by the proxy's own calls.
func (p *player) charge(s *sent, forwarded, own []received) {
	r := &p.report
	r.Steps++
	r.Messages = max(r.Messages, len(s.call.Messages))
	p.bill(&r.Without, s.model, s.usage)
	if recorded := s.call.Recorded.Prompt; recorded > 0 {
		r.Recorded += recorded
		r.Counted += s.usage.Input
	}
	for _, f := range forwarded {
		p.bill(&r.With, f.Model, f.usage)
	}
	for _, call := range own {
		p.bill(&r.Own, call.Model, call.usage)
	}
	if info, _ := p.cfg.ModelFor(s.model); s.usage.Input > info.ContextWindow {
		r.TooLong++
	}
}

// describe returns a step as the headers of its response describe it, with the record among the forwarded messages.
func (p *player) describe(number int, header http.Header, sent *sent, forwarded []session.Message) Step {
	s := Step{Number: number}
	s.Events, s.EventsForwarded = pair(header.Get("X-Dewpoint-Events"))
	s.Tokens, s.TokensForwarded = pair(header.Get("X-Dewpoint-Tokens"))
	s.Condensations = condensations(s, header.Values("X-Dewpoint-Condensed"))
	if n := len(s.Condensations); n > 0 {
		s.Condensations[n-1].Record = p.recordIn(sent, forwarded)
	}
	return s
}

// bill adds a call of a model to a bill.
func (p *player) bill(b *Bill, name string, u model.Usage) {
	info, _ := p.cfg.ModelFor(name)
	b.add(name, u, info.Price)
}

// post sends a request to the proxy, and returns the header of the response.
func (p *player) post(ctx context.Context, body []byte) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.proxy.URL()+p.wire.path(), bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("new request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01") // ignored in other protocols
	req.Header.Set(agentHeader, "1")
	resp, err := p.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("send: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the proxy answered %s: %s", resp.Status, answer)
	}
	return resp.Header, nil
}

// recordIn returns the text of the record among the forwarded messages: the message that the agent did not send. It returns "" if there is
// none.
func (p *player) recordIn(sent *sent, forwarded []session.Message) string {
	d := p.wire.dialect()
	for _, m := range forwarded {
		if at, ok := p.direct.sources.same[string(p.wire.plain(m.Raw))]; ok && at < sent.messages {
			continue
		}
		content, err := d.Read(m.Raw)
		if _, ok := recordOf(content.Text); err == nil && ok {
			return content.Text
		}
	}
	return ""
}

// condensations parses the headers that describe the condensations of a step, such as "events; 23; 17331; summary".
func condensations(s Step, headers []string) []Condensation {
	all := make([]Condensation, len(headers))
	after := s.TokensForwarded
	for i := len(headers) - 1; i >= 0; i-- {
		parts := append(strings.Split(headers[i], "; "), "", "", "", "")
		events, _ := strconv.Atoi(parts[1])
		removed, _ := strconv.Atoi(parts[2])
		all[i] = Condensation{
			Step: s.Number, Reason: parts[0], Events: events, TokensBefore: after + removed, TokensAfter: after, Replacement: parts[3],
		}
		after += removed
	}
	return all
}

// pair reads the two numbers of a header, such as "42;19". They are 0 if the header is missing.
func pair(header string) (a, b int) {
	first, second, _ := strings.Cut(header, ";")
	a, _ = strconv.Atoi(first)
	b, _ = strconv.Atoi(second)
	return a, b
}
