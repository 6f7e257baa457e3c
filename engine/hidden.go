package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine/lessons"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Hidden configures the tools that the proxy offers to a tenant's models. Clients never see these tools, their calls or their results.
type Hidden struct {
	Request bool // the model can ask for a condensation
	Command bool // a user can, with a message that is Command, or begins with it and says what the record should hold
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

// maxCalls is how many hidden calls of one answer are answered. Each may search the whole history.
const maxCalls = 16

// maxAnswers is how many answers upstream may give to one request while the model calls only hidden tools. The last time, none are
// offered.
const maxAnswers = 5

// hidden is what a turn knows of hidden tools and their earlier calls.
type hidden struct {
	tools        []dialect.Tool              // to offer upstream
	replacements map[int]session.Replacement // messages that replace earlier answers, by the position of the answer's last message
	commands     bool                        // user messages may be commands
	asked        string                      // what the command that the request ends with asks of the record
}

// hiddenCalls are the calls of hidden tools that a request has led to.
type hiddenCalls struct {
	tail    [][]byte // messages to append to the view: what the model said in this turn so far, with the results of its calls
	answers int      // how many answers upstream has given so far after which it was asked again
	answer  [][]byte // messages that replace the answer that the client gets
}

// prepareHidden chooses the tools to offer, and reads the messages that replace earlier answers.
func (t *Turn) prepareHidden(ctx context.Context) error {
	if t.in.Tenant.Observe || t.in.Wish == WishOff {
		return nil
	}
	replacements, err := t.registry.Replacements(ctx, &t.place)
	if err != nil {
		return fmt.Errorf("read replaced answers: %w", err)
	}
	t.hidden.replacements = replacements
	all := toolsOf(t.in.Tenant.Hidden)
	if len(all) == 0 || t.in.Plug || t.purpose != session.PurposeMain || !t.in.Dialect.CanHideTools(t.in.Split) ||
		t.engine.lessons.Has(lessons.RefusesTools, t.lessons) {
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
	if n := t.history.Len(); t.hidden.commands && n > 0 {
		if asked, is := t.command(t.history.Message(n)); is {
			t.in.Wish, t.hidden.asked = WishNow, asked
		}
	}
}

// command returns what a message asks of the record, as in "/condense focus on the API", and whether it is a command. Long messages are not read.
func (t *Turn) command(m *session.Message) (asked string, is bool) {
	if m.Kind != session.User || m.Relayed || len(m.Raw) >= maxCommand || !bytes.Contains(m.Raw, []byte(Command)) {
		return "", false
	}
	rest, begins := strings.CutPrefix(strings.TrimSpace(t.text(m)), Command)
	asked = strings.TrimSpace(rest)
	return asked, begins && (rest == "" || strings.TrimLeft(rest, " \t\r\n") != rest)
}

// maxCommand is the length, in bytes, from which a message is not read as a command.
const maxCommand = 2 << 10

// Offers reports whether the request goes upstream with hidden tools.
func (f *Form) Offers() bool {
	return len(f.turn.hidden.tools) > 0 && !f.verbatim() && !f.relief.withdrawn && f.calls.answers < maxAnswers-1
}

// offersRecall reports whether the request may go upstream with the tool that looks up what is hidden. Notes name it only then: the protocol, the
// store mode and the choice of tools may forbid it.
func (t *Turn) offersRecall() bool {
	return slices.ContainsFunc(t.hidden.tools, func(tool dialect.Tool) bool { return tool.Name == recallTool })
}

// NamesHidden reports whether an answer that is not read contains the name of a hidden tool as a string of its own.
func (t *Turn) NamesHidden(answer []byte) bool {
	return slices.ContainsFunc(t.hidden.tools, func(tool dialect.Tool) bool { return bytes.Contains(answer, []byte(`"`+tool.Name+`"`)) })
}

// Strain returns an AnswerFilter that removes the calls of hidden tools from an answer to the request.
func (t *Turn) Strain(streamed bool) dialect.AnswerFilter {
	return t.in.Dialect.FilterAnswers(streamed, func(name string) bool {
		return slices.ContainsFunc(t.hidden.tools, func(tool dialect.Tool) bool { return tool.Name == name })
	})
}

// Reply returns the form with answers to the hidden calls of an answer. It reports whether upstream must be asked again, because the answer
// holds nothing else.
func (f *Form) Reply(ctx context.Context, said dialect.Said) (next *Form, report Report, again bool) {
	calls := f.calls
	calls.answer = nil
	if len(said.Calls) == 0 || said.Message == nil || !said.Complete {
		if calls.answers > 0 && said.Message != nil && said.Complete {
			calls.answer = append(slices.Clip(calls.tail), said.Message)
		}
		return f.with(func(next *Form) { next.calls = calls }), report, false
	}
	again = said.OnlyHidden() && calls.answers < maxAnswers-1
	results := make([][]byte, len(said.Calls))
	for i, call := range said.Calls {
		text := fmt.Sprintf("Not done: only the first %d of these calls at a time are. Ask again for what is still needed.", maxCalls)
		if i < maxCalls {
			f, text = f.answerCall(ctx, call, again, &report)
		}
		results[i] = f.turn.in.Dialect.Result(call, text)
	}
	condensed := report.made()
	if condensed {
		said.Message = f.turn.withoutReasoning(said.Message)
		calls.tail = slices.Clone(calls.tail)
		for i := range calls.tail {
			calls.tail[i] = f.turn.withoutReasoning(calls.tail[i])
		}
	}
	all := append(append(slices.Clip(calls.tail), said.Message), results...)
	if !again {
		calls.answer = all
		return f.with(func(next *Form) { next.calls = calls }), report, false
	}
	calls.answers++
	if !condensed || len(said.Calls) > 1 { // a call that only asked for a condensation needs no reply once it is made
		calls.tail = all
	}
	return f.with(func(next *Form) { next.calls = calls }), report, true
}

// withoutReasoning returns a message without its sealed reasoning, or unchanged if it cannot be read.
func (t *Turn) withoutReasoning(raw []byte) []byte {
	if out, err := t.in.Dialect.StripReasoning(raw); err == nil {
		return out
	}
	return raw
}

// answerCall returns the result of a hidden call. A condensation that the call asks for is made at once if now is set.
func (f *Form) answerCall(ctx context.Context, call session.Call, now bool, report *Report) (_ *Form, text string) {
	if call.Name == recallTool {
		return f, f.lookUp(ctx, call.Arguments)
	}
	f.logRequest(ctx)
	if !now {
		return f, "The history will be condensed before your next step."
	}
	f, step := f.with(func(next *Form) { next.asked.wish = WishNow }).Condense(ctx)
	if report.add(step); report.made() {
		return f, "The history has been condensed."
	}
	return f, "The history was not condensed. Continue without asking again."
}

// logRequest logs that a condensation of the thread was requested. The request stays pending until one is made.
func (f *Form) logRequest(ctx context.Context) {
	f.awaitLog()
	archive, can := f.turn.store.(session.Archive)
	if !can || f.logged == nil || f.logged.place.Thread.ID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, f.turn.engine.o.Limits.Store)
	defer cancel()
	_ = archive.Request(ctx, f.logged.place.Thread.ID, f.turn.engine.o.Now()) // if the write is lost, nothing worse happens than that no condensation is made
}

// logReplacement logs the messages that replace the answer that the client got, if there are any.
func (f *Form) logReplacement(ctx context.Context, echo []byte) error {
	if f.calls.answer == nil || echo == nil {
		return nil
	}
	messages := splitMessage(f.turn.in.Dialect, echo)
	if len(messages) == 0 {
		return errors.New("replace answer: it has no messages")
	}
	if err := f.turn.registry.Replace(ctx, &f.logged.place, messages, f.calls.answer); err != nil {
		return fmt.Errorf("replace answer: %w", err)
	}
	return nil
}

// substitute replaces an item by the messages that upstream has to see in its place.
func (t *Turn) substitute(item *session.Item) {
	if item.Index < 0 {
		return
	}
	item.Parts = t.hidden.replacements[t.history.Pos(item.Index)].Messages
	if !t.hidden.commands {
		return
	}
	if _, is := t.command(&t.in.Split.Messages[item.Index]); is {
		if raw, err := t.in.Dialect.Rewrite(item.Raw, commandNote); err == nil {
			item.Raw = raw
		}
	}
}

// hideReplaced hides the earlier messages of an answer whose replacement is shown in the place of its last one.
func (t *Turn) hideReplaced(items []session.Item) {
	for i := range items {
		replacement := t.hidden.replacements[t.history.Pos(max(items[i].Index, 0))]
		switch {
		case items[i].Index >= 0 && replacement.Messages != nil:
			for j := i - 1; j >= 0 && items[j].Index == items[j+1].Index-1 && t.history.Pos(items[j].Index) >= replacement.From; j-- {
				items[j].Parts = [][]byte{}
			}
		case items[i].Parts != nil && len(items[i].Parts) == 0:
			items[i].Parts = nil // its replacement is not in view
		}
	}
}
