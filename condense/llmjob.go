package condense

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	job
	span *span

	failed error // why it is not by way of the configured model, nil if it is

	output int           // tokens that an answer may have
	calls  atomic.Int64  // made so far
	rode   session.Usage // of one behind the client's own prompt
}

func (j *llmJob) Asks() bool { return true }

func (j *llmJob) Plan() (session.Condensation, int) {
	if j.ranks {
		return j.job.Plan()
	}
	return j.plain(j.cut), j.filled(j.recordTokens())
}

// recordTokens is about how many tokens a record will have.
func (j *llmJob) recordTokens() int {
	return min(answeredTokens, (j.cut.ForgottenTokens+j.cut.Replaced)/8)
}

// allowance is the room for a summary and what stands next to it: a quarter of the target, but always that of its wrapping.
func (j *llmJob) allowance() session.Size {
	room := j.wrapping()
	if target := j.due.Target.Tokens; target != unlimited {
		room = max(room, target/4)
	}
	return session.Size{Events: 1, Tokens: room}
}

// ErrAtOnce is why a condensation has no summary although its summariser did not fail: the request does not wait for one.
var ErrAtOnce = errors.New("the request does not wait for a summary")

// Run asks the model. The buffer that the view's messages alias must not change before it returns. What is hard, and what does not
// wait, goes without the model's answer if need be.
func (j *llmJob) Run(ctx context.Context) (Result, error) {
	if j.due.Need.AtOnce {
		return j.atOnce(ctx)
	}
	c, err := j.ask(j, ctx)
	if err == nil {
		return Result{Condensation: c, Failed: j.failed}, nil
	}
	if err = fmt.Errorf("condense %s: %w", j.name, err); j.failed != nil {
		err = j.failed // of the model that was configured
	}
	if !j.due.Need.Hard || errors.Is(ctx.Err(), context.Canceled) {
		return Result{}, err
	}
	c, _, failed := j.standIn(ctx)
	if failed != nil {
		return Result{}, errors.Join(err, failed)
	}
	c.Calls, c.Rode = j.made(), j.rode
	return Result{Condensation: c, Fallback: err, Failed: j.failed}, nil
}

// atOnce goes without the model for now. What it would have written is a job for later, unless it is left alone.
func (j *llmJob) atOnce(ctx context.Context) (Result, error) {
	c, cut, err := j.standIn(ctx)
	switch {
	case err != nil:
		return Result{}, err
	case j.cooling():
		return Result{Condensation: c, Fallback: ErrCooling}, nil
	case j.ranks:
		return Result{Condensation: c, Fallback: ErrAtOnce}, nil
	}
	later, view := &llmJob{LLM: j.LLM, job: j.job, failed: j.failed}, *j.in.View
	later.in.View, later.in.Thread.Sent, later.due.Need = &view, nil, Need{Reason: j.due.Need.Reason}
	later.cut, later.settled = cut, true // the summary is of what is hidden already
	return Result{Condensation: c, Fallback: ErrAtOnce, Later: later}, nil
}

// standIn makes the condensation of a request that must become smaller while no model is to be had, as Excerpts would: what was
// recorded before stays, with a note of what is missing. That is made even if the time is over. It gives the cut that it took: the
// job's, if one with room for excerpts is not worth while. Instead of a ranking, the newest events stay where a note has no room.
func (j *llmJob) standIn(ctx context.Context) (session.Condensation, Cut, error) {
	x := &excerptsJob{job: j.job, provisional: true}
	newest := j.plain(j.cut)
	newest.Provisional = true
	if j.ranks && x.shrink(j.allowance()) != "" {
		return newest, j.cut, nil
	}
	cut, ok := x.cutFor(x.quotes())
	if !ok {
		cut = x.cut
	}
	c, err := x.quote(context.WithoutCancel(ctx), cut)
	if err != nil && j.ranks {
		return newest, j.cut, nil
	}
	return c, x.cut, err
}

// write has a model write the summary. What is hard, or has no model any more, climbs down: a summary, another try with shorter events and
// more room, the request's own model.
func (j *llmJob) write(ctx context.Context) (c session.Condensation, err error) {
	err = j.in.work(ctx, func() (err error) {
		j.span, err = j.read(ctx, j.cut, j.recordTokens())
		return err
	})
	if err != nil {
		return c, err
	}
	c, err = j.watch(ctx)
	if err != nil && ctx.Err() == nil && j.configured(j.in) && (j.due.Need.Hard || notThere(err)) {
		j.failed = fmt.Errorf("condense %s: %w", j.name, err)
		j.LLM = j.own(j.in)
		c, err = j.watch(ctx)
	}
	return c, err
}

