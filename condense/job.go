package condense

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// llmJob is one condensation by a model.
type llmJob struct {
	*LLM
	in   Input
	due  Due
	cut  Cut
	span *span

	failed  error // why it is not by way of the configured model, nil if it is
	settled bool  // the cut is that of what stands in for the summary already

	output int           // tokens that an answer may have
	calls  atomic.Int64  // made so far
	rode   session.Usage // of one behind the client's own prompt
}

var _ Job = (*llmJob)(nil)

// Need implements Job.
func (j *llmJob) Need() Need { return j.due.Need }

// Asks implements Job.
func (j *llmJob) Asks() bool { return true }

// Plan implements Job.
func (j *llmJob) Plan() (session.Condensation, int) {
	return j.cut.condensation(j.due.Need.Reason, j.s.Name), j.cut.filled(j.in, j.due, j.recordTokens())
}

// recordTokens is about how many tokens a record will have.
func (j *llmJob) recordTokens() int { return min(answeredTokens, (j.cut.Tokens+j.cut.Replaced)/8) }

// Run implements Job. The buffer that the view's messages alias must not change before it returns. What is hard climbs down: a
// summary, another try with shorter events and more room, the request's own model, and at last excerpts.
func (j *llmJob) Run(ctx context.Context) (Result, error) {
	if j.due.Need.AtOnce {
		return j.atOnce(ctx)
	}
	var c session.Condensation
	err := j.in.work(ctx, func() (err error) {
		x := &excerptsJob{settings: j.s.Settings, in: j.in, due: j.due, settled: j.settled}
		j.cut, j.span, err = x.read(ctx, j.cut, j.recordTokens())
		return err
	})
	if err == nil {
		c, err = j.watch(ctx)
	}
	result := Result{Condensation: c, Failed: j.failed}
	if err != nil && j.span != nil && ctx.Err() == nil && j.configured(j.in) && (j.due.Need.Hard || notThere(err)) {
		result.Failed = fmt.Errorf("condense %s: %w", j.s.Name, err)
		j.LLM = j.own(j.in)
		result.Condensation, err = j.watch(ctx)
	}
	if err == nil {
		return result, nil
	}
	if err = fmt.Errorf("condense %s: %w", j.s.Name, err); result.Failed != nil {
		err = result.Failed // of the model that was configured
	}
	if !j.due.Need.Hard || errors.Is(ctx.Err(), context.Canceled) {
		return Result{}, err
	}
	result.Condensation, result.Fallback = session.Condensation{}, err
	result.Condensation, err = j.standIn(ctx, j.in, j.due, j.cut)
	if err != nil {
		return Result{}, errors.Join(result.Fallback, err)
	}
	result.Condensation.Calls, result.Condensation.Rode = j.made(), j.rode
	return result, nil
}

// watch asks behind the client's request, or else is summarise under the eyes of the model's health.
func (j *llmJob) watch(ctx context.Context) (c session.Condensation, err error) {
	j.output = j.s.MaxOutput
	first := j.made() == 0
	c, done, err := j.behind(ctx)
	if done {
		return c, err
	}
	err = j.watched(j.in, j.due.Need, func(healthy bool) error {
		c, err = j.summarise(ctx, healthy && first)
		return err
	})
	return c, err
}

// moreRoom is how many times as long an answer may be after one that was cut off: a model that reasons spends it on that.
const moreRoom = 4

// summarise asks the model, and a second time if its answer was cut off, with more room for it, or on a hard need, with shorter
// events, if it may be asked again: one that failed a short while ago is asked once.
func (j *llmJob) summarise(ctx context.Context, more bool) (session.Condensation, error) {
	c, used, err := j.attempt(ctx, j.s.MaxEventLength, max(maxCalls-1-j.made(), 1))
	bad, _ := errors.AsType[*SummaryError](err)
	cut := bad != nil && bad.Kind == FaultTruncated
	if err == nil || !more || !cut && !j.due.Need.Hard || ctx.Err() != nil || !again(err) {
		return c, err
	}
	if cut {
		j.output = max(j.output, min(moreRoom*j.output, j.window(j.in)/2))
	}
	if j.due.Need.Hard {
		used = max(used/4, minEventLength)
	}
	c, _, err = j.attempt(ctx, used, maxCalls-j.made())
	return c, err
}

// attempt asks for a summary with events of at most limit runes, in one call or, where one cannot hold them, in parts:
// that many calls at most. It tells how short the events were cut to fit.
func (j *llmJob) attempt(ctx context.Context, limit, calls int) (session.Condensation, int, error) {
	var p prompt
	var pl plan
	err := j.in.work(ctx, func() (err error) {
		p, pl, err = j.planned(ctx, limit, calls)
		return errors.Join(ctx.Err(), err)
	})
	if err != nil {
		return session.Condensation{}, limit, err
	}
	text := pl.texts[0]
	if len(pl.texts) > 1 {
		if text, err = j.readParts(ctx, p, pl); err != nil {
			return session.Condensation{}, pl.limit, err
		}
	}
	asked := j.request(text)
	r, err := j.call(ctx, asked)
	if err != nil {
		return session.Condensation{}, pl.limit, err
	}
	var c session.Condensation
	err = j.in.work(ctx, func() (err error) {
		c, err = j.accept(r, asked)
		return err
	})
	return c, pl.limit, err
}

