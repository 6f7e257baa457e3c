package condense

import (
	"context"
	"errors"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// ErrAtOnce is why a condensation has no summary although its summariser did not fail: the request does not wait for one.
var ErrAtOnce = errors.New("the request does not wait for a summary")

// standIn makes the condensation of a request that must become smaller while no model is to be had, as Excerpts would: what was
// recorded before stays, with a note of what is missing. It is the one place where that is made, for every condenser that asks a
// model, even if the time is over. The cut is taken if one with room for excerpts is not worth while.
func (l *LLM) standIn(ctx context.Context, in Input, due Due, cut Cut) (session.Condensation, error) {
	c, _, err := l.standInBy(ctx, in, due, cut)
	return c, err
}

// standInBy is standIn with the cut that it took.
func (l *LLM) standInBy(ctx context.Context, in Input, due Due, cut Cut) (session.Condensation, Cut, error) {
	j := &excerptsJob{settings: l.s.Settings, name: l.s.Name, in: in, due: due, cut: l.plainCut(in, due, cut), provisional: true}
	c, err := j.quote(context.WithoutCancel(ctx), j.cut)
	return c, j.cut, err
}

// plainCut is the cut with room for excerpts, or else the one with room for a summary.
func (l *LLM) plainCut(in Input, due Due, cut Cut) Cut {
	if own, ok := (Excerpts{Settings: l.s.Settings}).cutFor(in, due); ok {
		return own
	}
	return cut
}

// atOnce goes without a model for now.
func (j *llmJob) atOnce(ctx context.Context) (Result, error) {
	later := &llmJob{LLM: j.LLM, in: j.in, due: j.due, failed: j.failed}
	return j.before(ctx, later, later)
}

// before is what stands in until a later job has asked the model. While the model is left alone, it is not asked later either.
func (j *llmJob) before(ctx context.Context, later Job, l *llmJob) (Result, error) {
	c, cut, err := j.standInBy(ctx, j.in, j.due, j.cut)
	if err != nil {
		return Result{}, err
	}
	if j.cooling(j.in) {
		return Result{Condensation: c, Fallback: ErrCooling}, nil
	}
	view := *j.in.View
	l.in.View, l.in.Thread.Sent, l.due.Need = &view, nil, Need{Reason: j.due.Need.Reason}
	l.cut, l.settled = cut, true // the summary is of what is hidden already
	return Result{Condensation: c, Fallback: ErrAtOnce, Later: later}, nil
}

// plain goes without a ranking as a rolling summary goes without a model. Where there is no room for a note, the newest events stay.
func (j *attentionJob) plain(ctx context.Context) session.Condensation {
	cut, ok := j.s.Cut(j.in, j.due, session.Size{Events: 1, Tokens: j.allowance(j.in, j.due.Target.Tokens)})
	if ok {
		if c, err := j.standIn(ctx, j.in, j.due, cut); err == nil {
			return c
		}
	}
	c := j.newest.condensation(j.due.Need.Reason, j.s.Name)
	c.Provisional = true
	return c
}
