package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"
)

// Prepare stores a condensation of a view. A later request reads it with Prepared and may log it.
func (r *Registry) Prepare(ctx context.Context, res *Resolution, view *View, c Condensation) error {
	c.Time = time.Now()
	c.buildOn(view)
	c.Hidden = hiddenBy(res.query.History, &c)
	if err := r.store.Prepare(ctx, res.Thread.ID, c); err != nil {
		return fmt.Errorf("store prepared condensation: %w", err)
	}
	return nil
}

// Prepared returns a condensation that was prepared for the resolution's thread or for a thread in its line of predecessors, if it can be
// added to those that the view shows. Otherwise it returns ErrNotFound.
func (r *Registry) Prepared(ctx context.Context, res *Resolution, view *View) (Condensation, error) {
	shared := res.query.History.Len()
	for t, err := range r.line(ctx, &res.Thread) {
		if err != nil {
			return Condensation{}, err
		}
		c, err := r.store.Prepared(ctx, t.ID)
		switch {
		case err == nil && r.adapt(ctx, view, t, &c, shared):
			return c, nil
		case err != nil && !errors.Is(err, ErrNotFound):
			return Condensation{}, fmt.Errorf("read prepared condensation: %w", err)
		}
		shared = min(shared, t.ForkAt)
		if t.Follows != "" {
			shared = 0
		}
	}
	return Condensation{}, fmt.Errorf("no prepared condensation applies: %w", ErrNotFound)
}

// Preparing reports whether a condensation is being made for a predecessor of the resolution's thread. A client that edits its history begins a
// thread with each request, and one summary serves all of these threads.
func (r *Registry) Preparing(ctx context.Context, res *Resolution) (bool, error) {
	for t, err := range r.line(ctx, &res.Thread) {
		if err != nil {
			return false, err
		}
		if t.ID == res.Thread.ID {
			continue // the caller has locked it
		}
		lease, err := r.store.Lock(ctx, t.ID, time.Second)
		switch {
		case errors.Is(err, ErrLocked):
			return true, nil
		case err != nil:
			return false, fmt.Errorf("probe lock: %w", err)
		}
		lease.Release()
	}
	return false, nil
}

// maxLine is the maximum number of threads in a line. Each costs two reads, which a request may have to wait for.
const maxLine = 8

// line iterates over a thread and its line of predecessors, nearest first: each thread's predecessor or, if it has none, its parent.
func (r *Registry) line(ctx context.Context, t *Thread) iter.Seq2[*Thread, error] {
	return func(yield func(*Thread, error) bool) {
		for n := 0; t != nil && n < maxLine && yield(t, nil) && t.Parent != ""; n++ {
			var err error
			if t, err = r.readThread(ctx, cmp.Or(t.Follows, t.Parent)); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// adapt changes c, which was prepared for t's history, so that it applies to the view's history in addition to the condensations that the
// view shows. The two histories share positions 1 to shared. adapt returns false if c cannot apply.
func (r *Registry) adapt(ctx context.Context, view *View, t *Thread, c *Condensation, shared int) bool {
	if !view.isCurrent(c.Base) {
		return false
	}
	alone := *c
	alone.Base = CondensationID{}
	kept := r.carryOver(ctx, view.History, []Condensation{alone}, shared)
	if len(kept) == 0 {
		for i := range t.Condensations {
			alone.Base = t.Condensations[i].ID
		}
		kept = r.carry(ctx, view.History, t, append(slices.Clip(t.Condensations), alone), shared)
	}
	if len(kept) == 0 || kept[len(kept)-1].ID != c.ID {
		return false
	}
	*c = kept[len(kept)-1]
	c.buildOn(view)
	all := append(slices.Clone(view.Applied), *c)
	placeSummaries(all)
	*c = all[len(all)-1]
	return len(Applicable(view.History, all)) == len(all)
}

// isCurrent reports whether the view hides the same messages as right after the condensation base was made: later ones only trim or add
// text. A zero base stands for the view without condensations.
func (v *View) isCurrent(base CondensationID) bool {
	at := slices.IndexFunc(v.Applied, func(c Condensation) bool { return c.ID == base })
	later := slices.ContainsFunc(v.Applied[at+1:], func(c Condensation) bool { return c.Answers() })
	return !later && (at >= 0 || base == CondensationID{})
}

// Newest returns the newest condensation that the view shows, not counting those that only trim or add text. It returns nil
// if there is none.
func (v *View) Newest() *Condensation {
	for i := len(v.Applied) - 1; i >= 0; i-- {
		if v.Applied[i].Answers() {
			return &v.Applied[i]
		}
	}
	return nil
}
