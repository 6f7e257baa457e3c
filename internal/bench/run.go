package bench

import (
	"context"
	"errors"
)

// Result is what a run measured.
type Result struct {
	Machine Machine      `json:"machine"`
	Missing []string     `json:"missing,omitempty"` // what is not installed
	Cells   []CellResult `json:"cells,omitempty"`
}

// Run measures. It fails if a request was lost, altered or not answered.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	r, err := newRig(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	result = &Result{Machine: describe(ctx), Missing: r.missing}
	if o.has(PartCells) {
		if result.Cells, err = r.measureCells(ctx); err != nil {
			return result, err
		}
	}
	return result, nil
}
