package bench

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Gone is how soon upstream is told that a client has left.
type Gone struct {
	Name   string
	Phase  string
	Tries  int
	Untold int           // tries in which upstream was not told within a second
	P50    time.Duration // of the others
	Worst  time.Duration
}

const untold = time.Second

// leave has clients leave in every phase.
func (r *rig) leave(ctx context.Context, tries int) ([]Gone, error) {
	var out []Gone
	h := NewHistory(Plan{Size: 10_000})
	for _, phase := range [][2]string{ // with the mock's answers that make for them
		{"before headers", answerHold}, {"in a silent gap", answerGap}, {"in the middle of a chunk", answerPart},
	} {
		for _, t := range r.targets {
			if t.proc == nil { // upstream itself
				continue
			}
			g := Gone{Name: t.Name, Phase: phase[0]}
			var took []time.Duration
			for g.Tries < tries && g.Untold <= 2 { // then it is clear enough, and each takes a second
				d, told, err := r.leaveOnce(ctx, t, r.fork(h), phase[1])
				if err != nil {
					return out, fmt.Errorf("client leaves %s, %s: %w", phase[0], t.Name, err)
				}
				if g.Tries++; told {
					took = append(took, d)
				} else {
					g.Untold++
				}
			}
			g.P50, g.Worst = quantile(took, 0.5), quantile(took, 1)
			out = append(out, g)
		}
	}
	return out, nil
}

// leaveOnce makes a request, leaves, and waits for the mock to be told.
func (r *rig) leaveOnce(ctx context.Context, t *Target, h *History, phase string) (time.Duration, bool, error) {
	c, err := dial(ctx, t.Addr, bufferSize)
	if err != nil {
		return 0, false, err
	}
	defer c.close()
	q := call{Target: t, Answer: phase, Body: h.Step(0, true)}
	id, want := r.mock.Expected.add(q.Body)
	q.ID = id
	if err := c.send(&q); err != nil {
		return 0, false, err
	}
	if _, ok := take(want.reached, patience); !ok {
		return 0, false, errors.New("the request did not reach upstream")
	}
	if phase != answerHold && t.Name != nameBare { // which holds pieces back until it has the whole answer
		if err := c.awaitEvent(); err != nil {
			return 0, false, err
		}
	}
	time.Sleep(2 * time.Millisecond) // into the gap
	left := time.Now()
	c.close()
	at, told := take(want.left, untold)
	return at.Sub(left), told, r.mock.Expected.await(id)
}

// take waits for a time. ok is false if none came.
func take(from <-chan time.Time, wait time.Duration) (at time.Time, ok bool) {
	select {
	case at = <-from:
		return at, true
	case <-time.After(wait):
		return at, false
	}
}
