package judge

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Options say how runs are played.
type Options struct {
	URL      func(step int) string // base URL of the proxy for the step, e.g. http://127.0.0.1:8080/v1
	Upstream *fakeupstream.Server  // the proxy's upstream, which only this player may use
	Model    string
	Stream   bool
	Headers  http.Header
	Again    int             // repeat the request of every Nth step; 0: never
	Before   func(step int)  // called before each step
	Each     func(step Step) // called after each step
	Client   *http.Client    // nil: one without limits
	Sealed   bool            // answers come with sealed reasoning, which the agent sends back
	Window   int             // the upstream's context window, above which it refuses requests; 0: unlimited
	Expect   Expectations    // what to check
	Protocol string          // wire protocol: chat (the default), messages, responses or gemini
	Habits   Habits
}

// Habits are optional behaviours of the agent.
type Habits struct {
	Manual bool // thinking is enabled in the request
	Clock  bool // the first message has a different time at each step
}

// Step is one model call, as seen by the agent and by the upstream.
type Step struct {
	Number    int
	Events    int    // messages sent
	Forwarded int    // messages forwarded
	Condensed string // the proxy's header about condensations, empty if there was none
	Tokens    string // before;after, in the proxy's count
	Prompt    int    // tokens forwarded, in upstream's count
	Cached    int    // part of Prompt that came from upstream's cache
	Sent      int    // tokens sent, in upstream's count
	Own       int    // tokens of the summariser calls in this step
	OwnCalls  int

	forwarded []json.RawMessage
	condensed []string // the proxy's header for each condensation
	thread    string
}

// Report sums up a run.
type Report struct {
	Name       string
	Steps      int
	Messages   int // in the longest history
	Sent       int // tokens sent by the agent
	Forwarded  int
	Cached     int
	Own        int // tokens used by the summariser
	OwnCalls   int
	Condensed  int // steps that condensed
	Violations []error

	Condensations int
	Overflows     int    // requests that upstream refused for their length before it accepted one
	Thread        string // the run's thread, from the proxy's headers

	last []session.Message // the messages of the last request
}

// Play plays a run and judges it.
func Play(ctx context.Context, run replay.Run, o Options) (Report, error) {
	o.Client = cmp.Or(o.Client, &http.Client{})
	wire, ok := protocols[o.Protocol]
	if !ok {
		return Report{}, fmt.Errorf("play run: unknown protocol %q: want chat, messages, responses or gemini", o.Protocol)
	}
	p := &player{
		o: o, protocol: wire, run: run, judge: &judge{expect: o.Expect},
		sealed: map[int]json.RawMessage{}, report: Report{Name: run.Name},
	}
	if earlier := o.Upstream.Requests(); len(earlier) > 0 {
		p.seen = earlier[len(earlier)-1].Index + 1
	}
	for i, c := range run.Calls() {
		if err := p.step(ctx, i, c); err != nil {
			return p.report, fmt.Errorf("%s: step %d: %w", run.Name, i, err)
		}
	}
	p.judge.finish(p.report)
	p.report.Violations = p.judge.violations
	return p.report, nil
}

type player struct {
	o        Options
	protocol protocol
	run      replay.Run
	judge    *judge
	seen     int                     // index of the upstream's next request
	sealed   map[int]json.RawMessage // answers with sealed reasoning, by their index in the run
	report   Report
}

func (p *player) step(ctx context.Context, i int, c replay.Call) error {
	if p.o.Before != nil {
		p.o.Before(i)
	}
	c.Messages = slices.Clone(c.Messages)
	for at, m := range p.sealed {
		c.Messages[at] = m
	}
	if p.o.Habits.Clock {
		c.Messages[1] = marshal(map[string]string{"role": "user", "content": fmt.Sprintf("It is %d minutes past twelve. Go on.", i)})
	}
	step, err := p.exchange(ctx, i, c, false)
	if err != nil {
		return err
	}
	p.add(step)
	if p.o.Each != nil {
		p.o.Each(step)
	}
	if p.o.Again > 0 && i%p.o.Again == p.o.Again-1 {
		_, err = p.exchange(ctx, i, c, true)
	}
	return err
}

// exchange sends one request and passes the result to the judge.
func (p *player) exchange(ctx context.Context, i int, c replay.Call, again bool) (Step, error) {
	body := p.protocol.Body(p, c.Messages)
	p.o.Upstream.Script(fakeupstream.Answer{Message: c.Answer})
	got, header, err := p.post(ctx, i, body)
	if err != nil {
		return Step{}, err
	}
	if p.o.Sealed && !again {
		if p.sealed[len(c.Messages)], err = withReasoning(c.Answer, got); err != nil {
			return Step{}, err
		}
	}
	own, main, err := p.received()
	if err != nil {
		return Step{}, err
	}
	step := Step{
		Number: i, Events: len(c.Messages), Forwarded: len(main.Messages), Condensed: header.Get("X-Dewpoint-Condensed"),
		Tokens: header.Get("X-Dewpoint-Tokens"), Prompt: main.PromptTokens, Cached: main.CachedTokens,
		Sent: p.o.Upstream.CountPrompt(body), OwnCalls: len(own), forwarded: main.Messages,
		condensed: header.Values("X-Dewpoint-Condensed"), thread: header.Get("X-Dewpoint-Thread"),
	}
	for _, r := range own {
		step.Own += r.PromptTokens
	}
	sent, err := p.protocol.Dialect().Split("", body)
	if err != nil {
		return Step{}, fmt.Errorf("split the request: %w", err)
	}
	p.report.last = sent.Messages
	o := observed{
		Step: step, header: header, sent: body, messages: c.Messages, main: main, own: own, got: got, want: c.Answer,
		again: again,
	}
	if err := p.translate(&o); err != nil {
		return Step{}, err
	}
	p.judge.step(o)
	return o.Step, nil
}

