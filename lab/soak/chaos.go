package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

// trouble is one thing that goes wrong for a while.
type trouble struct {
	name       string
	at, lasts  time.Duration
	begin, end func(ctx context.Context) error
	loses      bool // what was written shortly before it may be lost
}

// chaos is what goes wrong in a soak. Troubles of one track come one after another; tracks run at the same time.
type chaos struct {
	*soak
	chance *rand.Rand
}

// How often troubles come, one each at least.
const (
	killEvery       = 10 * time.Second
	redisKillEvery  = 40 * time.Second
	redisPauseEvery = 30 * time.Second
	roughEvery      = 40 * time.Second
)

// spread gives the troubles of a track: each in a slot of its own, so that they do not run into each other.
func (c *chaos) spread(total time.Duration, n int, next func(i int, slot time.Duration) trouble) (track []trouble) {
	slot := total / time.Duration(n)
	for i := range n {
		at := time.Duration(i)*slot + c.between(slot/10, slot/3)
		t := next(i, slot)
		t.at = at
		track = append(track, t)
	}
	return track
}

// often is how many troubles there are in a time.
func often(total, every time.Duration) int { return max(1, int(total/every)) }

func (c *chaos) between(low, high time.Duration) time.Duration {
	return low + time.Duration(c.chance.Int64N(int64(high-low)+1))
}

// kills is the replicas' deaths.
func (c *chaos) kills(total time.Duration) []trouble {
	return c.spread(total, often(total, killEvery), func(_ int, slot time.Duration) trouble {
		victim := c.chance.IntN(c.fleet.size())
		return trouble{name: "replica killed", lasts: c.between(slot/50, slot/4),
			begin: func(context.Context) error { c.kill(victim); return nil },
			end:   func(ctx context.Context) error { return c.fleet.launch(ctx, victim) },
		}
	})
}

func (c *chaos) kill(slot int) {
	began := time.Now()
	c.fleet.kill(slot)
	if c.redis == nil {
		c.weather.lost(began, time.Now()) // its last writes went with it
	}
}

// rough makes upstream or the summariser fail often.
func (c *chaos) rough(total time.Duration, what condition) []trouble {
	return c.spread(total, often(total, roughEvery), func(_ int, slot time.Duration) trouble {
		return trouble{name: string(what), lasts: c.between(slot/4, slot/2),
			begin: func(context.Context) error { c.weather.set(what, true); return nil },
			end:   func(context.Context) error { c.weather.set(what, false); return nil },
		}
	})
}

// store is what befalls Redis: kills and pauses, shuffled.
func (c *chaos) store(total time.Duration) []trouble {
	kills := often(total, redisKillEvery)
	order := c.chance.Perm(kills + often(total, redisPauseEvery))
	return c.spread(total, len(order), func(i int, slot time.Duration) trouble {
		t := trouble{name: "redis stopped", lasts: min(c.between(slot/50, slot/4), 4*time.Second), loses: true,
			begin: func(context.Context) error { return c.redis.Signal(syscall.SIGSTOP) },
			end:   func(context.Context) error { return c.redis.Signal(syscall.SIGCONT) },
		}
		if order[i] < kills {
			t.name, t.begin, t.end = "redis killed", func(context.Context) error { c.redis.Kill(); return nil }, c.redis.Start
		}
		return t
	})
}

// run plays the tracks, and returns when all that was broken is mended. When the context ends no new trouble begins.
func (c *chaos) run(ctx context.Context, total time.Duration) error {
	began := time.Now()
	tracks := [][]trouble{c.kills(total), c.rough(total, roughUpstream), c.rough(total, roughSummaries)}
	if c.redis != nil {
		tracks = append(tracks, c.store(total))
	}
	var players errgroup.Group
	for _, track := range tracks {
		players.Go(func() error { return c.play(ctx, began, track) })
	}
	return players.Wait()
}

func (c *chaos) play(ctx context.Context, began time.Time, track []trouble) error {
	for _, t := range track {
		if !sleep(ctx, time.Until(began.Add(t.at))) {
			return nil
		}
		c.tally.count(groupInjected, t.name)
		since := time.Now()
		if err := t.begin(ctx); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		sleep(ctx, t.lasts)
		err := t.end(context.WithoutCancel(ctx))
		if t.loses {
			c.weather.lost(since, time.Now())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	return nil
}

// sleep waits, and reports whether it waited to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
