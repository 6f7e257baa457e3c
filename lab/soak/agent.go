package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// agent leads one family: it decides what is said next, by the models too. What it decides follows from the seed alone.
type agent struct {
	*family
	caller *caller
	ending bool // nothing new is begun
}

// overtime is how many times as long as planned agents may take for their turns, on a busy machine.
const overtime = 3

// run takes the turns, spread over the time; long after that, or when the context ends, it takes no more.
func (a *agent) run(ctx context.Context, steps int, total time.Duration) error {
	began := time.Now()
	jitter := rand.New(rand.NewPCG(uint64(a.number), 7))
	l := a.lines[0]
	for step := range steps {
		at := (float64(step) + jitter.Float64()) / float64(steps)
		if !sleep(ctx, time.Until(began.Add(time.Duration(at*float64(total))))) || time.Since(began) > overtime*total {
			return nil
		}
		l = a.move(l)
		if err := a.turn(ctx, l, false); err != nil {
			return err
		}
		if step%11 == 5 {
			if err := a.title(ctx, l); err != nil {
				return err
			}
		}
	}
	return nil
}

// The shares of turns of the user at which something other happens than that a line goes on.
const (
	forking  = 0.10
	editing  = 0.10
	renewing = 0.10 // of the system prompt
	leastFor = 9    // messages
)

// move may fork or edit the history, or change its system prompt, where a turn of the user's is next. It gives the line
// that goes on.
func (a *agent) move(l *line) *line {
	dice := a.author.chance.Float64()
	if len(l.pending) > 0 || len(l.messages) < leastFor {
		return l
	}
	switch {
	case dice < forking:
		return a.fork(l)
	case a.tenant.condenser.bound():
	case dice < forking+editing:
		return a.edit(l)
	case dice < forking+editing+renewing:
		l.messages[0] = text("system", "You are a careful agent, and it is another day. "+a.author.text(3)).raw()
	}
	return l
}

// fork goes back to an earlier turn of the user's.
func (a *agent) fork(l *line) *line {
	var turns []int
	for i := 3; i < len(l.messages); i++ {
		if parse(l.messages[i]).Role == "user" {
			turns = append(turns, i)
		}
	}
	if len(turns) == 0 {
		return l
	}
	return a.branch(l, lineFork, turns[a.author.chance.IntN(len(turns))])
}

// edit changes a message of the user's or a tool result, and keeps what comes after.
func (a *agent) edit(l *line) *line {
	n := a.branch(l, lineEdit, len(l.messages))
	at := 1 + a.author.chance.IntN(len(n.messages)-1)
	for parse(n.messages[at]).Role == "assistant" {
		at--
	}
	m := parse(n.messages[at])
	if m.Role == "tool" {
		n.edited = append(slices.Clip(n.edited), n.messages[at])
	}
	m.Content = ptr("Changed. " + a.author.text(2))
	n.messages[at] = m.raw()
	return n
}

// parse reads a message, which this package wrote, or upstream.
func parse(raw json.RawMessage) (m message) {
	_ = json.Unmarshal(raw, &m)
	return m
}

// turn adds what comes next, the results of the model's calls or a message of the user's, and calls the model.
func (a *agent) turn(ctx context.Context, l *line, last bool) error {
	if len(l.pending) == 0 {
		l.add(text("user", a.author.text(1+a.author.chance.IntN(4))))
	}
	for _, c := range l.pending {
		result, err := a.result(ctx, l, c)
		if err != nil {
			return err
		}
		l.add(message{Role: "tool", ToolCallID: c.ID, Content: &result})
	}
	if l.wish = ""; !a.ending {
		l.wish = a.wish()
	}
	return a.caller.call(ctx, l, a.reply(l, last))
}

// wish is what a request may ask of the proxy.
func (a *agent) wish() string {
	asking := 0.03
	if a.tenant.condenser.name == "conversation_window, on request" {
		asking = 0.2
	}
	switch dice := a.author.chance.Float64(); {
	case dice < asking:
		return "now"
	case dice < asking+0.01:
		return "off"
	}
	return ""
}

// result is what a tool gives: text, now and then a lot of it, or what a sub-agent came to.
func (a *agent) result(ctx context.Context, l *line, c call) (string, error) {
	if c.Function.Name == toolDelegate && !a.ending {
		return a.delegate(ctx, l, c)
	}
	if a.author.chance.IntN(6) == 0 {
		return a.author.text(20 + a.author.chance.IntN(30)), nil
	}
	return a.author.text(1 + a.author.chance.IntN(8)), nil
}

// delegate has a sub-agent do a task.
func (a *agent) delegate(ctx context.Context, l *line, c call) (string, error) {
	var task struct{ Text string }
	_ = json.Unmarshal([]byte(c.Function.Arguments), &task) // this package wrote it
	sub := a.newLine(lineSub)
	if a.key != "" && a.author.chance.IntN(2) == 0 {
		sub.metadata = ""
		sub.header.Del("X-Session-Id")
		sub.header.Set("X-Dewpoint-Session", fmt.Sprintf("%s-sub-%d-%d", a.key, a.number, sub.number))
		sub.header.Set("X-Parent-Session-Id", a.key)
	}
	sub.add(text("system", "You are a sub-agent. "+a.author.text(2)), text("user", task.Text))
	turns := 3 + a.author.chance.IntN(6)
	if err := a.caller.call(ctx, sub, a.reply(sub, false)); err != nil {
		return "", err
	}
	for i := range turns {
		if err := a.turn(ctx, sub, i == turns-1); err != nil {
			return "", err
		}
	}
	return sub.final, nil
}

// title asks for a title, as agents do during their work.
func (a *agent) title(ctx context.Context, l *line) error {
	side := a.newLine(lineSide)
	first := slices.IndexFunc(l.messages, func(raw json.RawMessage) bool { return parse(raw).Role == "user" })
	if first < 0 {
		return nil
	}
	side.add(text("system", "You are a title generator. You output only a title."),
		text("user", "Generate a title for this conversation:\n"+*parse(l.messages[first]).Content+"\n"+a.author.text(1)))
	return a.caller.call(ctx, side, a.reply(side, true))
}

// reply is what the model will answer: the same in every attempt, but for the ids of its calls and a word on which
// attempt it is.
type reply struct {
	text  string
	calls []call
}

func (a *agent) reply(l *line, last bool) reply {
	r := reply{text: a.author.text(2 + a.author.chance.IntN(4))}
	if last || l.kind == lineSide || a.author.chance.Float64() < 0.25 {
		return r
	}
	delegating := l.kind != lineSub && a.author.chance.IntN(16) == 0
	r.calls = a.author.calls(1+a.author.chance.IntN(3), "a", delegating)
	return r
}

// at is the reply in an attempt.
func (r reply) at(attempt int) (message, fakeupstream.Answer) {
	content := fmt.Sprintf("%s (answer %d)", r.text, attempt)
	m := message{Role: "assistant", Content: &content, ToolCalls: slices.Clone(r.calls)}
	for i := range m.ToolCalls {
		m.ToolCalls[i].ID += fmt.Sprint(attempt)
	}
	return m, fakeupstream.Answer{Message: m.raw()}
}
