package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Memory is what a Dewpoint holds in memory under clients that mean no good, each time a fresh one.
type Memory struct {
	Rows     []MemoryRow
	Overload Overload
}

// MemoryRow is one such situation. Sizes are in bytes.
type MemoryRow struct {
	Situation string
	Conns     int
	Before    int64
	Peak      int64
	Held      int64         // at the end, before the connections were closed
	After     int64         // a few seconds after the last connection was closed
	Served    int           // small requests of another client meanwhile
	P99       time.Duration // of them
	Quiet     time.Duration // the same before the others came
}

// Overload is what a full budget of bytes in flight does.
type Overload struct {
	Budget  string
	Conns   int
	Size    int
	Served  int
	Refused int // 429 or 503, with Retry-After and an error of OpenAI's shape
	Other   int // answers or ends of another kind
	Peak    int64
}

// hostile is a situation: what its connections do first, a few at a time, and what each does then until ctx ends. Either
// may be nil.
type hostile struct {
	name  string
	conns int
	size  int // of the body that its connections send
	first func(w *crowd, c *client) error
	then  func(ctx context.Context, w *crowd, c *client)
}

func (o *Options) hostiles() []hostile {
	const small = 10_000
	idle, slow, streams, few := pick(o, 10, 1000, 10_000), pick(o, 10, 1000, 1000), pick(o, 4, 200, 200), pick(o, 4, 100, 100)
	burst, condensing, large := pick(o, 4, 64, 64), pick(o, 2, 8, 8), pick(o, 100_000, 4_000_000, 4_000_000)
	return []hostile{
		{"idle connections, nothing sent", idle, small, nil, nil},
		{"idle connections, each after a request of 10 KB", idle, small, (*crowd).askOnce, nil},
		{"slow-loris, a byte of the header each 100 ms", slow, small, nil, dribble},
		{"slow-loris, a byte of the body each 100 ms", slow, small, declare(1_000_000), dribble},
		{"60 MB declared, nothing sent", few, small, declare(60_000_000), nil},
		{"streams of 5 MB that are read at 80 KB/s", streams, small, (*crowd).openStream, readSlowly},
		{"a burst: requests of 4 MB, first seen, 16 at once", burst, large, (*crowd).askOnce, nil},
		{"invented keys, histories of 1 MB of tags, each condensed", condensing, small, nil, condenseAgain},
	}
}

func (r *rig) measureMemory(ctx context.Context) (*Memory, error) {
	out := &Memory{}
	for _, h := range r.hostiles() {
		row, err := r.hostile(ctx, h)
		if err != nil {
			return out, fmt.Errorf("%s: %w", h.name, err)
		}
		r.log("%s: %+v", h.name, row)
		out.Rows = append(out.Rows, row)
	}
	var err error
	if out.Overload, err = r.overload(ctx); err != nil {
		return out, fmt.Errorf("overload: %w", err)
	}
	r.log("overload: %+v", out.Overload)
	return out, nil
}

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
	case a.StatusCode() == 200:
		if err := r.mock.Expected.await(q.ID); err != nil {
			return err.Error()
		}
		return "served"
	case refusedWell(a):
		return "refused"
	}
	return fmt.Sprintf("%d, Retry-After %q: %.200s", a.StatusCode(), a.Header.Peek("Retry-After"), a.Body())
}

// refusedWell reports whether an answer says, in OpenAI's words, to come back later.
func refusedWell(a *answer) bool {
	var body struct {
		Error struct{ Message, Type, Code string }
	}
	return (a.StatusCode() == 429 || a.StatusCode() == 503) && a.has("Retry-After") && json.Unmarshal(a.Body(), &body) == nil &&
		body.Error.Message != "" && body.Error.Type != "" && body.Error.Code != ""
}
