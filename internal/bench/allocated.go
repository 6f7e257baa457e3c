package bench

import (
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

// askings are how often calibrate asks. One asking tells little: the counters of Dewpoint's runtime run some hundred objects late, and
// making an answer allocates thousands. What they are late by, and a collection between, counts once over all of them.
const askings = 32

// calibrate finds out what being asked for allocations allocates, of which a target without work is to be asked.
func (t *Target) calibrate() error {
	first, ok, err := t.allocated()
	if err != nil || !ok {
		return err
	}
	last := first
	for range askings {
		if last, _, err = t.allocated(); err != nil {
			return err
		}
	}
	t.asking = last.minus(first).over(askings)
	return nil
}
