package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Pending is a condensation that was prepared for a thread. It is applied once one is due.
type Pending struct {
	session.Condensation
	Version string // changes with the summary
}

// Errors that Correct wraps.
var (
	ErrOtherVersion = errors.New("the record is another one than was read")
	ErrNotShorter   = errors.New("the record is not shorter than what it stands for")
)

// Pending returns the condensation that was prepared for a thread, with a summary. It wraps session.ErrNotFound if there is none.
func (e *Engine) Pending(ctx context.Context, thread session.ThreadID) (p Pending, err error) {
	err = e.withStore(ctx, func(ctx context.Context, s session.Store, _ session.Secret) error {
		p, err = pending(ctx, s, thread)
		return err
	})
	return p, err
}

func pending(ctx context.Context, s session.Store, thread session.ThreadID) (Pending, error) {
	c, err := s.Prepared(ctx, thread)
	if err == nil && c.Summary == "" {
		err = session.ErrNotFound
	}
	if err != nil {
		return Pending{}, fmt.Errorf("read pending record: %w", err)
	}
	sum := sha256.Sum256([]byte(c.ID.Thread + session.ThreadID(c.Hash.String()) + session.ThreadID(c.Summary)))
	return Pending{Condensation: c, Version: hex.EncodeToString(sum[:8])}, nil
}

// correctionLease is for how long a correction locks the thread.
const correctionLease = 5 * time.Second

// Correct replaces the record of a thread's pending condensation by an operator's text, and pins another to it, which may be empty. The user's own words and
// the excerpts beside it stay. version is that of the record which the operator has read.
func (e *Engine) Correct(ctx context.Context, thread session.ThreadID, version, text, pinned string) (p Pending, err error) {
	err = e.withStore(ctx, func(ctx context.Context, s session.Store, _ session.Secret) error {
		lease, err := s.Lock(ctx, thread, correctionLease)
		if err != nil {
			return fmt.Errorf("lock thread: %w", err)
		}
		defer lease.Release()
		if p, err = pending(ctx, s, thread); err != nil {
			return err
		}
		if p.Version != version {
			return ErrOtherVersion
		}
		if err := e.correct(&p.Condensation, text, pinned); err != nil {
			return err
		}
		if err := s.Prepare(ctx, thread, p.Condensation); err != nil {
			return fmt.Errorf("store corrected record: %w", err)
		}
		p, err = pending(ctx, s, thread)
		return err
	})
	return p, err
}

// correct changes the summary and what follows from its size.
func (e *Engine) correct(c *session.Condensation, text, pinned string) error {
	sum := record.Parse(c.Summary)
	sum.Record, sum.Pinned, sum.Corrected = text, pinned, true
	c.Summary = sum.String()
	tokens := e.o.Tokens.Counter(c.Request).Text(c.Summary)
	c.After.Tokens += tokens - c.SummaryTokens
	c.SummaryTokens = tokens
	if c.After.Tokens >= c.Before.Tokens {
		return fmt.Errorf("%w: the request would have %d tokens instead of %d", ErrNotShorter, c.After.Tokens, c.Before.Tokens)
	}
	return nil
}
