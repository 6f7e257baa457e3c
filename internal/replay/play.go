package replay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// DefaultModel is the model that requests ask for unless Options name one.
const DefaultModel = "gpt-4o"

// Options say how a run is replayed. The zero value is ready to use.
type Options struct {
	Model    string             // empty: DefaultModel
	Encoders *tokenize.Registry // shared by several replays; nil: the replay has its own
	Each     func(Step)         // called after each step, in order; nil: not called
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
	p, err := newPlayer(*cfg, run, o)
	if err != nil {
		return Report{}, fmt.Errorf("replay %s: %w", run.Name, err)
	}
	for i, c := range run.Calls() {
		if err = p.step(ctx, i+1, c); err != nil {
			err = fmt.Errorf("step %d: %w", i+1, err)
			break
		}
	}
	if err = errors.Join(err, p.close()); err != nil {
		return Report{}, fmt.Errorf("replay %s: %w", run.Name, err)
	}
	return p.report, nil
}

// player replays one run.
type player struct {
	cfg      config.Config
	options  Options
	run      Run
	upstream *upstream
	without  *meter // measures what the agent sends as if it went to upstream directly
	server   *http.Server
	serving  sync.WaitGroup
	proxy    *Proxy
	client   *http.Client
	report   Report
}

// newPlayer starts an upstream and the proxy in front of it.
func newPlayer(cfg config.Config, run Run, o Options) (*player, error) {
	o.Model, o.Encoders = cmp.Or(o.Model, DefaultModel), cmp.Or(o.Encoders, tokenize.New())
	cfg.LLMs = maps.Clone(cfg.LLMs)
	for name, llm := range cfg.LLMs {
		llm.API = config.APIChat // the only protocol of the replay's upstream
		cfg.LLMs[name] = llm
	}
	counter := newCounter(&cfg, o.Encoders)
	p := &player{
		cfg: cfg, options: o, run: run, upstream: &upstream{meter: newMeter(counter)}, without: newMeter(counter),
		client: &http.Client{Transport: &http.Transport{}}, report: newReport(run.Name),
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
func (p *player) step(ctx context.Context, number int, c Call) error {
	body := p.body(c.Messages)
	_, direct, err := p.without.exchange(body, c.Answer)
	if err != nil {
		return err
	}
	p.upstream.expect(c.Answer)
	header, err := p.post(ctx, body)
	if err != nil {
		return err
	}
	forwarded, own := p.upstream.take()
	if len(forwarded) == 0 {
		return errors.New("the request did not reach upstream")
	}
	p.account(c, direct, forwarded, own)
	if cause := header.Get("X-Dewpoint-Condense-Failed"); cause != "" {
		p.report.Failed[cause]++
	}
	s := p.describe(number, header, forwarded[len(forwarded)-1].Messages, c.Messages)
	p.report.Condensations += len(s.Condensations)
	p.report.Records = append(p.report.Records, s.Condensations...)
	if p.options.Each != nil {
		p.options.Each(s)
	}
	return nil
}

// account adds the usage of a step to the report: without the proxy, through the proxy, and by the proxy's own calls.
func (p *player) account(c Call, direct model.Usage, forwarded, own []received) {
	r := &p.report
	r.Steps++
	r.Messages = max(r.Messages, len(c.Messages))
	p.bill(&r.Without, p.options.Model, direct)
	for _, f := range forwarded {
		p.bill(&r.With, f.Model, f.usage)
	}
	for _, call := range own {
		p.bill(&r.Own, call.Model, call.usage)
	}
	if info, _ := p.cfg.ModelFor(p.options.Model); direct.Input > info.ContextWindow {
		r.TooLong++
	}
}

// describe returns a step as the headers of its response describe it, with the record among the forwarded messages.
func (p *player) describe(number int, header http.Header, forwarded []session.Message, sent []json.RawMessage) Step {
	s := Step{Number: number}
	s.Events, s.EventsForwarded = pair(header.Get("X-Dewpoint-Events"))
	s.Tokens, s.TokensForwarded = pair(header.Get("X-Dewpoint-Tokens"))
	s.Condensations = condensations(s, header.Values("X-Dewpoint-Condensed"))
	if n := len(s.Condensations); n > 0 {
		s.Condensations[n-1].Record = p.recordIn(forwarded, sent)
	}
	return s
}

// bill adds a call of a model to a bill.
func (p *player) bill(b *Bill, name string, u model.Usage) {
	info, _ := p.cfg.ModelFor(name)
	b.add(name, u, info.Price)
}

// body returns the request for a history.
func (p *player) body(messages []json.RawMessage) []byte {
	body := map[string]any{"model": p.options.Model, "messages": messages}
	if len(p.run.Tools) > 0 {
		body["tools"] = p.run.Tools
	}
	return assemble.Encode(body)
}

// post sends a request to the proxy, and returns the header of the response.
func (p *player) post(ctx context.Context, body []byte) (http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.proxy.URL()+chat.Path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("new request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
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
func (p *player) recordIn(forwarded []session.Message, sent []json.RawMessage) string {
	known := map[string]bool{}
	for _, m := range sent {
		known[string(m)] = true
	}
	for _, m := range forwarded {
		if known[string(m.Raw)] {
			continue
		}
		content, err := p.without.dialect.Read(m.Raw)
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