// watch asks behind the client's request, or else is summarise under the eyes of the model's health.
func (j *llmJob) watch(ctx context.Context) (c session.Condensation, err error) {
	j.output = j.s.MaxOutput
	first := j.made() == 0
	c, done, err := j.behind(ctx)
	if done {
		return c, err
	}
	return j.watched(func(healthy bool) (session.Condensation, error) { return j.summarise(ctx, healthy && first) })
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
func (j *llmJob) attempt(ctx context.Context, limit, calls int) (c session.Condensation, used int, err error) {
	var p prompt
	var pl plan
	err = j.in.work(ctx, func() (err error) {
		p, pl, err = j.planned(ctx, limit, calls)
		return errors.Join(ctx.Err(), err)
	})
	if err != nil {
		return c, limit, err
	}
	text := pl.texts[0]
	if len(pl.texts) > 1 {
		if text, err = j.readParts(ctx, p, pl); err != nil {
			return c, pl.limit, err
		}
	}
	asked := j.request(text)
	r, err := j.call(ctx, asked)
	if err == nil {
		c, err = j.accept(ctx, r, asked)
	}
	return c, pl.limit, err
}

// planned is the summariser's prompts, for at most so many calls. There are none where no answer could be used.
func (j *llmJob) planned(ctx context.Context, limit, calls int) (p prompt, pl plan, err error) {
	if err := j.crowded(); err != nil {
		return p, pl, err
	}
	p = j.prompt(ctx)
	pl, err = p.plan(limit, calls)
	return p, pl, err
}

// crowded is the error where the user's own words, which have to stand next to a record, leave no room for any.
func (j *llmJob) crowded() error {
	shortest := record.Summary{Record: ".", Events: j.span.named}
	shortest.Words = j.span.said(j.in.Count, shortest, j.rooms())
	after := j.cut.with(session.Size{Events: 1, Tokens: j.in.Count(shortest.String()) + messageOverhead}).Tokens
	if after < j.cut.Before.Tokens {
		return nil
	}
	return &SummaryError{Kind: FaultCrowded, Detail: fmt.Sprintf("%d tokens, before %d", after, j.cut.Before.Tokens)}
}

func (j *llmJob) prompt(ctx context.Context) prompt {
	previous := j.span.previous
	if j.span.late > 0 {
		previous.Record = j.span.recorded()
	}
	budget := j.budget()
	return prompt{
		previous: previous.Text(), kept: j.span.kept(budget/keptShare, j.in.reading), events: j.span.events, ask: j.form.ask(j.words()),
		ids: j.in.Thread.Recall, budget: budget, output: j.s.MaxOutput, count: j.in.reading, over: func() bool { return ctx.Err() != nil },
	}
}

func (j *llmJob) request(user string) Request {
	r := Request{Endpoint: j.endpoint(j.in), Model: j.model(j.in), System: j.system(), User: user, MaxOutput: j.output}
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

// standsFor is how many tokens a record replaces.
func (j *llmJob) standsFor() int { return j.cut.ForgottenTokens + j.span.late + j.cut.Replaced }

// words is how long the record may be: half of what it stands for, and well within what the model may write.
func (j *llmJob) words() int {
	return min(j.s.MaxOutput*3/4, max(j.standsFor()/2, 100)) * 2 / 3
}

// call makes one call, and counts it. Several may run at the same time.
func (j *llmJob) call(ctx context.Context, r Request) (Reply, error) {
	defer j.calls.Add(1)
	return j.s.Summariser.Summarise(ctx, r)
}

// made is how many calls there were so far.
func (j *llmJob) made() int { return int(j.calls.Load()) }

// accept makes a condensation of a reply to what was asked, if the reply is any good.
func (j *llmJob) accept(ctx context.Context, r Reply, asked Request) (c session.Condensation, err error) {
	err = j.in.work(ctx, func() error {
		text, err := j.form.record(r)
		if err == nil {
			c, err = j.recorded(text, min(j.standsFor(), 2*j.s.MaxOutput))
		}
		return err
	})
	c.Model, c.Prompt = asked.Model, version(asked)
	return c, err
}

// recorded is the condensation with a record, which must have fewer tokens than a limit. It must make the view strictly smaller, if need be
// without what is added to the record.
func (j *llmJob) recorded(text string, limit int) (session.Condensation, error) {
	if n := j.in.Count(text); n >= limit {
		return session.Condensation{}, inflated(n, limit)
	}
	c, smaller := j.complete(j.span, text)
	if !smaller {
		return session.Condensation{}, inflated(c.After.Tokens, c.Before.Tokens)
	}
	c.Calls, c.Rode = j.made(), j.rode
	return c, nil
}

// inflated is the error for a record of that many tokens.
func inflated(tokens, limit int) error {
	return &SummaryError{Kind: FaultInflated, Detail: fmt.Sprintf("%d tokens, limit %d", tokens, limit)}
}

// version stands for what a model is told to do by a request, whatever the events are that it is shown. testdata/prompts.list has those of
// all prompts there ever were, so that a record can be explained when the prompt has changed.
func version(r Request) string {
	sum := sha256.New()
	sum.Write([]byte(r.System))
	for _, s := range []*Schema{r.Function, r.Format} {
		if s != nil {
			sum.Write(s.JSON)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
