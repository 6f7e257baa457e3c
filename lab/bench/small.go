package bench

import (
	"context"
	"time"
)

// small makes n small requests of known sessions over one connection, and goes on until that has lasted long enough. It gives what
// they took.
func (r *rig) small(ctx context.Context, t *Target, n int, lasts time.Duration) ([]time.Duration, error) {
	c, err := dial(ctx, t.Addr)
	if err != nil {
		return nil, err
	}
	defer c.close()
	f := &feed{rig: r, kind: Known, template: NewHistory(Plan{Size: 10_000, Steps: 3})}
	var took []time.Duration
	for end := time.Now().Add(lasts); (n > 0 || time.Now().Before(end)) && ctx.Err() == nil; n-- {
		d, err := f.once(c, t)
		if err != nil {
			return took, err
		}
		took = append(took, d)
		pause(ctx, 5*time.Millisecond)
	}
	return took, nil
}

// once makes a feed's next request of a target; a session's first one is not timed.
func (f *feed) once(c *client, t *Target) (time.Duration, error) {
	i := f.next()
	if i.prime && t.stateful() {
		if _, _, err := f.rig.ask(c, f.request(t, item{history: i.history})); err != nil {
			return 0, err
		}
	}
	a, _, err := f.rig.ask(c, f.request(t, i))
	if err != nil {
		return 0, err
	}
	return a.Took, nil
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
