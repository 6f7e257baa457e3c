package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// trouble is one thing that goes wrong for a while.
type trouble struct {
	at, lasts time.Duration
	begin     func(ctx context.Context) error
	end       func(ctx context.Context) error
	name      string
}

// chaos is what goes wrong in a soak. Troubles of one track come one after another; tracks run at the same time.
type chaos struct {
	weather *weather
	tally   *tally
	fleet   *fleet
	redis   *redis // nil: the store is embedded
	chance  *rand.Rand
}

// How often troubles come, one each at least.
const (
	killEvery       = 10 * time.Second
	redisKillEvery  = 40 * time.Second
	redisPauseEvery = 30 * time.Second
	roughEvery      = 40 * time.Second
)

// tracks is the schedule for a time.
func (c *chaos) tracks(total time.Duration) [][]trouble {
	out := [][]trouble{c.kills(total), c.rough(total, roughUpstream), c.rough(total, roughSummaries)}
	if c.redis != nil {
		out = append(out, c.store(total))
	}
	return out
}

// times spreads troubles over a time: each in a slot of its own, so that they do not run into each other.
func (c *chaos) times(total, every time.Duration) (at []time.Duration, slot time.Duration) {
	n := max(1, int(total/every))
	slot = total / time.Duration(n)
	for i := range n {
		at = append(at, time.Duration(i)*slot+c.between(slot/10, slot/3))
	}
	return at, slot
}

func (c *chaos) between(low, high time.Duration) time.Duration {
	return low + time.Duration(c.chance.Int64N(int64(high-low)+1))
}

func (c *chaos) kills(total time.Duration) []trouble {
	var out []trouble
	at, slot := c.times(total, killEvery)
	for _, t := range at {
		victim := c.chance.IntN(c.fleet.size())
		out = append(out, trouble{name: "replica killed", at: t, lasts: c.between(slot/50, slot/4),
			begin: func(context.Context) error { c.kill(victim); return nil },
			end:   func(ctx context.Context) error { return c.restart(ctx, victim) },
		})
	}
	return out
}

func (c *chaos) kill(slot int) {
	began := time.Now()
	c.fleet.kill(slot)
	if c.redis == nil {
		c.weather.lost(began, time.Now()) // its last writes went with it
	}
}

func (c *chaos) restart(ctx context.Context, slot int) error {
	return c.fleet.launch(ctx, slot)
}

// rough makes upstream or the summariser fail often.
func (c *chaos) rough(total time.Duration, what condition) []trouble {
	var out []trouble
	at, slot := c.times(total, roughEvery)
	for _, t := range at {
		out = append(out, trouble{name: string(what), at: t, lasts: c.between(slot/4, slot/2),
			begin: func(context.Context) error { c.weather.begin(what); return nil },
			end:   func(context.Context) error { c.weather.end(what); return nil },
		})
	}
	return out
}

// store is what befalls Redis: kills and pauses in turn, in slots of their own.
func (c *chaos) store(total time.Duration) []trouble {
	kills, pauses := max(1, int(total/redisKillEvery)), max(1, int(total/redisPauseEvery))
	slot := total / time.Duration(kills+pauses)
	var out []trouble
	for i, killing := range c.shuffled(kills, pauses) {
		t := trouble{at: time.Duration(i)*slot + c.between(slot/10, slot/3), lasts: min(c.between(slot/50, slot/4), 4*time.Second)}
		if killing {
			t.name, t.begin, t.end = "redis killed", func(context.Context) error { c.redis.kill(); return nil }, c.redis.start
		} else {
			t.name, t.begin, t.end = "redis stopped", func(context.Context) error { return c.redis.stop() }, func(context.Context) error { return c.redis.resume() }
		}
		out = append(out, t)
	}
	return c.losing(out)
}

// losing notes for each trouble when writes may have been lost.
func (c *chaos) losing(troubles []trouble) []trouble {
	for i := range troubles {
		var began time.Time
		begin, end := troubles[i].begin, troubles[i].end
		troubles[i].begin = func(ctx context.Context) error {
			began = time.Now()
			return begin(ctx)
		}
		troubles[i].end = func(ctx context.Context) error {
			defer func() { c.weather.lost(began, time.Now()) }()
			return end(ctx)
		}
	}
	return troubles
}

func (c *chaos) shuffled(kills, pauses int) []bool {
	out := make([]bool, kills+pauses)
	for i := range kills {
		out[i] = true
	}
	c.chance.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// run plays the tracks, and returns when all that was broken is mended. When the context ends no new trouble begins.
func (c *chaos) run(ctx context.Context, total time.Duration) error {
	began := time.Now()
	tracks := c.tracks(total)
	errs := make(chan error, len(tracks))
	var players sync.WaitGroup
	for _, track := range tracks {
		players.Go(func() { errs <- c.play(ctx, began, track) })
	}
	players.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *chaos) play(ctx context.Context, began time.Time, track []trouble) error {
	for _, t := range track {
		if !sleep(ctx, time.Until(began.Add(t.at))) {
			return nil
		}
		c.tally.count(groupInjected, t.name)
		if err := t.begin(ctx); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
		sleep(ctx, t.lasts)
		if err := t.end(context.WithoutCancel(ctx)); err != nil {
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
