package bench

import (
	"context"
	"encoding/json"
	"fmt"
)

// fullAt is the budget of bytes in flight of the Dewpoint that is overloaded.
const fullAt = "32MiB"

// overload sends more bytes at once than the budget allows.
func (r *rig) overload(ctx context.Context) (out Overload, err error) {
	out = Overload{Budget: fullAt, Conns: 64, Size: 4_000_000}
	if r.Tiny {
		out = Overload{Budget: "8MiB", Conns: 16, Size: 1_000_000}
	}
	t, err := r.dewpoint(ctx, setting{Name: nameEmbedded, InFlight: out.Budget})
	if err != nil {
		return out, err
	}
	defer func() { err = closeAll(err, t) }()
	h := NewHistory(Plan{Size: out.Size})
	t.forgetPeak()
	ends := make(chan string, 2*out.Conns)
	for range out.Conns {
		own := r.fork(h)
		go func() {
			ends <- r.push(ctx, t, own)
			ends <- r.push(ctx, t, own)
		}()
	}
	for range 2 * out.Conns {
		switch end := <-ends; end {
		case "served":
			out.Served++
		case "refused":
			out.Refused++
		default:
			out.Other++
			r.log("overload: %s", end)
		}
	}
	_, out.Peak = t.memory()
	if _, err := r.small(ctx, t, 2, 0); err != nil {
		return out, fmt.Errorf("after the overload: %w", err)
	}
	return out, nil
}

// push makes a request over a connection of its own, and says what became of it.
func (r *rig) push(ctx context.Context, t *Target, h *History) string {
	c, err := dial(ctx, t.Addr, bufferSize)
	if err != nil {
		return err.Error()
	}
	defer c.close()
	q := call{Target: t, Body: h.Step(0, false)}
	q.ID, _ = r.mock.Expected.add(q.Body)
	a, err := c.do(&q)
	switch {
	case err != nil:
		return err.Error()
	case a.Status == 200:
		if err := r.mock.Expected.await(q.ID); err != nil {
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
