package condense

import (
	"context"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// QuestionVersion is the form of a Question. Fields may be added to it; what is there keeps its meaning.
const QuestionVersion = 1

// Question is what a Custom condenser asks: which units of a conversation are to go. Its tokens are those of messages, without the
// request's tools.
type Question struct {
	Version int    `json:"version"`
	Reason  string `json:"reason"` // why a condensation is due, as in the log: "events", "tokens", "request", ...
	Hard    bool   `json:"hard"`   // the request does not fit the model's window
	Model   string `json:"model"`  // of the client's request
	Thread  string `json:"thread"` // which conversation it is, the same in all its questions
	Tokens  int    `json:"tokens"` // of all that is shown
	Count   int    `json:"count"`  // of messages that are shown
	Target  Target `json:"target"` // what they are to come down to
	Record  string `json:"record"` // that stands for what was hidden before, empty if there is none
	Units   []Unit `json:"units"`  // oldest first
}

// Target is what a view is to come down to. A limit that does not matter is 0. An answer that leaves more is taken all the same if it
// makes progress; the next one is then due sooner.
type Target struct {
	Tokens int `json:"tokens,omitempty"`
	Count  int `json:"count,omitempty"` // of messages
}

// The states of a Unit.
const (
	UnitStays  = "stays"  // it cannot be hidden
	UnitMayGo  = "may_go" // it can
	UnitHidden = "hidden" // it is hidden already, without a record: a new record has to cover it
)

// Unit is messages that stay or go together: a message, or calls of tools with their results.
type Unit struct {
	State    string            `json:"state"`
	Tokens   int               `json:"tokens"`
	Messages []QuestionMessage `json:"messages"`
}

// QuestionMessage is a message as the client sent it, whatever its protocol. Images, files and reasoning are not in it.
type QuestionMessage struct {
	ID       int            `json:"id,omitempty"` // its position in the conversation, from 1; system messages have none
	Role     string         `json:"role"`
	Text     string         `json:"text,omitempty"`
	Calls    []QuestionCall `json:"calls,omitempty"`
	ResultOf string         `json:"result_of,omitempty"` // the id of the call that it answers
}

// QuestionCall is a call of a tool.
type QuestionCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON, as the model wrote it
}

// Answer is what a Custom condenser is answered.
type Answer struct {
	// Hide has the ids of the messages that go: all of a unit or none.
	Hide []int `json:"hide"`
	// Record stands for what is hidden, and for the record before it. Empty: that one stays, and nothing is added.
	Record string `json:"record"`
}

// question is the whole conversation, as far as it is shown or a record is owed for it.
func (j *customJob) question(ctx context.Context) (Question, error) {
	span, err := readSpan(ctx, j.in, j.cut)
	if err != nil {
		return Question{}, err
	}
	h := j.in.View.History
	q := Question{
		Version: QuestionVersion, Reason: string(j.due.Need.Reason), Hard: j.due.Need.Hard, Model: j.in.Model, Thread: j.in.Thread.Name,
		Tokens: j.in.Total - j.in.Fixed, Count: len(j.in.View.Items), Record: span.recorded(),
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
			q.Units = append(q.Units, Unit{State: UnitHidden, Tokens: tokens, Messages: []QuestionMessage{questionMessage(e.id, e.content)}})
		}
	}
	p := j.s.picker(j.in, j.due, session.Size{})
	for i := 0; i < len(p.blocks); {
		from, to := p.block(i)
		i = to
		if p.blocks[from] < 0 {
			continue
		}
		if err := ctx.Err(); err != nil {
			return Question{}, fmt.Errorf("read the conversation: %w", err)
		}
		unit := Unit{State: UnitMayGo}
		for n, item := range p.view.Items[from:to] {
			if p.keep[from+n] {
				unit.State = UnitStays
			}
			unit.Tokens += p.tokens[from+n]
			unit.Messages = append(unit.Messages, questionMessage(h.Pos(item.Index), read(j.in.Codec, h.Messages[item.Index].Raw)))
		}
		q.Units = append(q.Units, unit)
	}
	return q, nil
}

func questionMessage(id int, c session.Content) QuestionMessage {
	m := QuestionMessage{ID: id, Role: c.Role, Text: c.Text, ResultOf: c.Result}
	for _, call := range c.Calls {
		m.Calls = append(m.Calls, QuestionCall(call))
	}
	return m
}
