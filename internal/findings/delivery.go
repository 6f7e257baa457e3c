package findings

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	openTimeout = 30 * time.Second // to connect to a sink
	sendTimeout = 15 * time.Second // for a sink to accept a message
	logTimeout  = 5 * time.Minute  // a promised condensation is logged within this time, or never
	maxSkipped  = 8                // consecutive notices without a delivery, after which the round ends
)

// Outcomes of a notice that are not counted.
const (
	waits     Outcome = "waits"
	notLogged Outcome = "" // the promised condensation was never logged
)

// delivery is one round of deliveries to a sink.
type delivery struct {
	*rounds
	route   *Route
	conn    Conn  // nil: not connected yet
	skipped int   // consecutive notices without a delivery
	unread  error // why the last unreadable notice cannot be read; nil: all can
}

func (d *delivery) close() {
	if d.conn != nil {
		d.conn.Close()
	}
}

// deliver delivers a page of notices in order. It returns how many of those it handled keep waiting, and why it ended early.
func (d *delivery) deliver(ctx context.Context, page []session.Notice) (kept int, err error) {
	for i, n := range page {
		o, err := d.deliverOne(ctx, n)
		d.skipped++
		kind := kindOf(err)
		switch {
		case err == nil:
			d.skipped = 0
		case kind == sinkFails:
			d.expire(ctx, page[i+1:])
			return kept, err
		case kind == otherError:
			return kept, err
		}
		if o == waits {
			kept++
		}
		if d.skipped == maxSkipped {
			return kept, err
		}
	}
	return kept, nil
}

// deliverOne delivers the findings of a notice, and dequeues the notice unless it has to wait.
func (d *delivery) deliverOne(ctx context.Context, n session.Notice) (Outcome, error) {
	message, o, err := d.read(ctx, n)
	if err == nil && message != nil {
		err = d.send(ctx, message)
	}
	if err != nil {
		o = waits
		if kindOf(err) != otherError && d.expired(n) {
			o = Expired
		}
	}
	if failed := d.settle(ctx, n, o); failed != nil {
		return waits, failed
	}
	return o, err
}

func (d *delivery) expired(n session.Notice) bool { return time.Since(n.Made) > d.route.MaxAge }

// expire drops the expired notices of a page.
func (d *delivery) expire(ctx context.Context, page []session.Notice) {
	for _, n := range page {
		if d.expired(n) && d.settle(ctx, n, Expired) != nil {
			return
		}
	}
}

// settle dequeues a notice, unless it has to wait, and reports the outcome.
func (d *delivery) settle(ctx context.Context, n session.Notice, o Outcome) error {
	if o == waits {
		return nil
	}
	if err := d.courier.store.Dequeue(ctx, n); err != nil {
		return fmt.Errorf("dequeue notice: %w", err)
	}
	if o != notLogged {
		d.courier.observer.Findings(d.tenant, o)
	}
	return nil
}

// read returns the message of a notice, or nil and the outcome if there is none.
func (d *delivery) read(ctx context.Context, n session.Notice) (*Message, Outcome, error) {
	thread, err := d.courier.store.Thread(ctx, n.Thread)
	if errors.Is(err, session.ErrNotFound) {
		return nil, missing(n, Gone), nil
	}
	if err != nil {
		return nil, waits, d.unreadable(ctx, fmt.Errorf("read thread: %w", err))
	}
	c := n.Named(&thread)
	if c == nil {
		return nil, missing(n, notLogged), nil
	}
	text, err := d.courier.store.Summary(ctx, c.ID)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, Gone, nil
	case errors.Is(err, session.ErrUnreadable):
		return nil, waits, d.unreadable(ctx, errors.New("the summary cannot be decrypted: is its key missing in store.encryption.keys?"))
	case err != nil:
		return nil, waits, d.unreadable(ctx, fmt.Errorf("read summary: %w", err))
	}
	return newMessage(&thread, c, record.Findings(text)), Delivered, nil
}

// unreadable marks an error as one of this notice only, unless ctx has ended.
func (d *delivery) unreadable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return err
	}
	d.unread = err
	return &deliveryError{noticeUnreadable, err}
}

// missing returns the outcome of a notice whose condensation was not found: o, unless it may still be logged.
func missing(n session.Notice, o Outcome) Outcome {
	if time.Since(n.Made) < logTimeout {
		return waits
	}
	return o
}

// send sends a message to the sink, and reports when the sink begins to fail or works again.
func (d *delivery) send(ctx context.Context, m *Message) error {
	err := d.connect(ctx)
	if err == nil {
		err = within(ctx, sendTimeout, func(ctx context.Context) error { return d.conn.Send(ctx, m) })
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	if failing := err != nil; failing != d.failing {
		d.failing = failing
		d.courier.observer.Sink(d.tenant, err)
	}
	if err == nil {
		return nil
	}
	d.courier.observer.Findings(d.tenant, Failed)
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return &deliveryError{sinkRefuses, err}
	}
	return &deliveryError{sinkFails, err}
}

// errorKind says what a failed delivery means for the other notices.
type errorKind int

const (
	otherError       errorKind = iota // all notices keep waiting
	sinkFails                         // for every message
	sinkRefuses                       // this message; it may accept others
	noticeUnreadable                  // others may be readable
)

// deliveryError is an error with its kind.
type deliveryError struct {
	kind errorKind
	error
}

func kindOf(err error) errorKind {
	if e, ok := errors.AsType[*deliveryError](err); ok {
		return e.kind
	}
	return otherError
}

// connect opens the sink, if it is not open yet.
func (d *delivery) connect(ctx context.Context) error {
	if d.conn != nil {
		return nil
	}
	return within(ctx, openTimeout, func(ctx context.Context) (err error) {
		d.conn, err = d.route.Sink.Open(ctx)
		return err
	})
}

// within calls do with a timeout.
func within(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx)
}
