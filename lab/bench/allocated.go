package bench

import (
	"errors"
	"fmt"
	"math"
)

// Allocated is what a Go program has allocated.
type Allocated struct {
	Objects float64 `json:"objects"`
	Bytes   float64 `json:"bytes"`
}

func (a Allocated) plus(b Allocated) Allocated {
	return Allocated{a.Objects + b.Objects, a.Bytes + b.Bytes}
}

func (a Allocated) minus(b Allocated) Allocated {
	return Allocated{a.Objects - b.Objects, a.Bytes - b.Bytes}
}

func (a Allocated) over(n float64) Allocated {
	return Allocated{a.Objects / n, a.Bytes / n}
}

// String writes it as the tables have it; nil is unknown.
func (a *Allocated) String() string {
	if a == nil {
		return "–"
	}
	return fmt.Sprintf("%.0f, %.0f KB", math.Round(a.Objects)+0, math.Round(a.Bytes/1000)+0) // no -0
}

// allocated asks the target what it has allocated since it began; ok is false where it can not tell.
func (t *Target) allocated() (a Allocated, ok bool, err error) {
	switch {
	case t.admin != "":
		m, err := t.metrics()
		if err != nil {
			return a, false, err
		}
		a = Allocated{m["go_memstats_mallocs_total"], m["go_memstats_alloc_bytes_total"]}
		return a, a.Objects > 0, nil
	case t.bare:
		if _, err := fmt.Fprintln(t.proc.in, "allocated?"); err != nil {
			return a, false, fmt.Errorf("ask %s: %w", t.Name, err)
		}
		err := t.proc.await(func(line string) bool {
			_, err := fmt.Sscanf(line, memoryPrefix+" %g %g", &a.Objects, &a.Bytes)
			return err == nil
		})
		return a, true, err
	}
	return a, false, nil
}

// One asking tells little: the counters of Dewpoint's runtime run some hundred objects late, and an answer to it takes thousands.
// So calibrate takes the mean of many, several times.
const askings, calibrations = 16, 6

// calibrate finds out what being asked for allocations allocates. It takes the least of several means: what else the target does
// meanwhile, such as writing what it was sent before, is not the asking's.
func (t *Target) calibrate() error {
	last, ok, err := t.allocated()
	if err != nil || !ok {
		return err
	}
	for n := range calibrations {
		first := last
		for range askings {
			if last, ok, err = t.allocated(); err != nil || !ok {
				return errors.Join(fmt.Errorf("%s stopped telling what it allocates", t.Name), err)
			}
		}
		if mean := last.minus(first).over(askings); n == 0 || mean.Objects < t.asking.Objects {
			t.asking = mean
		}
	}
	return nil
}
