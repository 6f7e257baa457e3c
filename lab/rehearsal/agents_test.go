package rehearsal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

const (
	agentModel = "gpt-4o"
	// began is how many steps an agent has done when it comes: a little more, and its history is condensed.
	began = 115
	// thinking is how long an agent does other things between two steps.
	thinking = 100 * time.Millisecond
	// pulse is how often one piece of a stream goes on, of all streams together.
	pulse = 2 * time.Millisecond
)

// desk is upstream's side: it answers each agent with its next step, and keeps what it was sent of each.
type desk struct {
	mu     sync.Mutex
	agents map[string]*agent

	drip chan struct{}
	done chan struct{}
	work sync.WaitGroup
}

func newDesk() *desk {
	d := &desk{agents: map[string]*agent{}, drip: make(chan struct{}), done: make(chan struct{})}
	d.work.Go(func() {
		tick := time.NewTicker(pulse)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-d.done:
				return
			}
			select {
			case d.drip <- struct{}{}:
			case <-d.done:
				return
			}
		}
	})
	return d
}

func (d *desk) close() {
	close(d.done)
	d.work.Wait()
}

// named finds the agents whose words are in a text.
var named = regexp.MustCompile(`agent-[a-z]+-[0-9]+`)

// reply answers an agent, and keeps the view that was forwarded for it.
func (d *desk) reply(r *fakeupstream.Request) fakeupstream.Answer {
	names := map[string]bool{}
	for _, name := range named.FindAllString(string(bytes.Join(raws(r.Messages), nil)), -1) {
		names[name] = true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	a := d.agents[named.FindString(string(r.Messages[1]))]
	if a == nil {
		return fakeupstream.Answer{Content: "Who are you?"}
	}
	a.view, a.strangers = r.Messages, len(names)-1
	return fakeupstream.Answer{Message: a.next, Fault: a.fault}
}

func raws(messages []json.RawMessage) [][]byte {
	all := make([][]byte, len(messages))
	for i, m := range messages {
		all[i] = m
	}
	return all
}

// agent is a client with one conversation, that grows by a step at a time.
type agent struct {
	name    string
	service *service
	desk    *desk
	client  http.Client
	stream  bool

	messages []json.RawMessage
	steps    int
	session  string
	thread   string
	last     []json.RawMessage // the view of the step before

	// Under the desk's lock.
	next      json.RawMessage // what upstream answers
	fault     fakeupstream.Fault
	view      []json.RawMessage // that upstream was sent last
	strangers int               // of whom there is something in it

	mu        sync.Mutex
	served    map[*replica]int // steps
	condensed map[*replica]int // of them with a condensed view
	times     int              // that its history was condensed
	err       error
}

// newAgent makes an agent that has done some steps before it came.
func newAgent(name string, s *service, d *desk, stream, keeps bool) *agent {
	a := &agent{
		name: name, service: s, desk: d, stream: stream,
		client: http.Client{Transport: &http.Transport{DisableKeepAlives: !keeps}},
		served: map[*replica]int{}, condensed: map[*replica]int{},
		messages: []json.RawMessage{
			written(map[string]any{"role": "system", "content": "You are a coding agent. Work in small steps with the tools you have."}),
			written(map[string]any{"role": "user", "content": "You are " + name + ". Find out why the nightly job fails, and mend it without changing the public API."}),
		},
	}
	for range began {
		a.grow()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agents[name] = a
	return a
}

// grow adds a call of a tool and its result.
func (a *agent) grow() {
	a.messages = append(a.messages, a.call(), written(map[string]any{
		"role": "tool", "tool_call_id": a.id(),
		"content": strings.Repeat(fmt.Sprintf("%s read line %d of the log: the job stopped at pkg/jobs/step%d.go:%d\n", a.name, a.steps, a.steps, 10+a.steps), 5),
	}))
	a.steps++
}

func (a *agent) id() string {
	return fmt.Sprintf("call_%s_%06d", strings.ReplaceAll(a.name, "-", "_"), a.steps)
}

// call is the step that comes next.
func (a *agent) call() json.RawMessage {
	return written(map[string]any{
		"role": "assistant", "content": fmt.Sprintf("Step %d of %s: I look at the log where it broke off last time.", a.steps, a.name),
		"tool_calls": []any{map[string]any{"id": a.id(), "type": "function", "function": map[string]any{
			"name": "run", "arguments": fmt.Sprintf(`{"command":"sed -n %d,%dp job.log"}`, a.steps, a.steps+5),
		}}},
	})
}

// work goes on until ctx ends, or something fails.
func (a *agent) work(ctx context.Context) {
	defer a.client.CloseIdleConnections()
	for think(ctx) {
		if err := a.step(ctx, fakeupstream.Fault{Drip: a.desk.drip}); err != nil {
			a.mu.Lock()
			a.err = fmt.Errorf("%s, step %d: %w", a.name, a.steps, err)
			a.mu.Unlock()
			return
		}
	}
}

// think is an agent's pause between two steps. False: it is over.
func think(ctx context.Context) bool {
	pause := time.NewTimer(thinking)
	defer pause.Stop()
	select {
	case <-pause.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// step sends the whole history and reads the whole answer. What was begun is brought to its end.
func (a *agent) step(ctx context.Context, fault fakeupstream.Fault) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	resp, by, err := a.begin(ctx, fault)
	if err != nil {
		return err
	}
	return a.finish(resp, by)
}

// begin sends the whole history, and gives the answer that begins and the replica that it comes from.
func (a *agent) begin(ctx context.Context, fault fakeupstream.Fault) (*http.Response, *replica, error) {
	if !a.stream {
		fault = fakeupstream.Fault{}
	}
	a.desk.mu.Lock()
	a.next, a.fault, a.view = a.call(), fault, nil
	a.desk.mu.Unlock()
	var local string
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(c httptrace.GotConnInfo) { local = c.Conn.LocalAddr().String() }})
	body := written(map[string]any{"model": agentModel, "stream": a.stream, "messages": a.messages, "tools": tools()})
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.service.url+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+clientKey)
	resp, err := a.client.Do(req)
	return resp, a.service.served(local), err
}