// planned is the summariser's prompts, for at most so many calls. There are none where no answer could be used.
func (j *llmJob) planned(ctx context.Context, limit, calls int) (p prompt, pl plan, err error) {
	if err := j.crowded(); err != nil {
		return p, pl, err
	}
	p = j.prompt(ctx)
	pl, err = p.plan(frame{limit: limit, budget: j.budget(), calls: calls, output: j.s.MaxOutput, count: j.in.reading})
	return p, pl, err
}

// crowded is the error where the user's own words, which have to stand next to a record, leave no room for any.
func (j *llmJob) crowded() error {
	shortest := record.Summary{Record: ".", Events: j.span.named}
	shortest.Words = j.span.said(j.in, shortest, j.s.rooms(&j.cut, j.in, j.due))
	after := j.cut.After(session.Size{Events: 1, Tokens: j.in.Count(shortest.String()) + messageOverhead}).Tokens
	if after < j.cut.Before.Tokens {
		return nil
	}
	return &SummaryError{Kind: FaultCrowded, Detail: fmt.Sprintf("%d tokens, before %d", after, j.cut.Before.Tokens)}
}

// reads is how many tokens the prompts of a plan have.
func (j *llmJob) reads(pl plan) (n int) {
	for _, text := range pl.texts {
		n += askedTokens + j.in.reading(text)
	}
	return n
}

func (j *llmJob) prompt(ctx context.Context) prompt {
	previous := j.span.previous
	if j.span.late > 0 {
		previous.Record = j.span.recorded()
	}
	return prompt{
		previous: previous.Text(), kept: j.span.kept(j.budget()/keptShare, j.in.reading), events: j.span.events, ask: j.form.ask(j.words()),
		ids: j.in.Thread.Recall, over: func() bool { return ctx.Err() != nil },
	}
}

func (j *llmJob) request(user string) Request {
	r := Request{
		Endpoint:  j.endpoint(j.in),
		Model:     j.model(j.in),
		System:    j.system(),
		User:      user,
		MaxOutput: j.output,
	}
	j.form.shape(&r)
	return r
}

// longestTold is how much of what a client says of its record is passed on, in bytes.
const longestTold = 4 << 10

// exampleWindow is the least window, in tokens, in which an example has room.
const exampleWindow = 8000

func (j *llmJob) focus() Focus { return cmp.Or(j.s.Focus, j.span.weights.focus()) }

func (j *llmJob) system() string {
	f := j.focus()
	text := j.form.system(f)
	if _, plain := j.form.(prose); plain && j.window(j.in) >= exampleWindow {
		text += f.example()
	}
	if j.in.Thread.Recall {
		text += instructionsEvents
	}
	return text + j.told()
}

// told is what the client says of its record.
func (j *llmJob) told() string {
	told := strings.TrimSpace(j.in.Thread.Told)
	if told == "" {
		return ""
	}
	return "\n\nThe agent says of the record:\n" + strings.ToValidUTF8(told[:min(len(told), longestTold)], "")
}

// budget is how many tokens the changing part of the prompt may have.
func (j *llmJob) budget() int {
	const messages = 4 * messageOverhead // two messages, priming, and some room for another tokenizer's mind
	r := j.request("")
	fixed := j.in.reading(r.System) + messages
	if r.Function != nil {
		fixed += j.in.reading(string(r.Function.JSON))
	}
	return j.window(j.in) - j.output - fixed
}

// words is how long the record may be: half of what it stands for, and well within what the model may write.
func (j *llmJob) words() int {
	tokens := min(j.s.MaxOutput*3/4, max((j.cut.Tokens+j.span.late+j.cut.Replaced)/2, 100))
	return tokens * 2 / 3
}

// accept makes a condensation of a reply to what was asked, if the reply is any good.
func (j *llmJob) accept(r Reply, asked Request) (session.Condensation, error) {
	text, err := j.form.record(r)
	if err != nil {
		return session.Condensation{}, err
	}
	limit := min(j.cut.Tokens+j.span.late+j.cut.Replaced, 2*j.s.MaxOutput)
	if n := j.in.Count(text); n >= limit {
		return session.Condensation{}, j.inflated(n, limit)
	}
	c, err := j.condensation(text)
	c.Model, c.Prompt = asked.Model, version(asked)
	return c, err
}

// condensation forgets the span for a record. It must make the view strictly smaller, if need be without what is added to
// the record.
func (j *llmJob) condensation(text string) (session.Condensation, error) {
	c := j.cut.condensation(j.due.Need.Reason, j.s.Name)
	c.Calls, c.Rode = j.made(), j.rode
	c.Summary = j.span.summary(j.in, text, j.s.rooms(&j.cut, j.in, j.due))
	c.SummaryTokens = j.in.Count(c.Summary)
	c.After = j.cut.After(session.Size{Events: 1, Tokens: c.SummaryTokens + messageOverhead})
	if c.After.Tokens >= c.Before.Tokens {
		return session.Condensation{}, j.inflated(c.After.Tokens, c.Before.Tokens)
	}
	return c, nil
}

// condensation is the cut's, still without a summary.
func (c *Cut) condensation(reason session.Reason, condenser string) session.Condensation {
	return session.Condensation{
		Prefix:          c.Prefix,
		Hash:            c.Hash,
		Forgotten:       c.Forgotten,
		ForgottenTokens: c.Tokens,
		Offset:          c.Offset,
		Stripped:        c.Stripped,
		Reason:          reason,
		Condenser:       condenser,
		Before:          c.Before,
		After:           c.Kept,
	}
}
