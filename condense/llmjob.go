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

	modelErr error // why the configured model is not used; nil if it is

	maxOutput  int           // maximum tokens of an answer
	calls      atomic.Int64  // calls made so far
	reuseUsage session.Usage // usage of a call behind the client's own prompt
}

func (j *llmJob) Asks() bool { return true }

func (j *llmJob) Plan() (session.Condensation, int) {
	if j.ranks {
		return j.job.Plan()
	}
	return j.plain(j.cut), j.estimate(j.recordTokens())
}

// recordTokens returns the approximate size of the record: an eighth of what is hidden now. Longer records are rewritten to stay below answerTokens.
func (j *llmJob) recordTokens() int { return min(answerTokens, j.cut.ForgottenTokens/8) }

// allowance returns the room for a summary: a quarter of the target, but at least the size of an empty summary.
func (j *llmJob) allowance() session.Size {
	room := j.wrapperTokens()
	if target := j.due.Target.Tokens; target != unlimited {
		room = max(room, target/4)
	}
	return session.Size{Events: 1, Tokens: room}
}

// ErrAtOnce is the reason why there is no summary although the summariser did not fail.
var ErrAtOnce = errors.New("the request does not wait for a summary")

// Run asks the model. The buffer that the view's messages alias must not change before it returns. If the need is hard or
// the request does not wait, the condensation is made without the model's answer if necessary.
func (j *llmJob) Run(ctx context.Context) (Result, error) {
	if j.due.Need.AtOnce {
		return j.atOnce(ctx)
	}
	c, err := j.ask(j, ctx)
	if err == nil {
		return Result{Condensation: c, Failed: j.modelErr}, nil
	}
	err = fmt.Errorf("condense %s: %w", j.name, err)
	if j.modelErr != nil {
		err = j.modelErr // that of the configured model
	}
	if !j.due.Need.Hard || errors.Is(ctx.Err(), context.Canceled) {
		return Result{}, err
	}
	c, _, failed := j.standIn(ctx)
	if failed != nil {
		return Result{}, errors.Join(err, failed)
	}
	c.Calls, c.Reused = j.callCount(), j.reuseUsage
	return Result{Condensation: c, Fallback: err, Failed: j.modelErr}, nil
}

// atOnce makes the condensation without the model. Unless the model failed recently, its summary becomes a later job.
func (j *llmJob) atOnce(ctx context.Context) (Result, error) {
	c, cut, err := j.standIn(ctx)
	switch {
	case err != nil:
		return Result{}, err
	case j.isCooling():
		return Result{Condensation: c, Fallback: ErrCooling}, nil
	case j.ranks, j.due.Need.Reason == session.ReasonEconomics && j.BackgroundAt > 0: // the next one, prepared in advance, covers this one as well
		return Result{Condensation: c, Fallback: ErrAtOnce}, nil
	}
	later := &llmJob{LLM: j.LLM, job: j.job, modelErr: j.modelErr}
	later.in.View = new(*j.in.View)
	later.in.Thread.Sent = nil
	later.due.Need = Need{Reason: j.due.Need.Reason}
	later.cut, later.settled = cut, true // the summary must cover exactly the messages hidden now
	return Result{Condensation: c, Fallback: ErrAtOnce, Later: later}, nil
}

// standIn makes the condensation without a model, as Excerpts would: the previous record stays, with a note of how many
// messages it is missing. It ignores the end of ctx. It returns the cut that it used: the job's own if one with room for
// excerpts is not worthwhile. Instead of a ranking, the newest events stay if there is no room for a note.
func (j *llmJob) standIn(ctx context.Context) (session.Condensation, Cut, error) {
	x := &excerptsJob{job: j.job, provisional: true}
	newest := j.plain(j.cut)
	newest.Provisional = true
	if j.ranks && x.shrink(j.allowance()) != "" {
		return newest, j.cut, nil
	}
	cut, ok := x.cutFor(x.quoteRoom())
	if !ok {
		cut = x.cut
	}
	c, err := x.quote(context.WithoutCancel(ctx), cut)
	if err != nil && j.ranks {
		return newest, j.cut, nil
	}
	return c, x.cut, err
}

// write has a model write the summary. If the need is hard or the configured model does not exist, a failure leads to
// another attempt with the request's own model.
func (j *llmJob) write(ctx context.Context) (c session.Condensation, err error) {
	j.span, err = inPool(ctx, &j.in, func() (*span, error) { return j.readCut(ctx, j.cut, j.recordTokens()) })
	if err != nil {
		return c, err
	}
	c, err = j.askModel(ctx)
	if err == nil || ctx.Err() != nil || !j.isConfigured(j.in) {
		return c, err
	}
	call, _ := errors.AsType[*CallError](err)
	if j.due.Need.Hard || call != nil && call.Missing() {
		j.modelErr = fmt.Errorf("condense %s: %w", j.name, err)
		j.LLM = j.ownModel(j.in)
		c, err = j.askModel(ctx)
	}
	return c, err
}

