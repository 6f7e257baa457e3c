package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
)

// fullAt is the budget of bytes in flight of the Dewpoint that is overloaded.
const fullAt = "32MiB"

// overload sends more bytes at once than the budget allows.
func (r *rig) overload(ctx context.Context) (out Overload, err error) {
	out = Overload{Budget: fullAt, Conns: 64, Size: 4_000_000}
	if r.Tiny {
		out = Overload{Budget: "8MiB", Conns: 16, Size: 1_000_000}
	}
	t, err := r.dewpoint(setting{Name: nameEmbedded, InFlight: out.Budget})
	if err != nil {
		return out, err
	}
	defer func() { err = closed(err, t) }()
	h := NewHistory(Plan{Size: out.Size})
	t.forgetPeak()
	var mu sync.Mutex
	var running sync.WaitGroup
	for range out.Conns {
		own := r.fork(h)
		running.Go(func() {
			for range 2 {
				kind := r.push(ctx, t, own)
				mu.Lock()
				switch kind {
				case "served":
					out.Served++
				case "refused":
					out.Refused++
				default:
					out.Other++
					r.log("overload: %s", kind)
				}
				mu.Unlock()
			}
		})
	}
	running.Wait()
	_, out.Peak = t.memory()
	if _, err := r.small(ctx, t, 2, 0); err != nil {
		return out, fmt.Errorf("after the overload: %w", err)
	}
	return out, nil
}

// push makes a request over a connection of its own, and says what became of it.
func (r *rig) push(ctx context.Context, t *Target, h *History) string {
	c, err := dial(ctx, t.Addr)
	if err != nil {
		return err.Error()
	}
	defer c.close()
	q := call{Target: t, Body: h.Step(0, false)}
	q.ID = r.mock.Expected.add(&expectation{body: q.Body})
	a, err := c.do(&q, nil)
	switch {
	case err != nil:
		return err.Error()
	case a.Status == 200:
		if _, err := r.mock.Expected.await(q.ID); err != nil {
			return err.Error()
		}
		return "served"
	case refusedWell(a):
		return "refused"
	}
	return fmt.Sprintf("%d, Retry-After %q: %.200s", a.Status, a.RetryAfter, a.Body)
}

// refusedWell reports whether an answer says, in OpenAI's words, to come back later.
func refusedWell(a *answer) bool {
	var body struct {
		Error struct{ Message, Type, Code string }
	}
	return (a.Status == 429 || a.Status == 503) && a.RetryAfter != "" && json.Unmarshal(a.Body, &body) == nil &&
		body.Error.Message != "" && body.Error.Type != "" && body.Error.Code != ""
}

// runtimeLimits starts Dewpoints under the Go runtime's own limits, loads them, and asks what limits they see.
func (r *rig) runtimeLimits(ctx context.Context) ([]Limited, error) {
	var out []Limited
	for _, env := range [][]string{nil, {"GOMEMLIMIT=100MiB"}, {"GOMAXPROCS=1"}} {
		l, err := r.limited(ctx, env)
		if err != nil {
			return out, fmt.Errorf("%v: %w", env, err)
		}
		out = append(out, l)
	}
	return out, nil
}

func (r *rig) limited(ctx context.Context, env []string) (out Limited, err error) {
	t, err := r.dewpoint(setting{Name: nameEmbedded, Env: env})
	if err != nil {
		return out, err
	}
	defer func() { err = closed(err, t) }()
	size, rounds := 1_000_000, 4
	if r.Tiny {
		size, rounds = 10_000, 1
	}
	h := NewHistory(Plan{Size: size})
	err = fewAtATime(8, 8, func(int) error {
		c, err := dial(ctx, t.Addr)
		if err != nil {
			return err
		}
		defer c.close()
		for range rounds {
			if _, _, err := r.ask(c, &request{call: call{Target: t, Body: r.fork(h).Step(0, false)}}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return out, err
	}
	m, err := t.metrics()
	for _, pair := range env {
		out.Env += pair
	}
	out.Procs, out.Limit = m["go_sched_gomaxprocs_threads"], m["go_gc_gomemlimit_bytes"]
	_, out.Peak = t.memory()
	return out, err
}
