package findings

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	pageSize     = 64               // notices in one round
	pollInterval = 15 * time.Second // between rounds, to find notices that other replicas left
	leaseTTL     = 10 * time.Second // after which another replica takes over from one that died
	minPause     = time.Second      // after the first failure; doubled after each further one
	maxPause     = 5 * time.Minute
)

// rounds deliver the findings of one tenant. Only one replica at a time runs a round.
type rounds struct {
	courier *Courier
	tenant  string
	stop    context.CancelFunc
	route   atomic.Pointer[Route]
	wake    chan struct{} // findings were promised
	swapped chan struct{} // the route has changed
	pending atomic.Int64  // as last counted

	from     int  // index of the next round's first notice: refused ones are skipped until all others were tried
	failures int  // consecutive failed rounds
	failing  bool // the sink fails, as last reported
}

// run runs rounds until ctx ends: when findings were promised, and at intervals for notices that other replicas left. While the sink fails,
// only the end of a pause or another route starts the next round.
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
		pause, why := r.round(ctx)
		switch why {
		case noFailure:
			r.failures = 0
		case storeFails, noticeUnreadable: // a problem of the store, not the sink
			pause = pollInterval
		default:
			r.failures++
			pause = min(minPause<<min(r.failures-1, 16), maxPause)
			pause -= rand.N(pause / 2) //nolint:gosec // no secret: it is random so that replicas do not retry all at once
		}
		timer.Reset(pause)
	}
}

// round delivers a page of notices, and returns the pause before the next round unless it failed.
func (r *rounds) round(ctx context.Context) (pause time.Duration, why failure) {
	if why := r.count(ctx); why != noFailure || r.pending.Load() == 0 {
		return pollInterval, why
	}
	lease, err := r.courier.store.Lock(ctx, session.ThreadID("findings/"+r.tenant), leaseTTL)
	if errors.Is(err, session.ErrLocked) {
		return pollInterval, noFailure
	}
	if err != nil {
		return 0, storeFails
	}
	held, release := lease.Hold(ctx, leaseTTL)
	defer release()
	page, _, err := r.courier.store.Enqueued(ctx, r.tenant, r.from, pageSize) // again, since another replica may have run a round
	if err != nil {
		return 0, storeFails
	}
	d := delivery{rounds: r, route: r.route.Load()}
	defer d.close()
	kept, why := d.deliver(held, page)
	if d.unread != nil {
		r.courier.observer.Unread(r.tenant, d.unread)
	}
	if why == noFailure {
		why = r.count(ctx)
	}
	if len(page) == pageSize || why != noFailure {
		r.from += kept
		return 0, why
	}
	r.from = 0
	if kept > 0 {
		return maxPause, noFailure
	}
	return pollInterval, noFailure
}

// count counts the pending notices.
func (r *rounds) count(ctx context.Context) failure {
	_, total, err := r.courier.store.Enqueued(ctx, r.tenant, 0, 1)
	if err != nil {
		return storeFails
	}
	r.pending.Store(int64(total))
	return noFailure
}
