package bench

import (
	"context"
	"fmt"
	"time"
)

// Memory is what a Dewpoint holds in memory under clients that mean no good, each time a fresh one.
type Memory struct {
	Rows     []MemoryRow `json:"rows"`
	Overload Overload    `json:"overload"`
}

// MemoryRow is one such situation. Sizes are in bytes.
type MemoryRow struct {
	Situation string        `json:"situation"`
	Conns     int           `json:"conns"`
	Before    int64         `json:"before"`
	Peak      int64         `json:"peak"`
	Held      int64         `json:"held"`      // at the end, before the connections were closed
	After     int64         `json:"after"`     // a few seconds after the last connection was closed
	Served    int           `json:"served"`    // small requests of another client meanwhile
	P99       time.Duration `json:"p99"`       // of them
	Quiet     time.Duration `json:"quiet"`     // the same before the others came
	Delivered int64         `json:"delivered"` // bytes that slow readers took
}

// Overload is what a full budget of bytes in flight does.
type Overload struct {
	Budget  string `json:"budget"`
	Conns   int    `json:"conns"`
	Size    int    `json:"size"`
	Served  int    `json:"served"`
	Refused int    `json:"refused"` // 429 or 503, with Retry-After and an error of OpenAI's shape
	Other   int    `json:"other"`   // answers or ends of another kind
	Peak    int64  `json:"peak"`
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
	idle, slow, streams, declared, burst, condensing, large := 10_000, 1000, 200, 100, 64, 8, 4_000_000
	if o.Quick {
		idle = 1000
	}
	if o.Tiny {
		idle, slow, streams, declared, burst, condensing, large = 10, 10, 4, 4, 4, 2, 100_000
	}
	return []hostile{
		{"idle connections, nothing sent", idle, small, nil, nil},
		{"idle connections, each after a request of 10 KB", idle, small, (*crowd).askOnce, nil},
		{"slow-loris, a byte of the header each 100 ms", slow, small, nil, dribble},
		{"slow-loris, a byte of the body each 100 ms", slow, small, declare(1_000_000), dribble},
		{"60 MB declared, nothing sent", declared, small, declare(60_000_000), nil},
		{"streams of 5 MB that are read at 80 KB/s", streams, small, (*crowd).openStream, readSlowly},
		{"a burst: requests of 4 MB, first seen, 16 at once", burst, large, (*crowd).askOnce, nil},
		{"invented keys, histories of 1 MB of tags, each condensed", condensing, small, nil, condenseAgain},
	}
}

// hold is how long a hostile situation lasts, and rest how long after it the memory is read again.
func (o *Options) hold() (hold, rest time.Duration) {
	switch {
	case o.Tiny:
		return 50 * time.Millisecond, 10 * time.Millisecond
	case o.Quick:
		return 500 * time.Millisecond, 500 * time.Millisecond
	}
	return 5 * time.Second, 3 * time.Second
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
