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
	span Hash
	made int64
}

func named(c *Condensation) summaryName { return summaryName{c.ID, c.Hidden.Span, c.Time.UnixNano()} }

// Condensations gives a thread's condensations that apply to the history, with the summary that its view shows: see Legible.
// The resolution counts those that cannot be read.
func (r *Registry) Condensations(ctx context.Context, res *Resolution) (applied []Condensation, err error) {
	applied, res.Unreadable, err = Legible(res.query.History, res.Thread.Condensations, func(c *Condensation) (string, error) {
		return r.summary(ctx, res.Thread.ID, c)
	})
	return applied, err
}

// Legible gives those of a thread's condensations that apply to a history, with the summary and the added texts that its view shows, as read
// gives them. One whose summary is lost (ErrNotFound) or cannot be read (ErrUnreadable) counts as if it had never been made,
// and so do those that build on it: what it has forgotten is shown again, and may be condensed again. Unreadable counts
// those that cannot be read.
func Legible(
	h *History, all []Condensation, read func(*Condensation) (string, error),
) (applied []Condensation, unreadable int, err error) {
	for {
		applied = Applicable(h, all)
		lost, err := readShown(applied, read)
		switch {
		case lost == nil:
			return applied, unreadable, nil
		case errors.Is(err, ErrUnreadable):
			unreadable++
		case !errors.Is(err, ErrNotFound):
			return nil, unreadable, fmt.Errorf("read summary: %w", err)
		}
		all = without(all, lost.ID)
	}
}

// readShown reads the texts that a view shows. It gives the first that it cannot read, and why.
func readShown(applied []Condensation, read func(*Condensation) (string, error)) (lost *Condensation, err error) {
	summary := summaryOf(applied)
	for i := range applied {
		c := &applied[i]
		if c != summary && c.Added == 0 {
			continue
		}
		if c.Summary, err = read(c); err != nil {
			return c, err
		}
	}
	return nil, nil
}

func without(all []Condensation, id CondensationID) []Condensation {
	return slices.DeleteFunc(slices.Clone(all), func(c Condensation) bool { return c.ID == id })
}

// summary reads the summary of a condensation in the list of the thread id, or remembers it; ErrNotFound if it is lost. An
// empty one stands for nothing that was forgotten: it is not readable either. Keys do not change while the process runs,
// so what was unreadable once stays so.
func (r *Registry) summary(ctx context.Context, id ThreadID, c *Condensation) (string, error) {
	text, known := r.summaries.Get(named(c))
	if !known {
		var err error
		text, err = r.store.Summary(ctx, c.ID)
		if err == nil && c.ID.Thread != id {
			err = r.stillMade(ctx, c)
		}
		if err != nil && !errors.Is(err, ErrUnreadable) {
			return "", err
		}
		r.summaries.Add(named(c), text)
	}
	if text == "" {
		return "", ErrUnreadable
	}
	return text, nil
}

// stillMade makes sure that a condensation which a fork inherited is the one that its maker's record has under that id:
// a maker that was lost and began again may have another one there. ErrNotFound if not.
func (r *Registry) stillMade(ctx context.Context, c *Condensation) error {
	maker, err := r.store.Thread(ctx, c.ID.Thread)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(maker.Listed(), func(m Condensation) bool { return named(&m) == named(c) }) {
		return nil
	}
	return ErrNotFound
}