// askModel asks for the summary behind the client's request if that is cheaper, else by summarise.
func (j *llmJob) askModel(ctx context.Context) (c session.Condensation, err error) {
	j.maxOutput = j.s.MaxOutput
	first := j.callCount() == 0
	c, done, err := j.askBehindRequest(ctx)
	if done {
		return c, err
	}
	return j.withHealth(func(healthy bool) (session.Condensation, error) {
		return j.summarise(ctx, healthy && first) // one attempt for a model that failed recently
	})
}

// moreRoom is the factor by which an answer may be longer after one that was cut off, mostly by reasoning.
const moreRoom = 4

// summarise asks the model, and a second time if retry is set and a second attempt may succeed: with prompts for the window that
// the server reported, with more room for the answer if it was cut off, and with shorter events on a hard need.
func (j *llmJob) summarise(ctx context.Context, retry bool) (session.Condensation, error) {
	c, used, err := j.attempt(ctx, j.s.MaxEventLength, max(maxCalls-1-j.callCount(), 1))
	bad, _ := errors.AsType[*SummaryError](err)
	cutOff := bad != nil && bad.Kind == FaultTruncated
	fitted := j.fitted(j.in)
	overflown := fitted != j.LLM
	retry = retry && (overflown || cutOff || j.due.Need.Hard)
	if err == nil || !retry || ctx.Err() != nil || !mayRetry(err) {
		return c, err
	}
	switch {
	case overflown:
		j.LLM, j.maxOutput = fitted, fitted.s.MaxOutput
	case cutOff:
		j.maxOutput = max(j.maxOutput, min(moreRoom*j.maxOutput, j.window(j.in)/2))
	}
	if j.due.Need.Hard && !overflown {
		used = max(used/4, minEventLength)
	}
	c, _, err = j.attempt(ctx, used, maxCalls-j.callCount())
	return c, err
}

// attempt asks for a summary with events of at most limit runes, in one call, or if they do not fit, in parts with at most
// the given number of calls. It returns the length to which events were cut.
func (j *llmJob) attempt(ctx context.Context, limit, calls int) (c session.Condensation, used int, err error) {
	pl, err := inPool(ctx, &j.in, func() (plan, error) {
		pl, err := j.planPrompts(ctx, limit, calls)
		return pl, errors.Join(ctx.Err(), err)
	})
	if err != nil {
		return c, limit, err
	}
	text := pl.texts[0]
	if len(pl.texts) > 1 {
		text, err = j.readParts(ctx, pl)
		if err != nil {
			return c, pl.limit, err
		}
	}
	asked := j.request(text)
	r, err := j.call(ctx, asked)
	if err == nil {
		c, err = j.accept(ctx, r, asked, pl.texts)
	}
	return c, pl.limit, err
}

// planPrompts returns the summariser's prompts for at most the given number of calls. It fails if no answer could be used, because
// the user's own words, which must stand next to a record, leave no room for one.
func (j *llmJob) planPrompts(ctx context.Context, limit, calls int) (plan, error) {
	shortest := record.Summary{Record: ".", Events: j.span.hidden}
	shortest.Words = j.span.userWords(j.in.Count, shortest, j.summaryRoom())
	after := plus(j.cut.After, session.Size{Events: 1, Tokens: j.in.Count(shortest.String()) + messageOverhead})
	if !j.suffices(after) {
		return plan{}, FaultCrowded.errorf("%d tokens, before %d", after.Tokens, j.cut.Before.Tokens)
	}
	return j.prompt(ctx).plan(limit, calls)
}

func (j *llmJob) prompt(ctx context.Context) prompt {
	previous := j.span.previous
	if j.span.lateTokens > 0 {
		previous.Record = j.span.previousRecord()
	}
	budget := j.budget()
	return prompt{
		previous: previous.Text(), kept: j.span.kept(budget/keptShare, j.in.promptTokens),
		events: j.span.events, ids: j.in.Thread.Recall, ask: j.form.ask(j.words()),
		budget: budget, output: j.s.MaxOutput, count: j.in.promptTokens,
		cancelled: func() bool { return ctx.Err() != nil },
	}
}

func (j *llmJob) request(user string) Request {
	r := Request{Endpoint: j.endpoint(j.in), Model: j.model(j.in), System: j.system(), User: user, MaxOutput: j.maxOutput}
	j.form.shape(&r)
	return r
}

// maxInstructions is the maximum length of instructions that are passed on, in bytes: of the operator's, and of the client's.
const maxInstructions = 4 << 10

// exampleWindow is the minimum window, in tokens, that has room for an example.
const exampleWindow = 8000

func (j *llmJob) focus() Focus { return cmp.Or(j.s.Focus, j.span.weights.focus()) }

