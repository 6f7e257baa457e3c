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

// Hidden configures the tools that the proxy offers to a tenant's models. Clients never see these tools, their calls or their results.
type Hidden struct {
	Request bool // the model can ask for a condensation
	Command bool // a user can, with a message that consists of Command
	Recall  bool // the model can look up what the view does not show
}

// Command is the message with which a user asks for a condensation. The model sees commandNote in its place, which is the same whether or not
// one was made: later requests must repeat it for the prompt cache.
const (
	Command     = "/condense"
	commandNote = "[The user asked for the older part of this conversation to be condensed. Acknowledge this in one short sentence, and wait.]"
)

// Names of the hidden tools.
const (
	requestTool = "request_condensation"
	recallTool  = "recall"
)

// toolsOf returns the tools that h enables.
func toolsOf(h Hidden) (all []dialect.Tool) {
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

// maxAnswers is how many answers upstream may give to one request while the model calls only hidden tools. The last time, none are
// offered.
const maxAnswers = 5

// hidden is a turn's state of hidden tools and their calls.
type hidden struct {
	tools    []dialect.Tool          // offered upstream
	asides   map[int]session.Instead // messages that replace earlier answers, by the position of the answer's last message
	commands bool                    // user messages may be commands

	tail      [][]byte // messages to append to the view: what the model said in this turn so far, with the results of its calls
	answers   int      // answers so far after which upstream was asked again
	answer    [][]byte // messages that replace the answer that the client gets
	withdrawn bool     // upstream refused the request with tools
}

// prepareHidden chooses the tools to offer, and reads the messages that replace earlier answers.
func (t *Turn) prepareHidden(ctx context.Context) error {
	if t.in.Tenant.Observe || t.in.Wish == WishOff {
		return nil
	}
	asides, err := t.registry.Asides(ctx, &t.place)
	if err != nil {
		return fmt.Errorf("read replaced answers: %w", err)
	}
	t.hidden.asides = asides
	all := toolsOf(t.in.Tenant.Hidden)
	if len(all) == 0 || t.purpose != session.PurposeMain || !t.in.Dialect.CanHideTools(t.in.Split) ||
		t.hasQuirk(refusesTools, t.lessons()) {
		return nil
	}
	t.hidden.tools = slices.DeleteFunc(all, func(tool dialect.Tool) bool {
		return t.clientHasTool([]byte(`"` + tool.Name + `"`))
	})
	return nil
}

// clientHasTool reports whether the client may have a tool with a quoted name, in its request or in an item of its history.
func (t *Turn) clientHasTool(quoted []byte) bool {
	return bytes.Contains(t.in.Split.Tools, quoted) ||
		slices.ContainsFunc(t.in.Split.Messages, func(m session.Message) bool { return m.Lasts && bytes.Contains(m.Raw, quoted) })
}

// obeyCommand sets the wish if the last message is a command.
func (t *Turn) obeyCommand() {
	t.hidden.commands = t.in.Tenant.Hidden.Command && !t.in.Tenant.Observe && t.in.Wish != WishOff
	if n := t.history.Len(); t.hidden.commands && n > 0 && t.isCommand(t.history.Message(n)) {
		t.in.Wish = WishNow
	}
}

// isCommand reports whether a message is a command. Long messages are not read.
func (t *Turn) isCommand(m *session.Message) bool {
	return m.Kind == session.User && len(m.Raw) < 1<<10 && bytes.Contains(m.Raw, []byte(Command)) &&
		strings.TrimSpace(t.text(m)) == Command
}

// Offers reports whether the request goes upstream with hidden tools.
func (t *Turn) Offers() bool {
	return len(t.hidden.tools) > 0 && !t.verbatim() && !t.hidden.withdrawn && t.hidden.answers < maxAnswers-1
}

// Strain returns an AnswerFilter that removes the calls of hidden tools from an answer to the request.
func (t *Turn) Strain(streamed bool) dialect.AnswerFilter {
	return t.in.Dialect.FilterAnswers(streamed, func(name string) bool {
		return slices.ContainsFunc(t.hidden.tools, func(tool dialect.Tool) bool { return tool.Name == name })
	})
}

// Withdraw makes the turn forward the request without hidden tools, because upstream refused it. It reports whether there were any.
func (t *Turn) Withdraw() bool {
	if !t.Offers() {
		return false
	}
	t.hidden.withdrawn, t.hidden.tail = true, nil
	return true
}

// Reply answers the hidden calls of an answer. It reports whether upstream must be asked again, because the answer holds nothing else.
func (t *Turn) Reply(ctx context.Context, said dialect.Said) (report Report, again bool) {
	h := &t.hidden
	if len(said.Calls) == 0 || said.Message == nil || !said.Complete {
		h.answer = nil
		if h.answers > 0 && said.Message != nil && said.Complete {
			h.answer = append(slices.Clip(h.tail), said.Message)
		}
		return report, false
	}
	again = said.OnlyHidden() && h.answers < maxAnswers-1
	condensed, results := false, make([][]byte, len(said.Calls))
	for i, call := range said.Calls {
		text := t.answerCall(ctx, call, again, &report)
		condensed = condensed || report.made()
		results[i] = t.in.Dialect.Result(call, text)
	}
	if condensed {
		said.Message = t.withoutReasoning(said.Message)
		for i := range h.tail {
			h.tail[i] = t.withoutReasoning(h.tail[i])
		}
	}
	all := append(append(slices.Clip(h.tail), said.Message), results...)
	if !again {
		h.answer = all
		return report, false
	}
	h.answers++
	if !condensed || len(said.Calls) > 1 { // a call that only asked for a condensation needs no reply once it is made
		h.tail = all
	}
	return report, true
}

// withoutReasoning returns a message without its sealed reasoning, or unchanged if it cannot be read.
func (t *Turn) withoutReasoning(raw []byte) []byte {
	if out, err := t.in.Dialect.StripReasoning(raw); err == nil {
		return out
	}
	return raw
}

// answerCall returns the result of a hidden call. A condensation that the call asks for is made at once if now is set.
func (t *Turn) answerCall(ctx context.Context, call session.Call, now bool, report *Report) string {
	if call.Name == recallTool {
		return t.lookUp(ctx, call.Arguments)
	}
	t.logRequest(ctx)
	if !now {
		return "The history will be condensed before your next step."
	}
	t.in.Wish = WishNow
	report.add(t.Condense(ctx))
	if report.made() {
		return "The history has been condensed."
	}
	return "The history was not condensed. Continue without asking again."
}

// logRequest logs that a condensation of the thread was requested. The request stays pending until one is made.
func (t *Turn) logRequest(ctx context.Context) {
	t.awaitLog()
	archive, can := t.store.(session.Archive)
	if !can || t.logged == nil || t.logged.place.Thread.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, t.engine.o.Limits.Store)
	defer cancel()
	_ = archive.Request(ctx, t.logged.place.Thread.ID, t.engine.o.Now()) // if it is lost, at worst the request is not met
}

