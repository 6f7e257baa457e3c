package condense

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// CustomModel is the name under which a Custom condenser's program or service is called, logged and measured.
const CustomModel = "custom"

// Custom is the rolling condenser whose choice somebody else makes: a program or a service reads a Question and writes an Answer, both
// JSON. What must stay (system messages, the head, the newest user message, the newest unit) stays whatever it answers; an answer that
// does not keep to the rules is a bad summary, and nothing is forgotten for it. It is safe for concurrent use if its Summariser is, which
// gets the question as Request.User and gives the answer as Reply.Text.
type Custom struct {
	llm *LLM
}

var _ Condenser = (*Custom)(nil)

// NewCustom gives a condenser with settings. Those of a model's window and output do not count.
func NewCustom(s LLMSettings) *Custom {
	s.Name, s.Model = "custom", CustomModel
	return &Custom{llm: NewLLM(s)}
}

// Name implements Condenser.
func (c *Custom) Name() string { return c.llm.s.Name }

// Condense implements Condenser.
func (c *Custom) Condense(in Input) Decision {
	l := c.llm
	due := l.s.Due(in)
	if due.Need.Reason == "" {
		return Decision{Kept: due.Kept}
	}
	if !l.ready(in, due.Need) {
		return Decision{Kept: KeptCooling}
	}
	cut, ok := l.s.Cut(in, due, session.Size{Events: 1, Tokens: l.allowance(in, due.Target.Tokens)})
	if !ok {
		return Decision{Kept: KeptUncut}
	}
	return Decision{Job: &customJob{llmJob{LLM: l, in: in, due: due, cut: cut}}}
}

// customJob is one condensation that somebody else chooses. Its cut is the one that stands in for the choice.
type customJob struct {
	llmJob
}

var _ Job = (*customJob)(nil)

// Run implements Job. On a hard need excerpts stand in for an answer that does not come or is no good.
func (j *customJob) Run(ctx context.Context) (Result, error) {
	if j.due.Need.AtOnce {
		return j.atOnce(ctx)
	}
	var c session.Condensation
	err := j.watched(j.in, j.due.Need, func(bool) (err error) {
		c, err = j.choose(ctx)
		return err
	})
	if err == nil {
		return Result{Condensation: c}, nil
	}
	err = fmt.Errorf("condense %s: %w", j.s.Name, err)
	if !j.due.Need.Hard || errors.Is(ctx.Err(), context.Canceled) {
		return Result{}, err
	}
	c, failed := j.standIn(ctx, j.in, j.due, j.cut)
	if failed != nil {
		return Result{}, errors.Join(err, failed)
	}
	return Result{Condensation: c, Fallback: err}, nil
}

// atOnce goes without the choice for now.
func (j *customJob) atOnce(ctx context.Context) (Result, error) {
	later := &customJob{llmJob{LLM: j.LLM, in: j.in, due: j.due, cut: j.cut}}
	return j.before(ctx, later, &later.llmJob)
}

// choose asks for the choice and makes a condensation of it.
func (j *customJob) choose(ctx context.Context) (c session.Condensation, err error) {
	var r Request
	err = j.in.work(ctx, func() (err error) {
		r, err = j.request(ctx)
		return err
	})
	if err != nil {
		return c, err
	}
	reply, err := j.call(ctx, r)
	if err != nil {
		return c, err
	}
	err = j.in.work(ctx, func() (err error) {
		c, err = j.accept(ctx, reply)
		return err
	})
	return c, err
}

func (j *customJob) request(ctx context.Context) (Request, error) {
	q, err := j.question(ctx)
	if err != nil {
		return Request{}, err
	}
	text, err := json.Marshal(q)
	if err != nil {
		return Request{}, fmt.Errorf("write the question: %w", err)
	}
	return Request{Endpoint: j.endpoint(j.in), Model: CustomModel, User: string(text)}, nil
}

// accept makes a condensation of an answer, if it keeps to the rules.
func (j *customJob) accept(ctx context.Context, r Reply) (session.Condensation, error) {
	var a Answer
	if err := json.Unmarshal([]byte(r.Text), &a); err != nil {
		return session.Condensation{}, j.malformed("it is not the JSON of an answer")
	}
	summary := session.Size{}
	if a.Record != "" {
		summary = session.Size{Events: 1, Tokens: j.in.Count(a.Record) + messageOverhead}
	}
	cut, err := j.cutFor(a.Hide, summary)
	if err != nil {
		return session.Condensation{}, err
	}
	j.cut = cut
	c := cut.condensation(j.due.Need.Reason, j.s.Name)
	if a.Record != "" {
		if c, err = j.recorded(ctx, a.Record); err != nil {
			return session.Condensation{}, err
		}
	}
	c.Model = CustomModel
	if room := Room(j.in); j.due.Need.Hard && room > 0 && c.After.Tokens > room {
		return session.Condensation{}, &SummaryError{
			Kind: FaultInflated, Detail: fmt.Sprintf("%d tokens stay, and the window has room for %d", c.After.Tokens, room),
		}
	}
	return c, nil
}

// recorded is the condensation with a record, which may not be longer than what it stands for.
func (j *customJob) recorded(ctx context.Context, text string) (session.Condensation, error) {
	var err error
	if j.span, err = readSpan(ctx, j.in, j.cut); err != nil {
		return session.Condensation{}, err
	}
	limit := j.cut.Tokens + j.span.late + j.cut.Replaced
	if n := j.in.Count(text); n >= limit {
		return session.Condensation{}, j.inflated(n, limit)
	}
	return j.condensation(text)
}

// cutFor forgets the messages with some ids. Whole units go, and none that must stay.
func (j *customJob) cutFor(ids []int, summary session.Size) (Cut, error) {
	p := j.s.picker(j.in, j.due, summary)
	hide := make(map[int]bool, len(ids))
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
			return Cut{}, j.malformed(fmt.Sprintf("message %d has to stay, or its unit is hidden in part", id))
		case hide[id]:
			delete(hide, id)
		case i != from && !p.keep[i]:
			return Cut{}, j.malformed(fmt.Sprintf("message %d is not hidden, but its unit is", id))
		default:
			p.pick(p.block(i))
		}
	}
	for id := range hide {
		return Cut{}, j.malformed(fmt.Sprintf("no message that is shown has the id %d", id))
	}
	cut, ok := j.s.cut(j.in, j.due, p, summary)
	if !ok {
		return Cut{}, &SummaryError{Kind: FaultInflated, Detail: "too little is hidden for what the record takes"}
	}
	return cut, nil
}

func (j *customJob) malformed(detail string) error {
	return &SummaryError{Kind: FaultMalformed, Detail: detail}
}