func (p *player) add(s Step) {
	r := &p.report
	r.Add(Report{Steps: 1, Sent: s.Sent, Forwarded: s.Prompt, Cached: s.Cached, Own: s.Own, OwnCalls: s.OwnCalls})
	r.Messages = s.Events
	if s.Condensed != "" {
		r.Condensed++
	}
	r.Condensations += len(s.condensed)
	r.Thread = s.thread
}

// translate translates an exchange in any protocol to Chat Completions for the judge.
func (p *player) translate(o *observed) (err error) {
	if _, ok := p.protocol.(completions); ok {
		return nil
	}
	d := p.protocol.Dialect()
	untouched := bytes.Equal(o.sent, o.main.Body)
	if o.want, err = lastAnswer(d, p.protocol.Body(p, []json.RawMessage{o.want})); err != nil {
		return err
	}
	if o.messages, err = toChat(d, o.sent); err != nil {
		return err
	}
	if o.forwarded, err = toChat(d, o.main.Body, o.main.Dropped...); err != nil {
		return err
	}
	o.Events, o.Forwarded, o.main.Messages = len(o.messages), len(o.forwarded), o.forwarded
	o.sent, o.main.Body = completions{}.Body(p, o.messages), completions{}.Body(p, o.forwarded)
	if bytes.Equal(o.sent, o.main.Body) && !untouched {
		o.main.Body = append(o.main.Body, ' ') // although the translations are equal, the bodies differ
	}
	return nil
}

// stepHeader marks the requests of a player. The proxy forwards the header, and its own calls do not have it.
const stepHeader = "X-Replay"

// IsOwnCall reports whether a request that reached upstream while a run was played is a call of the proxy itself, such as a summary.
func IsOwnCall(r *fakeupstream.Request) bool { return r.Header.Get(stepHeader) == "" }

// post sends a request and returns the assistant message of the answer.
func (p *player) post(ctx context.Context, i int, body []byte) (json.RawMessage, http.Header, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.o.URL(i)+p.protocol.Path(p), bytes.NewReader(body))
	if err != nil {
		return nil, nil, fmt.Errorf("new request: %w", err)
	}
	maps.Copy(req.Header, p.o.Headers)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(stepHeader, "1")
	req.Header.Set("Anthropic-Version", "2023-06-01") // ignored in other protocols
	resp, err := p.o.Client.Do(req)
	if err != nil {
		return nil, nil, fmt.Errorf("send: %w", err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, nil, fmt.Errorf("answer: %s: %s", resp.Status, answer)
	}
	got, err := p.protocol.Answer(answer, p.o.Stream)
	return got, resp.Header, err
}

// received returns the requests that reached upstream since the last step: the summariser's and the agent's.
func (p *player) received() (own []fakeupstream.Request, main fakeupstream.Request, err error) {
	found, overflows := false, 0
	for _, r := range p.o.Upstream.Requests() {
		if r.Index < p.seen {
			continue
		}
		p.seen = r.Index + 1
		if r.Summary {
			own = append(own, r)
			continue
		}
		if p.o.Window > 0 && r.Refused != nil && isOverflow(r.Refused) {
			if !IsOwnCall(&r) { // upstream does not mark refused requests as the summariser's
				overflows++
			}
			continue
		}
		if found {
			return nil, main, errors.New("more than one request reached upstream")
		}
		main, found = r, true
	}
	if !found {
		return nil, main, fmt.Errorf("no request reached upstream (%d overflowed)", overflows)
	}
	p.report.Overflows += overflows
	return own, main, nil
}

// isOverflow reports whether upstream refused a request as too long. Gemini's errors have no code of their own for that.
func isOverflow(e *fakeupstream.APIError) bool {
	return e.Code == "context_length_exceeded" || strings.Contains(e.Message, "input token count")
}

// Beginning returns a run up to the last answer within its first n messages.
func Beginning(r replay.Run, n int) replay.Run {
	if len(r.Messages) <= n {
		return r
	}
	for n > 2 && readMessage(r.Messages[n]).Role != "assistant" {
		n--
	}
	r.Messages, r.Final = r.Messages[:n], r.Messages[n]
	return r
}
