package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// summaryName is what a summary is remembered by. A condensation's id alone is not enough: a thread whose record was
// evicted, or has expired, begins again under its old name and counts its entries from the start.
type summaryName struct {
	id   CondensationID
	hash Hash
	made int64
}

func named(c *Condensation) summaryName { return summaryName{c.ID, c.Hash, c.Time.UnixNano()} }

// Condensations gives a thread's condensations that apply to the history, with the summary that its view shows. One
// whose summary is lost counts as if it had never been made, and so do those that build on it: what it has forgotten is
// shown again, and may be condensed again.
func (r *Registry) Condensations(ctx context.Context, res *Resolution) ([]Condensation, error) {
	all := res.Thread.Condensations
	for {
		applied := Applicable(res.query.History, all)
		shown := summaryOf(applied)
		if shown == nil {
			return applied, nil
		}
		summary, err := r.summary(ctx, res.Thread.ID, shown)
		if err == nil {
			shown.Summary = summary
			return applied, nil
		}
		if !errors.Is(err, ErrNotFound) {
			return nil, fmt.Errorf("read summary: %w", err)
		}
		all = without(all, shown.ID)
	}
}

func without(all []Condensation, id CondensationID) []Condensation {
	return slices.DeleteFunc(slices.Clone(all), func(c Condensation) bool { return c.ID == id })
}

// summary reads the summary of a condensation in the list of the thread id; ErrNotFound if it is lost.
func (r *Registry) summary(ctx context.Context, id ThreadID, c *Condensation) (string, error) {
	if text, ok := r.summaries.Get(named(c)); ok {
		return text, nil
	}
	text, err := r.store.Summary(ctx, c.ID)
	if err == nil && text == "" {
		err = ErrNotFound // a summary is never empty
	}
	if err == nil && c.ID.Thread != id {
		err = r.stillMade(ctx, c)
	}
	if err != nil {
		return "", err
	}
	r.summaries.Add(named(c), text)
	return text, nil
}

// stillMade makes sure that a condensation which a fork inherited is the one that its maker's record has under that id:
// a maker that was lost and began again may have another one there. ErrNotFound if not.
func (r *Registry) stillMade(ctx context.Context, c *Condensation) error {
	maker, err := r.store.Thread(ctx, c.ID.Thread)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(maker.Condensations, func(m Condensation) bool { return named(&m) == named(c) }) {
		return nil
	}
	return ErrNotFound
}
