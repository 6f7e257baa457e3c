package condense

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// CustomModel is the model name under which calls of a Custom condenser's service are made, logged and counted.
const CustomModel = "custom"

// NewCustom returns a rolling condenser that leaves the choice to a service, which reads a Question and writes
// an Answer, both JSON. What must stay (system messages, the head, the newest user message, the newest unit) stays whatever
// the answer; an answer that breaks the rules is a bad summary, and nothing is hidden. The Summariser gets the question as
// Request.User and returns the answer as Reply.Text. The settings for a model's window and output are ignored.
func NewCustom(s LLMSettings) *LLM {
	s.Model = CustomModel
	return &LLM{typeName: "custom", s: s.withDefaults(), ask: (*llmJob).choose}
}

// QuestionVersion is the version of Question. Fields may be added to a version; existing ones keep their meaning.
const QuestionVersion = 1

// Question asks which units of a conversation to hide. Token counts are those of messages, without the request's tools.
type Question struct {
	Version int    `json:"version"`
	Reason  string `json:"reason"` // why a condensation is due, as in the log: "events", "tokens", "request", ...
	Hard    bool   `json:"hard"`   // the request does not fit the model's window
	Model   string `json:"model"`  // of the client's request
	Thread  string `json:"thread"` // id of the conversation, the same in all its questions
	Tokens  int    `json:"tokens"` // of all messages shown
	Count   int    `json:"count"`  // number of messages shown
	Target  Target `json:"target"` // what to bring them down to
	Record  string `json:"record"` // stands for what was hidden before; empty if there is none
	Units   []Unit `json:"units"`  // oldest first
}

// Target is the size to which a view should shrink. A limit that does not matter is 0. An answer that leaves more is
// accepted if it makes progress; the next condensation is then due sooner.
type Target struct {
	Tokens int `json:"tokens,omitempty"`
	Count  int `json:"count,omitempty"` // of messages
}

// The states of a Unit.
const (
	UnitStays  = "stays"  // it cannot be hidden
	UnitMayGo  = "may_go" // it can be hidden
	UnitHidden = "hidden" // hidden before without a record: a new record has to cover it
)

// Unit is a group of messages that stay or go together: a single message, or tool calls with their results.
type Unit struct {
	State    string            `json:"state"`
	Tokens   int               `json:"tokens"`
	Messages []QuestionMessage `json:"messages"`
}

// QuestionMessage is a message as the client sent it, whatever its protocol, without images, files and reasoning.
type QuestionMessage struct {
	ID       int            `json:"id,omitempty"` // position in the conversation, from 1; system messages have none
	Role     string         `json:"role"`
	Text     string         `json:"text,omitempty"`
	Calls    []QuestionCall `json:"calls,omitempty"`
	ResultOf string         `json:"result_of,omitempty"` // id of the call that it answers
}

// QuestionCall is a tool call.
type QuestionCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, as the model wrote it
}

// Answer is the answer to a Question.
type Answer struct {
	// Hide lists the ids of the messages to hide: all of a unit or none.
	Hide []int `json:"hide"`
	// Record replaces the hidden messages and the record before them; empty: that record stays, and nothing is added.
	Record string `json:"record"`
}

// choose asks for the choice and makes a condensation of it. The job's cut is the fallback.
func (j *llmJob) choose(ctx context.Context) (session.Condensation, error) {
	return j.askOnce(ctx, func() (Request, error) {
		question, err := j.question(ctx)
		return Request{Endpoint: j.endpoint(j.in), Model: CustomModel, User: question}, err
	}, func(r Reply) (session.Condensation, error) {
		return j.fromAnswer(ctx, r)
	})
}

