package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Streaming is what is added to streams.
type Streaming struct {
	Delays []Delay
	Gone   []Gone
}

// Delay is how long a target's events take from the mock's write to the client's read.
type Delay struct {
	Streams  int // at once
	Name     string
	P50, P99 time.Duration
	Ratio    Spread // p50 over nginx's, block by block; none where nginx is not installed
}

const streamPause = 5 * time.Millisecond

func (r *rig) measureStreaming(ctx context.Context) (*Streaming, error) {
	out := &Streaming{}
	for _, n := range pick(&r.Options, []int{2}, []int{1, 16}, []int{1, 16, 64}) {
		d, err := r.delays(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("%d streams: %w", n, err)
		}
		out.Delays = append(out.Delays, d...)
		r.log("%d streams: %+v", n, d)
	}
	var err error
	out.Gone, err = r.leave(ctx, pick(&r.Options, 1, 5, 20))
	r.log("clients that leave: %+v", out.Gone)
	return out, err
}

// delays measures streams at a pace, block by block, of all targets and of the mock itself.
func (r *rig) delays(ctx context.Context, streams int) (out []Delay, err error) {
	targets := r.targets
	all, p50s := make([][]time.Duration, len(targets)), make([][]float64, len(targets))
	for n := range pick(&r.Options, 1, 2, 3) {
		for i := range targets {
			at := (i + n) % len(targets)
			took, err := r.watch(ctx, targets[at], streams, pick(&r.Options, 30, 120, 200))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", targets[at].Name, err)
			}
			all[at], p50s[at] = append(all[at], took...), append(p50s[at], float64(quantile(took, 0.5)))
		}
	}
	nginx := slices.IndexFunc(targets, func(t *Target) bool { return t.Name == nameNginx })
	for at, t := range targets {
		var ratios []float64
		for n := 0; nginx >= 0 && n < len(p50s[at]); n++ {
			ratios = append(ratios, p50s[at][n]/p50s[nginx][n])
		}
		out = append(out, Delay{Streams: streams, Name: t.Name, P50: quantile(all[at], 0.5), P99: quantile(all[at], 0.99), Ratio: spread(ratios)})
	}
	return out, nil
}

// settling is how many events a stream has before its delays count: by then all have begun.
const settling = 20

// watch reads streams of a target at once, and gives the delays of their events.
func (r *rig) watch(ctx context.Context, t *Target, streams, events int) (out []time.Duration, err error) {
	template := NewHistory(Plan{Size: 10_000, Steps: 1})
	took := make([][]time.Duration, streams)
	var ready sync.WaitGroup
	var running errgroup.Group
	ready.Add(streams)
	for i := range streams {
		h := r.fork(template)
		running.Go(func() error {
			c, err := dial(ctx, t.Addr, bufferSize)
			if err == nil {
				defer c.close()
				if t.stateful {
					_, err = r.ask(c, &call{Target: t, Body: h.Step(0, false)})
				}
			}
			ready.Done()
			ready.Wait()
			if err == nil {
				took[i], err = r.watchOne(c, t, h, events)
			}
			return err
		})
	}
	err = running.Wait()
	return slices.Concat(took...), err
}

// watchOne reads one stream at a pace. An event has come when the line has that ends it.
func (r *rig) watchOne(c *client, t *Target, h *History, events int) (delays []time.Duration, err error) {
	q := &call{Target: t, Body: h.Step(1, true), Answer: answerStream(events, streamPause)}
	q.ID, _ = r.mock.Expected.add(q.Body)
	status, body, err := c.open(q)
	if err != nil {
		return nil, err
	}
	var event []byte
	done := false
	for err == nil {
		var line []byte
		line, err = body.ReadSlice('\n')
		if event = append(event, line...); !bytes.HasSuffix(event, []byte("\n\n")) {
			continue
		}
		if at, ok := sentAt(event); ok {
			delays = append(delays, time.Since(r.mock.begun)-at)
		}
		done = done || string(event) == "data: [DONE]\n\n"
		event = event[:0]
	}
	if !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read a stream: %w", err)
	}
	if status != 200 || len(delays) != events || !done {
		return nil, fmt.Errorf("status %d, %d of %d events, ended: %v", status, len(delays), events, done)
	}
	return delays[min(settling, len(delays)-1):], r.mock.Expected.await(q.ID)
}
