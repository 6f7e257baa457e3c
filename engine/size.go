package engine

import (
	"cmp"
	"context"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// withoutFiles is the remedy for a request that is too large for upstream in bytes, images or pages: old messages go without theirs. The
// condensation is on trial until the form is settled.
func withoutFiles(f *Form, r refusal) (plan, bool) {
	if f.relief.withoutFiles || !f.mayShrink() {
		return plan{form: f}, false
	}
	size := f.bodySize()
	job := condense.WithoutFiles(f.input(f.requested()), size)
	if job == nil {
		return plan{form: f}, false
	}
	f = f.with(func(next *Form) {
		next.relief.withoutFiles = true
		if !r.Files { // their number says nothing about bytes
			next.relief.tooLarge = size
		}
		if len(next.relief.trial) == 0 {
			shown := next.shown
			next.relief.beforeTrial = &shown
		}
		next.relief.onTrial = true
	})
	return plan{form: f, work: applying(job), need: job.Need(), helps: f.condensedFurther}, true
}

// shrunkBody is the remedy for a request that is too large for upstream in bytes without any images or files to leave out. If upstream does not say
// that this is the reason and has not refused large bodies before, and the request is changed, the change may be: it is tried unchanged first.
func shrunkBody(f *Form, r refusal) (plan, bool) {
	if f.relief.tries > 0 || !f.mayShrink() || !r.Large && f.changed() && !r.sizeKnown {
		return plan{form: f}, false
	}
	if view := f.relief.withheld; view != nil { // unchanged, it is too large as well
		f = f.showing(*view).with(func(next *Form) {
			next.relief.withheld, next.relief.verbatim, next.relief.refused = nil, false, false
		})
	}
	size := f.bodySize()
	p, plausible := f.shrinking(overflow.Overflow{Evidence: overflow.ByForm})
	p.form = p.form.with(func(next *Form) {
		next.relief.exceeded = 0 // it says nothing about tokens
		next.relief.tooLarge = cmp.Or(next.relief.tooLarge, size)
	})
	return p, plausible
}

// applying returns the work of running a job that asks no model. Unless the form is on trial, it logs the condensation.
func applying(job condense.Job) formWork {
	return func(ctx context.Context, f *Form, report *Report) *Form {
		f, _ = f.applyJob(ctx, job, !f.relief.onTrial, report)
		return f.with(func(next *Form) { next.relief.onTrial = false })
	}
}

// condensedFurther reports whether a later form has more condensations.
func (f *Form) condensedFurther(next *Form) bool {
	return len(next.shown.applied) > len(f.shown.applied)
}

// limitSize makes the request smaller if its body has as many bytes as one that upstream has refused for its size. Old messages are shown without
// their images and files. If that is not enough, the request has to fit a window of as many tokens as a body just below that size would have.
func (f *Form) limitSize(ctx context.Context, report *Report) *Form {
	refused, known := f.turn.engine.lessons.Size(f.turn.lessons)
	if !known {
		return f
	}
	refused = refused * 9 / 10 // the limit may be a little lower
	size := f.bodySize()
	if size < refused || f.place.Again || f.place.Match == session.MatchReplay {
		return f
	}
	if job := condense.WithoutFiles(f.input(f.requested()), size); job != nil {
		next, step, _ := f.await(ctx, job.Need().Reason, applying(job))
		report.add(step)
		f = next
	}
	size = f.bodySize()
	window := int(float64(f.calibrate(f.size().Tokens))*float64(refused)/float64(size)) + f.reserved()
	if size < refused || f.relief.window > 0 && f.relief.window <= window {
		return f
	}
	return f.with(func(next *Form) { next.relief.window = window })
}

// bodySize returns the size of the body that goes upstream, in bytes.
func (f *Form) bodySize() (n int) {
	for _, part := range f.Body() {
		n += len(part)
	}
	return n
}
