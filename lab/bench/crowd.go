package bench

import (
	"context"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// crowd is the clients of a hostile situation.
type crowd struct {
	rig    *rig
	target *Target
	same   []byte // the body that each of them sends
	stream []byte // the same, asking for a stream
}

// hostile measures one situation.
func (r *rig) hostile(ctx context.Context, h hostile) (row MemoryRow, err error) {
	t, err := r.dewpoint(ctx, setting{Name: nameEmbedded, Condenser: "excerpts"})
	if err != nil {
		return row, err
	}
	defer func() { err = closeAll(err, t) }()
	if _, err := r.small(ctx, t, 10, 0); err != nil {
		return row, err
	}
	hold := pick(&r.Options, 50*time.Millisecond, 500*time.Millisecond, 5*time.Second)
	rest := pick(&r.Options, 10*time.Millisecond, 500*time.Millisecond, 3*time.Second) // until the memory is read again
	quiet, err := r.small(ctx, t, 0, hold)
	if err != nil {
		return row, err
	}
	same := r.fork(NewHistory(Plan{Size: h.size}))
	w := &crowd{rig: r, target: t, same: same.Step(0, false), stream: same.Step(0, true)}
	row = MemoryRow{Situation: h.name, Conns: h.conns, Quiet: quantile(quiet, 0.99)}
	row.Before, _ = t.memory()
	t.forgetPeak()
	if err := w.gather(ctx, h, hold, &row); err != nil {
		return row, err
	}
	_, row.Peak = t.memory()
	pause(ctx, rest)
	row.After, _ = t.memory()
	return row, nil
}

// gather opens the connections, lets them act for a while next to a client that makes small requests, and closes them.
func (w *crowd) gather(ctx context.Context, h hostile, hold time.Duration, row *MemoryRow) error {
	conns := make([]*client, h.conns)
	var opening, acting errgroup.Group
	opening.SetLimit(16)
	for i := range conns {
		opening.Go(func() (err error) {
			if conns[i], err = dial(ctx, w.target.Addr, leanBuffer); err != nil || h.first == nil {
				return err
			}
			return h.first(w, conns[i])
		})
	}
	err := opening.Wait()
	aside, cancel := context.WithCancel(ctx)
	defer cancel()
	if err == nil {
		for _, c := range conns {
			if h.then != nil {
				acting.Go(func() error { h.then(aside, w, c); return nil })
			}
		}
		pause(ctx, hold) // what the kernel takes at once is soon through
		var took []time.Duration
		took, err = w.rig.small(ctx, w.target, 0, hold)
		row.Held, _ = w.target.memory()
		row.Served, row.P99 = len(took), quantile(took, 0.99)
	}
	cancel()
	for _, c := range conns {
		if c != nil {
			c.close()
		}
	}
	_ = acting.Wait() // they end with their connections
	return err
}

// askOnce makes a whole request.
func (w *crowd) askOnce(c *client) error {
	_, err := w.rig.ask(c, &call{Target: w.target, Body: w.same})
	return err
}

// declare sends the head of a request with so many bytes to come, and none of them.
func declare(length int) func(w *crowd, c *client) error {
	return func(w *crowd, c *client) error {
		_, err := fmt.Fprintf(c.conn, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", chatPath, length)
		return err
	}
}

// dribble sends a byte now and then: a request's head that never ends, or its body.
func dribble(ctx context.Context, _ *crowd, c *client) {
	text := "POST " + chatPath + " HTTP/1.1\r\nHost: bench\r\nX-Never-Ends: "
	for i := 0; ctx.Err() == nil; i++ {
		b := byte('a')
		if i < len(text) {
			b = text[i]
		}
		if _, err := c.conn.Write([]byte{b}); err != nil {
			return // it was cut off, as it should be sooner or later
		}
		pause(ctx, 100*time.Millisecond)
	}
}

// slowPieces is how many pieces the streams have that are read slowly: 5 MB.
const slowPieces = 500

// openStream asks for a long stream that comes as fast as it goes.
func (w *crowd) openStream(c *client) error {
	id, _ := w.rig.mock.Expected.add(w.stream)
	return c.send(&call{Target: w.target, ID: id, Body: w.stream, Answer: answerStream(slowPieces, -1)})
}

// readSlowly reads 4 KB at a time.
func readSlowly(ctx context.Context, _ *crowd, c *client) {
	buffer := make([]byte, 4<<10)
	for ctx.Err() == nil {
		if _, err := c.conn.Read(buffer); err != nil {
			return // closed at the end
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// tagged is a message of a user that is hard to read, in bytes.
const tagged = 1_000_000

// condenseAgain asks for condensations, each of a history and with a key that were never seen before.
func condenseAgain(ctx context.Context, w *crowd, c *client) {
	var rest strings.Builder // behind the run's number
	rest.WriteString(`"}`)
	for i := range 12 {
		text := "an answer"
		if i == 3 {
			text = strings.Repeat("<env></env>", tagged/len("<env></env>"))
		}
		fmt.Fprintf(&rest, `,{"role":%q,"content":%q}`, [...]string{"assistant", "user"}[i%2], text)
	}
	rest.WriteString("]}")
	hard := []byte(rest.String())
	for ctx.Err() == nil {
		id := w.rig.id.Add(1)
		first := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"run %d`, Model, id)
		head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-%d\r\n"+
			"X-Dewpoint-Condense: now\r\n%s: %d\r\nContent-Length: %d\r\n\r\n", chatPath, id, headerID, uint64(uncompared), len(first)+len(hard))
		_, err := (&net.Buffers{[]byte(head + first), hard}).WriteTo(c.conn)
		if err == nil {
			err = c.response.Read(c.r)
		}
		if err != nil {
			return // closed at the end
		}
	}
}
