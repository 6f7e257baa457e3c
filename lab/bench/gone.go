package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
)

// Gone is how soon upstream is told that a client has left.
type Gone struct {
	Name   string        `json:"name"`
	Phase  string        `json:"phase"`
	Tries  int           `json:"tries"`
	Untold int           `json:"untold"` // tries in which upstream was not told within a second
	P50    time.Duration `json:"p50"`    // of the others
	Worst  time.Duration `json:"worst"`
}

// phases are when clients leave, and the mock's answers that make for it.
func phases() [][2]string {
	return [][2]string{{"before headers", answerHold}, {"in a silent gap", answerGap}, {"in the middle of a chunk", answerPart}}
}

const untold = time.Second

// leave has clients leave in every phase.
func (r *rig) leave(ctx context.Context, tries int) ([]Gone, error) {
	var out []Gone
	h := NewHistory(Plan{Size: 10_000})
	for _, phase := range phases() {
		for _, t := range r.targets {
			g := Gone{Name: t.Name, Phase: phase[0], Tries: tries}
			var took []time.Duration
			for range tries {
				d, told, err := r.leaveOnce(ctx, t, r.fork(h), phase[1])
				if err != nil {
					return out, fmt.Errorf("client leaves %s, %s: %w", phase[0], t.Name, err)
				}
				if !told {
					if g.Untold++; g.Untold > 2 {
						g.Tries = len(took) + g.Untold
						break // it is clear enough, and takes a second each time
					}
					continue
				}
				took = append(took, d)
			}
			g.P50, g.Worst = quantile(took, 0.5), quantile(took, 1)
			out = append(out, g)
		}
	}
	return out, nil
}

// leaveOnce makes a request, leaves, and waits for the mock to be told.
func (r *rig) leaveOnce(ctx context.Context, t *Target, h *History, phase string) (time.Duration, bool, error) {
	take(r.mock.left, 0) // of another try
	take(r.mock.reached, 0)
	c, err := dial(ctx, t.Addr)
	if err != nil {
		return 0, false, err
	}
	defer c.close()
	want := &expectation{body: h.Step(0, true)}
	q := call{Target: t, ID: r.mock.Expected.add(want), Answer: phase, Body: want.body}
	if err := c.send(&q); err != nil {
		return 0, false, err
	}
	if _, ok := take(r.mock.reached, patience); !ok {
		return 0, false, errors.New("the request did not reach upstream")
	}
	if phase != answerHold && !t.bare { // which holds pieces back until it has the whole answer
		if err := c.awaitEvent(); err != nil {
			return 0, false, err
		}
	}
	time.Sleep(2 * time.Millisecond) // into the gap
	left := time.Now()
	c.close()
	at, told := take(r.mock.left, untold)
	if !told {
		r.mock.release()
		take(r.mock.left, untold)
	}
	_, err = r.mock.Expected.await(q.ID)
	return at.Sub(left), told, err
}

// send writes a request, without waiting for its answer.
func (c *client) send(q *call) error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	c.head = appendHead(c.head[:0], q)
	for _, part := range [][]byte{c.head, q.Body[0], q.Body[1], q.Body[2]} {
		if _, err := c.conn.Write(part); err != nil {
			return fmt.Errorf("send: %w", err)
		}
	}
	return nil
}

// awaitEvent reads until an event has come.
func (c *client) awaitEvent() error {
	for seen := []byte(nil); !bytes.Contains(seen, []byte("\n\n")) || !bytes.Contains(seen, []byte(clockMark)); {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		seen = append(seen, line...)
	}
	return nil
}
