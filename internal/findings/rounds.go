package findings

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// How rounds go.
const (
	pageSize   = 64               // notices of one round
	leaseTime  = 10 * time.Second // after which another replica goes on where one died
	firstPause = time.Second      // after a failure; twice as long after each further one
	longPause  = 5 * time.Minute
)

// rounds are the deliveries of one tenant. One replica at a time makes one.
type rounds struct {
	o       *Options
	tenant  string
	stop    context.CancelFunc
	route   atomic.Pointer[Route]
	wake    chan struct{} // something was promised
	swapped chan struct{} // the route is another one
	pending atomic.Int64  // when it was last counted

	from     int // where the next round begins: what was refused is passed over until all others had their turn
	failures int // of rounds, in a row
	failing  bool
}

// run makes rounds until ctx ends: when something was promised, and now and then for what other replicas have left. While the sink
// fails, only pauses and another route lead to the next one.
func (r *rounds) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.swapped:
			r.from, r.failures = 0, 0
		case <-r.wake:
			if r.failures > 0 {
				continue
			}
		case <-timer.C:
		}
		pause, err := r.round(ctx)
		switch wrong := what(err); {
		case err == nil:
			r.failures = 0
		case wrong == "", wrong == unread: // the store is away
			pause = r.o.Poll
		default:
			r.failures++
			pause = backoff(r.failures)
		}
		timer.Reset(pause)
	}
}

// backoff is how long a sink is left alone that has failed so often in a row. It is drawn, so that replicas do not come all at once.
func backoff(failures int) time.Duration {
	d := min(firstPause<<min(failures-1, 16), longPause)
	return d/2 + rand.N(d/2) //nolint:gosec // no secret
}

// round tells of a page of notices. It gives when the next one is due.
func (r *rounds) round(ctx context.Context) (pause time.Duration, err error) {
	if err := r.count(ctx); err != nil || r.pending.Load() == 0 {
		return r.o.Poll, err
	}
	lease, err := r.o.Store.Lock(ctx, session.ThreadID("findings/"+r.tenant), leaseTime)
	if errors.Is(err, session.ErrLocked) {
		return r.o.Poll, nil
	}
	if err != nil {
		return 0, fmt.Errorf("begin a round: %w", err)
	}
	held, release := lease.Hold(ctx, leaseTime)
	defer release()
	page, _, err := r.o.Store.Enqueued(ctx, r.tenant, r.from, pageSize) // another replica may have made a round
	if err != nil {
		return 0, fmt.Errorf("begin a round: %w", err)
	}
	d := delivery{rounds: r, route: r.route.Load()}
	defer d.close()
	stay, err := d.tell(held, page)
	if d.unread != nil {
		r.o.Watch.Unread(r.tenant, d.unread)
	}
	if err == nil {
		err = r.count(ctx)
	}
	if r.from += stay; len(page) == pageSize || err != nil {
		return 0, err
	}
	if r.from = 0; stay > 0 {
		return longPause, nil
	}
	return r.o.Poll, nil
}

// count looks how many notices there are.
func (r *rounds) count(ctx context.Context) error {
	_, total, err := r.o.Store.Enqueued(ctx, r.tenant, 0, 1)
	if err != nil {
		return fmt.Errorf("count what is to be told: %w", err)
	}
	r.pending.Store(int64(total))
	return nil
}
