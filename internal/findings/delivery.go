package findings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// How a delivery goes.
const (
	openTime   = 30 * time.Second // to reach a sink
	tellTime   = 15 * time.Second // for a sink to take what it is told
	writeTime  = 5 * time.Minute  // within which a condensation is logged that was promised, if it ever is
	mostPassed = 8                // over in a row, after which the sink counts as failing, or the store
)

// What becomes of a notice without being counted.
const (
	waits Outcome = "waits"
	never Outcome = "" // its condensation was not logged after all
)

// delivery is the use of a sink in one round.
type delivery struct {
	*rounds
	route  *Route
	line   Line  // nil: it is not open yet
	passed int   // over, in a row
	unread error // why the last notice that was not readable is not; nil: all were
}

func (d *delivery) close() {
	if d.line != nil {
		d.line.Close()
	}
}

// tell tells of notices in order. It gives how many of those stay that it passed over, and why it broke off.
func (d *delivery) tell(ctx context.Context, page []session.Notice) (stay int, err error) {
	for i, n := range page {
		o, err := d.one(ctx, n)
		d.passed++
		switch wrong := what(err); {
		case err == nil:
			d.passed = 0
		case wrong == fails:
			d.expire(ctx, page[i+1:])
			return stay, err
		case wrong == "":
			return stay, err
		}
		if o == waits {
			stay++
		}
		if d.passed == mostPassed {
			return stay, err
		}
	}
	return stay, nil
}

// one tells of a notice, and dequeues it unless it waits on.
func (d *delivery) one(ctx context.Context, n session.Notice) (Outcome, error) {
	told, o, err := d.find(ctx, n)
	if err == nil && told != nil {
		err = d.deliver(ctx, told)
	}
	if err != nil {
		if o = waits; what(err) != "" && d.expired(n) {
			o = Expired
		}
	}
	if failed := d.settle(ctx, n, o); failed != nil {
		return waits, failed
	}
	return o, err
}

func (d *delivery) expired(n session.Notice) bool { return time.Since(n.Made) > d.route.MaxAge }

// expire drops what cannot be delivered for too long.
func (d *delivery) expire(ctx context.Context, page []session.Notice) {
	for _, n := range page {
		if d.expired(n) && d.settle(ctx, n, Expired) != nil {
			return
		}
	}
}

func (d *delivery) settle(ctx context.Context, n session.Notice, o Outcome) error {
	if o == waits {
		return nil
	}
	if err := d.o.Store.Dequeue(ctx, n); err != nil {
		return fmt.Errorf("settle a notice: %w", err)
	}
	if o != never {
		d.o.Watch.Findings(d.tenant, o)
	}
	return nil
}

// find reads what there is to tell of a notice; where that is nothing, what becomes of it.
func (d *delivery) find(ctx context.Context, n session.Notice) (told *Told, o Outcome, err error) {
	thread, err := d.o.Store.Thread(ctx, n.Thread)
	if errors.Is(err, session.ErrNotFound) {
		return nil, d.missing(n, Gone), nil
	}
	if err != nil {
		return nil, waits, d.unreadable(ctx, fmt.Errorf("read thread: %w", err))
	}
	c := n.Named(&thread)
	if c == nil {
		return nil, d.missing(n, never), nil
	}
	text, err := d.o.Store.Summary(ctx, c.ID)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, Gone, nil
	case errors.Is(err, session.ErrUnreadable):
		return nil, waits, d.unreadable(ctx, errors.New("the summary cannot be read: is its key missing in store.encryption.keys?"))
	case err != nil:
		return nil, waits, d.unreadable(ctx, fmt.Errorf("read summary: %w", err))
	}
	return telling(&thread, c, record.Findings(text)), Delivered, nil
}

// unreadable is the error of a notice alone: others may be readable.
func (d *delivery) unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	d.unread = &trouble{unread, err}
	return d.unread
}

// missing is what becomes of a notice whose condensation is not there: it may be logged just now.
func (d *delivery) missing(n session.Notice, o Outcome) Outcome {
	if time.Since(n.Made) < writeTime {
		return waits
	}
	return o
}

// deliver tells the sink, and says when that begins to fail or works again.
func (d *delivery) deliver(ctx context.Context, t *Told) error {
	err := d.reach(ctx)
	if err == nil {
		err = within(ctx, tellTime, func(ctx context.Context) error { return d.line.Tell(ctx, t) })
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if failing := err != nil; failing != d.failing {
		d.failing = failing
		d.o.Watch.Sink(d.tenant, err)
	}
	if err == nil {
		return nil
	}
	d.o.Watch.Findings(d.tenant, Failed)
	if _, is := errors.AsType[*RefusedError](err); is {
		return &trouble{refuses, err}
	}
	return &trouble{fails, err}
}

// trouble is an error with what goes wrong.
type trouble struct {
	what string
	error
}

func (e *trouble) Unwrap() error { return e.error }

// What goes wrong with a notice.
const (
	fails   = "the sink fails"
	refuses = "the sink refuses it" // and may take another
	unread  = "it cannot be read"   // while another may be
)

// what is empty for an error that keeps all notices waiting.
func what(err error) string {
	if e, is := errors.AsType[*trouble](err); is {
		return e.what
	}
	return ""
}

// reach opens the sink.
func (d *delivery) reach(ctx context.Context) error {
	if d.line != nil {
		return nil
	}
	return within(ctx, openTime, func(ctx context.Context) (err error) {
		d.line, err = d.route.Sink.Open(ctx)
		return err
	})
}

// within gives a sink a time.
func within(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return do(ctx)
}
