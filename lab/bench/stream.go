package bench

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"
)

// Streaming is what is added to streams.
type Streaming struct {
	Pause  time.Duration `json:"pause"` // between two events
	Delays []Delays      `json:"delays"`
	Gone   []Gone        `json:"gone"`
}

// Delays is how long events take from the mock's write to the client's read.
type Delays struct {
	Streams int          `json:"streams"` // at once
	Targets []DelaysFrom `json:"targets"`
}

// DelaysFrom is a target's delays.
type DelaysFrom struct {
	Name   string        `json:"name"`
	Events int           `json:"events"`
	P50    time.Duration `json:"p50"`
	P99    time.Duration `json:"p99"`
	Ratio  Spread        `json:"ratio"` // p50 over nginx's, block by block; none where nginx is not installed
}

const streamPause = 5 * time.Millisecond

// streamEffort is how much of streams is measured.
type streamEffort struct {
	streams                []int
	blocks, events, leaves int
}

func (o *Options) streamEffort() streamEffort {
	switch {
	case o.Tiny:
		return streamEffort{[]int{2}, 1, 30, 1}
	case o.Quick:
		return streamEffort{[]int{1, 16}, 2, 120, 5}
	}
	return streamEffort{[]int{1, 16, 64}, 3, 200, 20}
}

// streamTargets are all, the mock itself first.
func (r *rig) streamTargets() []*Target { return append([]*Target{direct(r.mock)}, r.targets...) }

func (r *rig) measureStreaming(ctx context.Context) (*Streaming, error) {
	e, out := r.streamEffort(), &Streaming{Pause: streamPause}
	for _, n := range e.streams {
		d, err := r.delays(ctx, n, e)
		if err != nil {
			return nil, fmt.Errorf("%d streams: %w", n, err)
		}
		out.Delays = append(out.Delays, d)
		r.log("%d streams: %+v", n, d.Targets)
	}
	var err error
	out.Gone, err = r.leave(ctx, e.leaves)
	r.log("clients that leave: %+v", out.Gone)
	return out, err
}

// delays measures streams at a pace, block by block.
func (r *rig) delays(ctx context.Context, streams int, e streamEffort) (Delays, error) {
	targets := r.streamTargets()
	all, p50s := make([][]time.Duration, len(targets)), make([][]float64, len(targets))
	for n := range e.blocks {
		for i := range targets {
			at := (i + n) % len(targets)
			took, err := r.watch(ctx, targets[at], streams, e.events)
			if err != nil {
				return Delays{}, fmt.Errorf("%s: %w", targets[at].Name, err)
			}
			all[at], p50s[at] = append(all[at], took...), append(p50s[at], float64(quantile(took, 0.5)))
		}
	}
	out := Delays{Streams: streams}
	for at, t := range targets {
		d := DelaysFrom{Name: t.Name, Events: len(all[at]), P50: quantile(all[at], 0.5), P99: quantile(all[at], 0.99)}
		for i, other := range targets {
			if other.Name == nameNginx {
				d.Ratio = spread(ratios(p50s[at], p50s[i]))
			}
		}
		out.Targets = append(out.Targets, d)
	}
	return out, nil
}

func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] / b[i]
	}
	return out
}

// settling is how many events a stream has before its delays count: by then all have begun.
const settling = 20

// watch reads streams of a target at once, and gives the delays of their events.
func (r *rig) watch(ctx context.Context, t *Target, streams, events int) ([]time.Duration, error) {
	template := NewHistory(Plan{Size: 10_000, Steps: 1})
	took, errs := make([][]time.Duration, streams), make([]error, streams)
	var ready, running sync.WaitGroup
	ready.Add(streams)
	for i := range streams {
		h := r.fork(template)
		running.Go(func() {
			c, err := dial(ctx, t.Addr)
			if err == nil {
				defer c.close()
				err = r.begin(c, t, h)
			}
			ready.Done()
			ready.Wait()
			if err == nil {
				took[i], err = r.watchOne(c, t, h, events)
			}
			errs[i] = err
		})
	}
	running.Wait()
	var out []time.Duration
	for i := range streams {
		if errs[i] != nil {
			return nil, errs[i]
		}
		out = append(out, took[i]...)
	}
	return out, nil
}

// begin shows a session's first request to a target that remembers.
func (r *rig) begin(c *client, t *Target, h *History) error {
	if !t.stateful() {
		return nil
	}
	_, _, err := r.ask(c, &request{call: call{Target: t, Body: h.Step(0, false)}})
	return err
}

// watchOne reads one stream at a pace.
func (r *rig) watchOne(c *client, t *Target, h *History, events int) ([]time.Duration, error) {
	q := &request{call: call{Target: t, Body: h.Step(1, true), Answer: answerStream(events, streamPause)}}
	q.ID = r.mock.Expected.add(&expectation{body: q.Body})
	w := eventWatch{mock: r.mock}
	a, err := c.do(&q.call, w.take)
	if err != nil {
		return nil, err
	}
	if a.Status != 200 || len(w.delays) != events || !w.done {
		return nil, fmt.Errorf("status %d, %d of %d events, ended: %v", a.Status, len(w.delays), events, w.done)
	}
	if _, err := r.mock.Expected.await(q.ID); err != nil {
		return nil, err
	}
	return w.delays[min(settling, len(w.delays)-1):], nil
}

// eventWatch takes a stream's bytes and notes when each event came.
type eventWatch struct {
	mock   *Mock
	rest   []byte
	delays []time.Duration
	done   bool // the stream's own end came
}

func (w *eventWatch) take(piece []byte) {
	now := time.Since(w.mock.begun)
	w.rest = append(w.rest, piece...)
	from := w.rest
	for {
		event, rest, found := bytes.Cut(from, []byte("\n\n"))
		if !found {
			break
		}
		from = rest
		if at, ok := sentAt(event); ok {
			w.delays = append(w.delays, now-at)
		}
		w.done = w.done || bytes.Equal(event, []byte("data: [DONE]"))
	}
	w.rest = append(w.rest[:0], from...)
}
