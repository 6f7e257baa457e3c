package bench

import (
	"context"
	"fmt"
	"time"
)

// Kind is what a request is to its target.
type Kind string

// The kinds of requests.
const (
	Known     Kind = "known + 2"  // a session that the target knows, with two new messages
	FirstSeen Kind = "first seen" // a history of which it has seen nothing
)

// feed gives the requests of one connection, one after another.
type feed struct {
	rig      *rig
	kind     Kind
	template *History
	current  *History
	step     int
}

// item is a request that is to be made of every target.
type item struct {
	history *History
	body    []byte
	prime   bool // the history's first request has to be made before
}

// next gives the next item. Histories change before they grow out of their size.
func (f *feed) next() item {
	if f.current == nil || f.step >= f.current.Steps() || f.kind == FirstSeen {
		f.current, f.step = f.rig.fork(f.template), 0
	}
	if f.kind == Known {
		f.step++
	}
	return item{history: f.current, body: f.current.Step(f.step, false), prime: f.step == 1}
}

// first is the first request of an item's history.
func (i item) first() item { return item{history: i.history, body: i.history.Step(0, false)} }

// ask makes an item's request of a target.
func (f *feed) ask(c *client, t *Target, i item) (*answer, error) {
	api := i.history.api
	return f.rig.ask(c, &call{Target: t, Body: i.body, Answer: string(api), path: api.path()})
}

// primeTries is how often a session's beginning is shown at most: a target whose store is late does not take it.
const primeTries = 3

// prime shows a target that remembers the beginning of an item's session, where it is new.
func (f *feed) prime(c *client, t *Target, i item) error {
	if !i.prime || !t.stateful {
		return nil
	}
	for range primeTries {
		a, err := f.ask(c, t, i.first())
		if err != nil {
			return err
		}
		if a.has(headerThread) {
			return nil
		}
	}
	return fmt.Errorf("%s: the beginning of a session was not taken", t.Name)
}

// small makes n small requests of known sessions over one connection, and goes on until that has lasted long enough. It gives what
// they took, without those that begin a session.
func (r *rig) small(ctx context.Context, t *Target, n int, lasts time.Duration) ([]time.Duration, error) {
	c, err := dial(ctx, t.Addr, bufferSize)
	if err != nil {
		return nil, err
	}
	defer c.close()
	f := &feed{rig: r, kind: Known, template: NewHistory(Plan{Size: 10_000, Steps: 3})}
	var took []time.Duration
	for end := time.Now().Add(lasts); (n > 0 || time.Now().Before(end)) && ctx.Err() == nil; n-- {
		i := f.next()
		if i.prime {
			if _, err := f.ask(c, t, i.first()); err != nil {
				return took, err
			}
		}
		a, err := f.ask(c, t, i)
		if err != nil {
			return took, err
		}
		took = append(took, a.took)
		pause(ctx, 5*time.Millisecond)
	}
	return took, nil
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