// setAside logs the messages that replace the answer that the client got, if there are any.
func (t *Turn) setAside(ctx context.Context, echo []byte) error {
	if t.hidden.answer == nil || echo == nil {
		return nil
	}
	messages := splitMessage(t.in.Dialect, echo)
	if len(messages) == 0 {
		return errors.New("set answer aside: it has no messages")
	}
	if err := t.registry.SetAside(ctx, &t.logged.place, messages, t.hidden.answer); err != nil {
		return fmt.Errorf("set answer aside: %w", err)
	}
	return nil
}

// substitute replaces an item by the messages that upstream has to see in its place.
func (t *Turn) substitute(item *session.Item) {
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

// hideReplaced hides the earlier messages of an answer whose replacement is shown in the place of its last one.
func (t *Turn) hideReplaced(items []session.Item) {
	for i := range items {
		aside := t.hidden.asides[t.history.Pos(max(items[i].Index, 0))]
		switch {
		case items[i].Index >= 0 && aside.Messages != nil:
			for j := i - 1; j >= 0 && items[j].Index == items[j+1].Index-1 && t.history.Pos(items[j].Index) >= aside.From; j-- {
				items[j].Parts = [][]byte{}
			}
		case items[i].Parts != nil && len(items[i].Parts) == 0:
			items[i].Parts = nil // its replacement is not in view
		}
	}
}
