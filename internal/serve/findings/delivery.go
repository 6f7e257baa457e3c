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

// failure says what a failed delivery means for the other notices.
type failure int

const (
	noFailure        failure = iota
	storeFails               // the store failed, or the round was cancelled: all notices keep waiting
	sinkFails                // the sink accepts no message
	sinkRefuses              // the sink refuses this message, but may accept others
	noticeUnreadable         // this notice cannot be read, but others may be readable
)

// deliver delivers a page of notices in order. It returns how many of those it handled keep waiting, and why it ended early.
func (d *delivery) deliver(ctx context.Context, page []session.Notice) (kept int, ended failure) {
	for i, n := range page {
		o, why := d.deliverOne(ctx, n)
		d.skipped++
		switch why {
		case noFailure:
			d.skipped = 0
		case sinkFails:
			d.expire(ctx, page[i+1:])
			return kept, why
		case storeFails:
			return kept, why
		}
		if o == waits {
			kept++
		}
		if d.skipped == maxSkipped {
			return kept, why
		}
	}
	return kept, noFailure
}

// deliverOne delivers the findings of a notice, and dequeues the notice unless it has to wait.
func (d *delivery) deliverOne(ctx context.Context, n session.Notice) (Outcome, failure) {
	message, o, why := d.read(ctx, n)
	if message != nil {
		why = d.send(ctx, message)
	}
	if why != noFailure {
		o = waits
		if why != storeFails && d.expired(n) {
			o = Expired
		}
	}
	if !d.settle(ctx, n, o) {
		return waits, storeFails
	}
	return o, why
}

func (d *delivery) expired(n session.Notice) bool { return time.Since(n.Made) > d.route.MaxAge }

// expire drops the expired notices of a page.
func (d *delivery) expire(ctx context.Context, page []session.Notice) {
	for _, n := range page {
		if d.expired(n) && !d.settle(ctx, n, Expired) {
			return
		}
	}
}

// settle dequeues a notice, unless it has to wait, and reports the outcome. It returns false if the store fails.
func (d *delivery) settle(ctx context.Context, n session.Notice, o Outcome) bool {
	if o == waits {
		return true
	}
	if d.courier.store.Dequeue(ctx, n) != nil {
		return false
	}
	if o != notLogged {
		d.courier.observer.Findings(d.tenant, o)
	}
	return true
}

// read returns the message of a notice, or nil and the outcome if there is none. A message's id includes the time, because a thread that
// was lost numbers its condensations from the start again.
func (d *delivery) read(ctx context.Context, n session.Notice) (*Message, Outcome, failure) {
	t, err := d.courier.store.Thread(ctx, n.Thread)
	if errors.Is(err, session.ErrNotFound) {
		return nil, missing(n, Gone), noFailure
	}
	if err != nil {
		return nil, waits, d.unreadable(ctx, fmt.Errorf("read thread: %w", err))
	}
	c := n.Named(&t)
	if c == nil {
		return nil, missing(n, notLogged), noFailure
	}
	text, err := d.courier.store.Summary(ctx, c.ID)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return nil, Gone, noFailure
	case errors.Is(err, session.ErrUnreadable):
		return nil, waits, d.unreadable(ctx, errors.New("the summary cannot be decrypted: is its key missing in store.encryption.keys?"))
	case err != nil:
		return nil, waits, d.unreadable(ctx, fmt.Errorf("read summary: %w", err))
	}
	return &Message{
		ID:     fmt.Sprintf("%s-%d-%x", c.ID.Thread, c.ID.Seq, c.Time.UnixNano()),
		Tenant: t.Tenant, Session: t.Session, Thread: t.ID, Time: c.Time.UTC(), Reason: c.Reason, Condenser: c.Condenser, Model: c.Model,
		Findings: record.Findings(text),
	}, Delivered, noFailure
}

// unreadable records why a notice cannot be read, unless ctx has ended.
func (d *delivery) unreadable(ctx context.Context, err error) failure {
	if ctx.Err() != nil {
		return storeFails
	}
	d.unread = err
	return noticeUnreadable
}

// missing returns the outcome of a notice whose condensation was not found: o, unless it may still be logged.
func missing(n session.Notice, o Outcome) Outcome {
	if time.Since(n.Made) < logTimeout {
		return waits
	}
	return o
}

// send sends a message to the sink, and reports when the sink begins to fail or works again.
func (d *delivery) send(ctx context.Context, m *Message) failure {
	err := within(ctx, openTimeout, d.connect)
	if err == nil {
		err = within(ctx, sendTimeout, func(ctx context.Context) error { return d.conn.Send(ctx, m) })
	}
	if err != nil && ctx.Err() != nil {
		return storeFails
	}
	if failing := err != nil; failing != d.failing {
		d.failing = failing
		d.courier.observer.Sink(d.tenant, err)
	}
	if err == nil {
		return noFailure
	}
	d.courier.observer.Findings(d.tenant, Failed)
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return sinkRefuses
	}
	return sinkFails
}

// connect opens the sink, if it is not open yet.
func (d *delivery) connect(ctx context.Context) (err error) {
	if d.conn == nil {
		d.conn, err = d.route.Sink.Open(ctx)
	}
	return err
}

// within calls do with a timeout.
func within(ctx context.Context, timeout time.Duration, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return do(ctx)
}