func (j *llmJob) system() string {
	f := j.focus()
	text := j.form.system(f)
	if j.s.Prompt != "" {
		text = j.s.Prompt + ownPromptEnd + j.form.closing()
	} else if _, plain := j.form.(prose); plain && j.window(j.in) >= exampleWindow {
		text += f.example()
	}
	if j.in.Thread.Recall {
		text += instructionsEvents
	}
	return text + j.instructions()
}

// instructions returns what the operator and the client say of the record, as a part of the prompt.
func (j *llmJob) instructions() string {
	text := ""
	for _, told := range [...]struct{ by, text string }{
		{"Besides, this holds for every record", j.s.Instructions}, {"The agent says of the record", j.in.Thread.Instructions},
		{"The user asks of this record", j.in.Thread.Asked},
	} {
		if said := strings.TrimSpace(told.text); said != "" {
			text += "\n\n" + told.by + ":\n" + strings.ToValidUTF8(said[:min(len(said), maxInstructions)], "")
		}
	}
	return text
}

// budget returns the number of tokens for the variable part of the prompt.
func (j *llmJob) budget() int {
	const messages = 4 * messageOverhead // two messages, priming, and a margin for other tokenizers
	r := j.request("")
	fixed := j.in.promptTokens(r.System) + messages
	if r.Function != nil {
		fixed += j.in.promptTokens(string(r.Function.JSON))
	}
	return j.window(j.in) - j.maxOutput - fixed
}

// replacedTokens returns the number of tokens that the record replaces.
func (j *llmJob) replacedTokens() int {
	return j.cut.ForgottenTokens + j.span.lateTokens + j.cut.Replaced
}

// words returns the maximum length of the record: half of the messages that it replaces, and well within MaxOutput.
func (j *llmJob) words() int {
	return min(j.s.MaxOutput*3/4, max(j.replacedTokens()/2, 100)) * 2 / 3
}

// call makes one call and counts it. It remembers the window if the prompt did not fit. It is safe for concurrent use.
func (j *llmJob) call(ctx context.Context, r Request) (Reply, error) {
	defer j.calls.Add(1)
	reply, err := j.s.Summariser.Summarise(ctx, r)
	e, ok := errors.AsType[*CallError](err)
	if ok && e.Window > 0 && r.Body == nil && j.s.Health != nil {
		j.s.Health.LearnWindow(Attempt{Endpoint: r.Endpoint, Model: r.Model}, j.inOurTokens(e, r))
	}
	return reply, err
}

// inOurTokens returns the window that a server reported. If its tokenizer counts more tokens than ours, up to twice as many, the
// window is that much smaller.
func (j *llmJob) inOurTokens(e *CallError, r Request) int {
	ours := 2*messageOverhead + j.in.promptTokens(r.System+r.User)
	if e.Prompt <= ours {
		return e.Window
	}
	return max(int(float64(e.Window)*float64(ours)/float64(e.Prompt)), e.Window/2)
}

func (j *llmJob) callCount() int { return int(j.calls.Load()) }

// accept makes a condensation of a reply, if the reply can be used. texts are the prompts that showed the events.
func (j *llmJob) accept(ctx context.Context, r Reply, asked Request, texts []string) (c session.Condensation, err error) {
	c, err = inPool(ctx, &j.in, func() (c session.Condensation, err error) {
		text, err := j.form.record(r)
		if err != nil {
			return c, err
		}
		instructions, shown := j.shownTo(asked, texts)
		text, grounding, err := grounded(text, instructions, shown...)
		if err != nil {
			return c, err
		}
		c, err = j.withRecord(text, min(j.replacedTokens(), 2*j.s.MaxOutput))
		c.Grounding = grounding
		return c, err
	})
	c.Model, c.Prompt = asked.Model, promptVersion(asked)
	return c, err
}

// withRecord returns the condensation with a record of fewer than limit tokens. Quotes next to the record are left out as far
// as necessary for the view to shrink enough. It fails if the view does not.
func (j *llmJob) withRecord(text string, limit int) (session.Condensation, error) {
	if n := j.in.Count(text); n >= limit {
		return session.Condensation{}, FaultInflated.errorf("%d tokens, limit %d", n, limit)
	}
	c, enough := j.complete(j.span, text)
	if !enough {
		return session.Condensation{}, FaultInflated.errorf("the request would have %d tokens instead of %d", c.After.Tokens, c.Before.Tokens)
	}
	c.Calls, c.Reused = j.callCount(), j.reuseUsage
	return c, nil
}

// promptVersion returns a short hash of the instructions in a request. testdata/prompts.list holds those of all prompts that
// ever existed, so that a record can be explained after the prompt has changed.
func promptVersion(r Request) string {
	sum := sha256.New()
	sum.Write([]byte(r.System))
	for _, s := range []*Schema{r.Function, r.Format} {
		if s != nil {
			sum.Write(s.JSON)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