// finish reads the answer to its end, checks it, and makes the step a part of the history.
func (a *agent) finish(resp *http.Response, by *replica) error {
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("the answer broke: %w", err)
	}
	if resp.StatusCode != http.StatusOK || a.stream && !bytes.HasSuffix(answer, []byte("data: [DONE]\n\n")) {
		return fmt.Errorf("%s: %.300s", resp.Status, answer)
	}
	if err := a.judge(resp.Header, by); err != nil {
		return err
	}
	a.grow()
	return nil
}

// judge holds that the conversation went on: in the same session and thread, with the view of the step before and what is
// new, unless it was condensed in this very step; and that no one else's words are in it.
func (a *agent) judge(header http.Header, by *replica) error {
	a.desk.mu.Lock()
	view, strangers := a.view, a.strangers
	a.desk.mu.Unlock()
	session, thread := header.Get("X-Dewpoint-Session"), header.Get("X-Dewpoint-Thread")
	condensed := header.Get("X-Dewpoint-Condensed") != ""
	switch {
	case session == "" || thread == "":
		return errors.New("it was not recognised")
	case a.session != "" && (session != a.session || thread != a.thread):
		return fmt.Errorf("it is in session %s, thread %s; it began in session %s, thread %s", session, thread, a.session, a.thread)
	case strangers != 0:
		return fmt.Errorf("words of %d others went upstream with it", strangers)
	case a.last != nil && !condensed && !extends(view, a.last):
		return fmt.Errorf("the view of %d messages is not that of the step before, of %d, and what is new", len(view), len(a.last))
	}
	a.session, a.thread, a.last = session, thread, view
	a.mu.Lock()
	defer a.mu.Unlock()
	a.served[by]++
	if len(view) < len(a.messages) {
		a.condensed[by]++
	}
	if condensed {
		a.times++
	}
	return nil
}

func extends(view, last []json.RawMessage) bool {
	return len(view) > len(last) && slices.EqualFunc(view[:len(last)], last, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// tally tells what an agent has seen of some replicas: steps, those with a condensed view, condensations, and its failure.
func (a *agent) tally(of []*replica) (steps, condensed, times int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range of {
		steps += a.served[r]
		condensed += a.condensed[r]
	}
	return steps, condensed, a.times, a.err
}

func tools() json.RawMessage {
	return json.RawMessage(`[{"type":"function","function":{"name":"run","parameters":{"type":"object","properties":{"command":{"type":"string"}}}}}]`)
}

func written(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // only strings, lists and maps of them come here
	}
	return raw
}