// question returns a Question as JSON. It leaves out messages that were hidden and recorded before.
func (j *llmJob) question(ctx context.Context) (string, error) {
	span, err := readSpan(ctx, j.in, j.cut)
	if err != nil {
		return "", err
	}
	h := j.in.View.History
	q := Question{
		Version: QuestionVersion, Reason: string(j.due.Need.Reason), Hard: j.due.Need.Hard,
		Model: j.in.Model, Thread: j.in.Thread.Name,
		Tokens: j.in.Total - j.in.Fixed, Count: events(j.in.View.Items), Record: span.previousRecord(),
	}
	if t := j.due.Target; t.Tokens != unlimited {
		q.Target.Tokens = t.Tokens
	}
	if t := j.due.Target; t.Events != unlimited {
		q.Target.Count = t.Events
	}
	hidden := j.in.View.Forgotten()
	for _, e := range span.events {
		if hidden[e.id] {
			tokens := total(j.in.Measure([]session.Item{asSent(h, e.id)}))
			messages := []QuestionMessage{questionMessage(e.id, e.content)}
			q.Units = append(q.Units, Unit{State: UnitHidden, Tokens: tokens, Messages: messages})
		}
	}
	p := j.picker(session.Size{})
	for i := 0; i < len(p.blocks); {
		from, to := p.block(i)
		i = to
		if p.blocks[from] < 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return "", fmt.Errorf("read the conversation: %w", err)
		}
		unit := Unit{State: UnitMayGo}
		for n, item := range p.view.Items[from:to] {
			if p.keep[from+n] {
				unit.State = UnitStays
			}
			unit.Tokens += p.tokens[from+n]
			content := read(j.in.Codec, h.Messages[item.Index].Raw)
			unit.Messages = append(unit.Messages, questionMessage(h.Pos(item.Index), content))
		}
		q.Units = append(q.Units, unit)
	}
	text, _ := json.Marshal(q) // cannot fail: the values are strings and numbers
	return string(text), nil
}

func questionMessage(id int, c session.Content) QuestionMessage {
	m := QuestionMessage{ID: id, Role: c.Role, Text: c.Text, ResultOf: c.Result}
	for _, call := range c.Calls {
		m.Calls = append(m.Calls, QuestionCall(call))
	}
	return m
}

// fromAnswer makes a condensation of an answer that follows the rules. The record must not be longer than what it replaces.
func (j *llmJob) fromAnswer(ctx context.Context, r Reply) (c session.Condensation, err error) {
	var a Answer
	if err := json.Unmarshal([]byte(r.Text), &a); err != nil {
		return c, FaultMalformed.errorf("the reply is not an answer in JSON")
	}
	a.Record = strings.TrimSpace(a.Record)
	var summary session.Size
	if a.Record != "" {
		summary = session.Size{Events: 1, Tokens: j.in.Count(a.Record) + messageOverhead}
	}
	cut, err := j.hide(a.Hide, summary)
	if err != nil {
		return c, err
	}
	j.cut = cut
	c = j.plain(cut)
	if a.Record != "" {
		j.span, err = readSpan(ctx, j.in, cut)
		if err == nil {
			c, err = j.withRecord(a.Record, j.replacedTokens())
		}
		if err != nil {
			return c, err
		}
	}
	c.Model = CustomModel
	if room := Room(j.in); j.due.Need.Hard && room > 0 && c.After.Tokens > room {
		return c, FaultInflated.errorf("%d tokens remain, but the window has room for %d", c.After.Tokens, room)
	}
	return c, nil
}

// hide returns the cut that hides the given messages: whole units only, and none that must stay.
func (j *llmJob) hide(ids []int, summary session.Size) (Cut, error) {
	p := j.picker(summary)
	hide := map[int]bool{} // ids not seen in the view yet
	for _, id := range ids {
		hide[id] = true
	}
	for i, item := range p.view.Items {
		if p.blocks[i] < 0 || item.Index < 0 {
			continue
		}
		id := p.view.History.Pos(item.Index)
		from, to := p.block(i)
		switch {
		case hide[id] && p.keep[i]:
			return Cut{}, FaultMalformed.errorf("message %d must stay, or its unit is only partly hidden", id)
		case hide[id]:
			delete(hide, id)
		case i != from && !p.keep[i]:
			return Cut{}, FaultMalformed.errorf("message %d is not hidden, but others of its unit are", id)
		default:
			p.pick(from, to)
		}
	}
	for id := range hide {
		return Cut{}, FaultMalformed.errorf("no visible message has the id %d", id)
	}
	cut, ok := j.worthwhile(p, summary)
	if !ok {
		return Cut{}, FaultInflated.errorf("too little is hidden for the size of the record")
	}
	return cut, nil
}
