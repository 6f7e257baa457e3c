package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// summaryKey identifies a summary in the cache. A condensation's id is not enough: a thread whose record was evicted or has
// expired begins again under its old id and numbers its entries from the start.
type summaryKey struct {
	id   CondensationID
	made int64 // in Unix nanoseconds
}

func summaryKeyOf(c *Condensation) summaryKey { return summaryKey{id: c.ID, made: c.Time.UnixNano()} }

// Condensations returns the condensations of the resolution's thread that apply to its history, with the texts that its
// view shows; see Legible. It sets res.Unreadable.
func (r *Registry) Condensations(ctx context.Context, res *Resolution) (applied []Condensation, err error) {
	applied, res.Unreadable, err = Legible(res.query.History, res.Thread.Condensations, func(c *Condensation) (string, error) {
		return r.summary(ctx, res.Thread.ID, c)
	})
	return applied, err
}

// Legible returns the condensations of a thread that apply to a history, with the summary and the added texts that its view
// shows, which it gets from read. A condensation whose text is lost (ErrNotFound) or cannot be read (ErrUnreadable) counts
// as never made, and so do those that build on it: the messages that they forgot are shown again, and may be condensed
// again. unreadable is the number of those that cannot be read.
func Legible(
	h *History, all []Condensation, read func(*Condensation) (string, error),
) (applied []Condensation, unreadable int, err error) {
	for {
		applied = Applicable(h, all)
		lost, err := readTexts(applied, read)
		switch {
		case lost == nil:
			return applied, unreadable, nil
		case errors.Is(err, ErrUnreadable):
			unreadable++
		case !errors.Is(err, ErrNotFound):
			return nil, unreadable, fmt.Errorf("read summary: %w", err)
		}
		all = slices.DeleteFunc(slices.Clone(all), func(c Condensation) bool { return c.ID == lost.ID })
	}
}

// readTexts reads the texts that a view shows. It returns the first condensation whose text it cannot read, and why.
func readTexts(applied []Condensation, read func(*Condensation) (string, error)) (lost *Condensation, err error) {
	summary := summaryOf(applied)
	for i := range applied {
		c := &applied[i]
		if c != summary && c.Added == 0 {
			continue
		}
		c.Summary, err = read(c)
		if err != nil {
			return c, err
		}
	}
	return nil, nil
}

// summary returns the text of a condensation that a thread lists, from the cache or the store. It returns ErrNotFound if the text is lost,
// and ErrUnreadable if it is unreadable or empty, since an empty text cannot replace messages. Unreadable texts are cached too, because keys
// do not change while the process runs.
func (r *Registry) summary(ctx context.Context, thread ThreadID, c *Condensation) (string, error) {
	text, cached := r.summaries.Get(summaryKeyOf(c))
	if !cached {
		var err error
		text, err = r.store.Summary(ctx, c.ID)
		if err == nil && c.ID.Thread != thread {
			err = r.verifyMaker(ctx, c)
		}
		if err != nil && !errors.Is(err, ErrUnreadable) {
			return "", err
		}
		r.summaries.Add(summaryKeyOf(c), text)
	}
	if text == "" {
		return "", ErrUnreadable
	}
	return text, nil
}

// verifyMaker checks that a condensation which a thread inherited is still the one that its maker, the thread that logged it, lists under
// that id. If the maker's record was lost and the thread began again, the id may now be that of another condensation: verifyMaker then
// returns ErrNotFound.
func (r *Registry) verifyMaker(ctx context.Context, c *Condensation) error {
	maker, err := r.store.Thread(ctx, c.ID.Thread)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(maker.Listed(), func(m Condensation) bool { return summaryKeyOf(&m) == summaryKeyOf(c) }) {
		return nil
	}
	return ErrNotFound
}
