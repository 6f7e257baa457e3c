package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Hidden says what a tenant's models can ask the proxy for. Clients never see those tools, their calls, or their results.
type Hidden struct {
	Request bool // the model can have the history condensed
	Command bool // a user can, by a message that says nothing but Command
	Recall  bool // the model can look up what the view does not show
}

// Command is the message by which a user has the history condensed, and what the model reads in its place.
const (
	Command     = "/condense"
	commandNote = "[The user had the older part of this conversation condensed. Say in one short sentence that it was done, and wait.]"
)

// The tools: one asks for a condensation, the other for what is hidden.
const (
	requestTool = "request_condensation"
	recallTool  = "recall"
)

func tools(h Hidden) (all []dialect.Tool) {
	if h.Request {
		all = append(all, dialect.Tool{
			Name: requestTool,
			Description: "Has the older part of this conversation condensed into a short record. Call it when much of what was said and " +
				"read is no longer needed, best between two tasks. The newest messages and what the user asked for stay.",
			Parameters: `{"type":"object","properties":{}}`,
		})
	}
	if h.Recall {
		all = append(all, dialect.Tool{
			Name: recallTool,
			Description: "Looks up what was said or read earlier in this conversation and is not shown any more, or only in part. Its messages " +
				"are events, numbered from 1. A query gives the lines that say it, an exact name, path or error first; an event's id, or a range, " +
				"gives whole events. Use it before you do again what was done already.",
			Parameters: `{"type":"object","properties":{"query":{"type":"string","description":"a term exactly as it was written, or words"},` +
				`"event":{"type":"string","description":"id of the event to show, as 17 or 17@1, or a range, as 17-20"}}}`,
		})
	}
	return all
}

// mostAnswers is how many times upstream is asked for one request because the model called nothing but hidden tools. The last time it
// is offered none.
const mostAnswers = 5

// hidden is a turn's part in calls of the proxy's own tools.
type hidden struct {
	tools    []dialect.Tool          // that are offered
	asides   map[int]session.Instead // of earlier answers, by the position of their last message
	commands bool                    // some message of the user's is a command

	tail     [][]byte // what the model said in this turn so far, with the results of its calls: it stands behind the view
	answers  int      // that were not the last one
	answer   [][]byte // what stands in the place of the answer that the client gets
	withdraw bool     // upstream refused a request with tools
}

// prepareHidden sees which tools are offered, and what stands in the place of earlier answers.
func (t *Turn) prepareHidden(ctx context.Context) error {
	if t.in.Tenant.Observe || t.in.Wish == WishOff {
		return nil
	}
	var err error
	if t.hidden.asides, err = t.registry.Asides(ctx, &t.place); err != nil {
		return fmt.Errorf("begin turn: %w", err)
	}
	if all := tools(t.in.Tenant.Hidden); len(all) > 0 && t.purpose == session.PurposeMain && t.in.Dialect.Hides(t.in.Split) &&
		!t.engine.memory.since(t.engine.memory.toolless, t.counter.source, t.engine.o.Now()) {
		t.hidden.tools = slices.DeleteFunc(all, func(tool dialect.Tool) bool {
			return bytes.Contains(t.in.Split.Tools, []byte(`"`+tool.Name+`"`)) // the client has one of that name
		})
	}
	return nil
}

// obeyCommand takes a message that is a command as the wish that it is.
func (t *Turn) obeyCommand() {
	if !t.in.Tenant.Hidden.Command || t.in.Tenant.Observe || t.in.Wish == WishOff {
		return
	}
	for p := 1; p <= t.history.Len(); p++ {
		if !t.isCommand(t.history.Message(p)) {
			continue
		}
		if t.hidden.commands = true; p == t.history.Len() {
			t.in.Wish = WishNow
		}
	}
}

// isCommand reports whether a message is a command. Those are short.
func (t *Turn) isCommand(m *session.Message) bool {
	return m.Kind == session.User && len(m.Raw) < 1<<10 && bytes.Contains(m.Raw, []byte(Command)) &&
		strings.TrimSpace(t.text(m)) == Command
}

// Offers reports whether the request goes upstream with tools of the proxy's own.
func (t *Turn) Offers() bool {
	return len(t.hidden.tools) > 0 && !t.unchanged() && !t.hidden.withdraw && t.hidden.answers < mostAnswers-1
}

// Strain takes the calls of hidden tools out of the answers to the request.
func (t *Turn) Strain(streamed bool) dialect.Strainer {
	return t.in.Dialect.Strain(streamed, func(name string) bool {
		return slices.ContainsFunc(t.hidden.tools, func(tool dialect.Tool) bool { return tool.Name == name })
	})
}

