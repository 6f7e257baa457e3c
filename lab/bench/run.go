package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Result is what a run measured.
type Result struct {
	Machine   Machine       `json:"machine"`
	Quick     bool          `json:"quick"`
	Took      time.Duration `json:"took"`
	Missing   []string      `json:"missing,omitempty"` // what is not installed
	Cells     []CellResult  `json:"cells,omitempty"`
	Streaming *Streaming    `json:"streaming,omitempty"`
	Memory    *Memory       `json:"memory,omitempty"`
	Waits     *Waits        `json:"waits,omitempty"`
}

// Run measures. It fails if a request was lost, altered or not answered.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	begun, machine := time.Now(), describe(ctx)
	r, err := newRig(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	result = &Result{Machine: machine, Quick: o.Quick || o.Tiny, Missing: r.missing}
	parts := map[string]func() error{
		PartCells:  func() (err error) { result.Cells, err = r.measureCells(ctx); return err },
		PartStream: func() (err error) { result.Streaming, err = r.measureStreaming(ctx); return err },
		PartMemory: func() (err error) { result.Memory, err = r.measureMemory(ctx); return err },
		PartWaits:  func() (err error) { result.Waits, err = r.measureWaits(ctx); return err },
	}
	for _, part := range Parts() {
		if !o.has(part) {
			continue
		}
		since := time.Now()
		if err := parts[part](); err != nil {
			return result, fmt.Errorf("%s: %w", part, err)
		}
		r.log("%s: %.1f s", part, time.Since(since).Seconds())
		if err := r.mock.Expected.check(); err != nil {
			return result, fmt.Errorf("%s: %w", part, err)
		}
	}
	result.Took = time.Since(begun)
	return result, nil
}
