package condense

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// CustomModel is the name under which a Custom condenser's program or service is called, logged and measured.
const CustomModel = "custom"

// NewCustom gives the rolling condenser whose choice somebody else makes: a program or a service reads a Question and writes an Answer, both
// JSON. What must stay (system messages, the head, the newest user message, the newest unit) stays whatever it answers; an answer that
// does not keep to the rules is a bad summary, and nothing is forgotten for it. Its Summariser gets the question as Request.User and gives
// the answer as Reply.Text. Settings of a model's window and output do not count.
func NewCustom(s LLMSettings) *LLM {
	s.Name, s.Model = "custom", CustomModel
	return newLLM(s.Name, s, (*llmJob).choose)
}

// QuestionVersion is the form of a Question. Fields may be added to it; what is there keeps its meaning.
const QuestionVersion = 1

// Question is what a custom condenser asks: which units of a conversation are to go. Its tokens are those of messages, without the
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

// Answer is what a custom condenser is answered.
type Answer struct {
	// Hide has the ids of the messages that go: all of a unit or none.
	Hide []int `json:"hide"`
	// Record stands for what is hidden, and for the record before it. Empty: that one stays, and nothing is added.
	Record string `json:"record"`
}

// choose asks for the choice and makes a condensation of it. The job's cut is the one that stands in for the choice.
func (j *llmJob) choose(ctx context.Context) (session.Condensation, error) {
	return j.asked(ctx, func() (Request, error) {
		question, err := j.question(ctx)
		return Request{Endpoint: j.endpoint(j.in), Model: CustomModel, User: question}, err
	}, func(r Reply) (session.Condensation, error) { return j.chosen(ctx, r) })
}

// question is the text of a Question: the whole conversation, as far as it is shown or a record is owed for it.
func (j *llmJob) question(ctx context.Context) (string, error) {
	span, err := readSpan(ctx, j.in, j.cut)
	if err != nil {
		return "", err
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
			unit.Messages = append(unit.Messages, questionMessage(h.Pos(item.Index), read(j.in.Codec, h.Messages[item.Index].Raw)))
		}
		q.Units = append(q.Units, unit)
	}
	text, err := json.Marshal(q)
	if err != nil {
		return "", fmt.Errorf("write the question: %w", err)
	}
	return string(text), nil
}

func questionMessage(id int, c session.Content) QuestionMessage {
	m := QuestionMessage{ID: id, Role: c.Role, Text: c.Text, ResultOf: c.Result}
	for _, call := range c.Calls {
		m.Calls = append(m.Calls, QuestionCall(call))
	}
	return m
}

// chosen makes a condensation of an answer, if it keeps to the rules. A record may not be longer than what it stands for.
func (j *llmJob) chosen(ctx context.Context, r Reply) (c session.Condensation, err error) {
	var a Answer
	if err := json.Unmarshal([]byte(r.Text), &a); err != nil {
		return c, malformed("it is not the JSON of an answer")
	}
	summary := session.Size{}
	if a.Record != "" {
		summary = session.Size{Events: 1, Tokens: j.in.Count(a.Record) + messageOverhead}
	}
	cut, err := j.hide(a.Hide, summary)
	if err != nil {
		return c, err
	}
	j.cut = cut
	c = j.plain(j.cut)
	if a.Record != "" {
		if j.span, err = readSpan(ctx, j.in, j.cut); err != nil {
			return c, err
		}
		if c, err = j.recorded(a.Record, j.standsFor()); err != nil {
			return c, err
		}
	}
	c.Model = CustomModel
	if room := Room(j.in); j.due.Need.Hard && room > 0 && c.After.Tokens > room {
		return c, &SummaryError{
			Kind: FaultInflated, Detail: fmt.Sprintf("%d tokens stay, and the window has room for %d", c.After.Tokens, room),
		}
	}
	return c, nil
}

// hide forgets the messages with some ids. Whole units go, and none that must stay.
func (j *llmJob) hide(ids []int, summary session.Size) (Cut, error) {
	p := j.picker(summary)
	hide := map[int]bool{}
	for _, id := range ids {
		hide[id] = true
	}
	for i, item := range p.view.Items {
		if p.blocks[i] < 0 || item.Index < 0 {
			continue
		}
		id := p.view.History.Pos(item.Index)
		switch from, _ := p.block(i); {
		case hide[id] && p.keep[i]:
			return Cut{}, malformed(fmt.Sprintf("message %d has to stay, or its unit is hidden in part", id))
		case hide[id]:
			delete(hide, id)
		case i != from && !p.keep[i]:
			return Cut{}, malformed(fmt.Sprintf("message %d is not hidden, but its unit is", id))
		default:
			p.pick(p.block(i))
		}
	}
	for id := range hide {
		return Cut{}, malformed(fmt.Sprintf("no message that is shown has the id %d", id))
	}
	cut, ok := j.worthwhile(p, summary)
	if !ok {
		return Cut{}, &SummaryError{Kind: FaultInflated, Detail: "too little is hidden for what the record takes"}
	}
	return cut, nil
}

func malformed(detail string) error {
	return &SummaryError{Kind: FaultMalformed, Detail: detail}
}