// Withdraw has the request forwarded without tools of the proxy's own, because upstream refused it. It reports whether it had any.
func (t *Turn) Withdraw() bool {
	if !t.Offers() {
		return false
	}
	t.hidden.withdraw, t.hidden.tail = true, nil
	return true
}

// Reply answers the hidden calls of an answer. It reports whether upstream is to be asked again, since nothing is left in the answer for
// the client to answer.
func (t *Turn) Reply(ctx context.Context, said dialect.Said) (report Report, again bool) {
	h := &t.hidden
	if len(said.Calls) == 0 || said.Message == nil || !said.Whole {
		h.answer = nil
		if h.answers > 0 && said.Message != nil && said.Whole {
			h.answer = append(slices.Clip(h.tail), said.Message)
		}
		return report, false
	}
	alone := said.Alone() && h.answers < mostAnswers-1
	condensed, results := false, make([][]byte, len(said.Calls))
	for i, call := range said.Calls {
		text := t.call(ctx, call, alone, &report)
		condensed = condensed || report.made()
		results[i] = t.in.Dialect.Result(call, text)
	}
	if condensed {
		said.Message = t.unbound(said.Message)
		for i := range h.tail {
			h.tail[i] = t.unbound(h.tail[i])
		}
	}
	all := append(append(slices.Clip(h.tail), said.Message), results...)
	if !alone {
		h.answer = all
		return report, false
	}
	h.answers++
	if !condensed || len(said.Calls) > 1 { // a request that was met is over
		h.tail = all
	}
	return report, true
}

// unbound gives a message without reasoning that is bound to what stood before it. What cannot be read stays as it is.
func (t *Turn) unbound(raw []byte) []byte {
	if out, err := t.in.Dialect.StripReasoning(raw); err == nil {
		return out
	}
	return raw
}

// call gives the result of a hidden call.
func (t *Turn) call(ctx context.Context, call session.Call, now bool, report *Report) string {
	if call.Name == recallTool {
		return t.lookUp(ctx, call.Arguments)
	}
	t.request(ctx)
	if !now {
		return "The history will be condensed before your next step."
	}
	t.in.Wish = WishNow
	report.add(t.Condense(ctx))
	if report.made() {
		return "The history has been condensed."
	}
	return "The history is not condensed now: too little of it can go. Continue without asking again."
}

// request logs that a condensation of the thread was asked for. It stays pending until one is made.
func (t *Turn) request(ctx context.Context) {
	t.awaitLog()
	archive, can := t.store.(session.Archive)
	if !can || t.logged == nil || t.logged.place.Thread.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	_ = archive.Request(ctx, t.logged.place.Thread.ID, t.engine.o.Now()) // without it, the request is met all the same, or never
}

// setAside logs what stands in the place of the answer that the client got, if that is not the answer itself.
func (t *Turn) setAside(ctx context.Context, echo []byte) error {
	if t.hidden.answer == nil || echo == nil {
		return nil
	}
	messages := splitAlone(t.in.Dialect, echo)
	if len(messages) == 0 {
		return errors.New("set answer aside: it is no message")
	}
	if err := t.registry.SetAside(ctx, &t.logged.place, messages, t.hidden.answer); err != nil {
		return fmt.Errorf("set answer aside: %w", err)
	}
	return nil
}

// restore shows what stands in the place of an item upstream.
func (t *Turn) restore(item *session.Item) {
	if item.Index < 0 {
		return
	}
	item.Parts = t.hidden.asides[t.history.Pos(item.Index)].Messages
	if t.hidden.commands && t.isCommand(&t.in.Split.Messages[item.Index]) {
		if raw, err := t.in.Dialect.Rewrite(item.Raw, commandNote); err == nil {
			item.Raw = raw
		}
	}
}

// standFor shows nothing in the place of an answer's messages before its last one, if the aside of that stands for them all.
func (t *Turn) standFor(items []session.Item) {
	if len(t.hidden.asides) == 0 {
		return
	}
	for i := range items {
		aside := t.hidden.asides[t.history.Pos(max(items[i].Index, 0))]
		switch {
		case items[i].Index >= 0 && aside.Messages != nil:
			for j := i - 1; j >= 0 && items[j].Index == items[j+1].Index-1 && t.history.Pos(items[j].Index) >= aside.From; j-- {
				items[j].Parts = [][]byte{}
			}
		case items[i].Parts != nil && len(items[i].Parts) == 0:
			items[i].Parts = nil // what stood for it is hidden
		}
	}
}
