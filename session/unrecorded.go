package session

import (
	"context"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/lru"
)

// WithoutRecords wraps a store so that no text of a condensation is stored: records quote what users, tools and models wrote. The newest texts are
// kept in memory. A condensation whose text is not there any more, or that another replica made, counts as never made (see Legible), so its
// messages are shown again until they are condensed again. Texts that were stored before are still read.
func WithoutRecords(store Backend) Backend {
	return &unrecorded{
		Backend:  store,
		texts:    lru.New[CondensationID, madeText](summaryCacheSize),
		prepared: lru.New[ThreadID, madeReady](summaryCacheSize),
	}
}

type unrecorded struct {
	Backend
	texts    lru.Cache[CondensationID, madeText]
	prepared lru.Cache[ThreadID, madeReady]
}

// madeText is the text of a condensation that was logged at a time.
type madeText struct {
	text string
	at   time.Time
}

// madeReady is a condensation that was prepared for a thread which began at a time.
type madeReady struct {
	c     Condensation
	began time.Time
}

func (u *unrecorded) Condense(ctx context.Context, thread ThreadID, c Condensation) (Condensation, error) {
	text := c.Summary
	c.Summary = ""
	c, err := u.Backend.Condense(ctx, thread, c)
	if err != nil {
		return c, err
	}
	if c.Summary = text; text != "" {
		u.texts.Add(c.ID, madeText{text, c.Time})
	}
	if c.Answers() {
		u.prepared.Remove(thread)
	}
	return c, nil
}

// Summary checks that the thread still lists the condensation: a thread that was deleted may begin again, and number its entries from the start.
func (u *unrecorded) Summary(ctx context.Context, id CondensationID) (string, error) {
	made, found := u.texts.Get(id)
	if !found {
		text, err := u.Backend.Summary(ctx, id)
		if err == nil && text == "" {
			err = ErrNotFound
		}
		return text, err
	}
	t, err := u.Backend.Thread(ctx, id.Thread)
	if err != nil {
		return "", err
	}
	if !slices.ContainsFunc(t.Listed(), func(c Condensation) bool { return c.ID == id && c.Time.Equal(made.at) }) {
		return "", ErrNotFound
	}
	return made.text, nil
}

func (u *unrecorded) Prepare(ctx context.Context, thread ThreadID, c Condensation) error {
	t, err := u.Backend.Thread(ctx, thread)
	if err != nil {
		return err
	}
	c.ID = CondensationID{Thread: thread}
	u.prepared.Add(thread, madeReady{c, t.Created})
	return nil
}

func (u *unrecorded) Prepared(ctx context.Context, thread ThreadID) (Condensation, error) {
	ready, found := u.prepared.Get(thread)
	if !found {
		return u.Backend.Prepared(ctx, thread)
	}
	t, err := u.Backend.Thread(ctx, thread)
	if err == nil && !t.Created.Equal(ready.began) {
		err = ErrNotFound
	}
	if err != nil {
		return Condensation{}, err
	}
	return ready.c, nil
}
