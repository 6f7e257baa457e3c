package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// crowd is the clients of a hostile situation.
type crowd struct {
	rig       *rig
	target    *Target
	same      Body // that each of them sends
	delivered atomic.Int64
}

// hostile measures one situation.
func (r *rig) hostile(ctx context.Context, h hostile) (row MemoryRow, err error) {
	t, err := r.dewpoint(setting{Name: nameEmbedded, Condenser: "excerpts"})
	if err != nil {
		return row, err
	}
	defer func() { err = closed(err, t) }()
	if _, err := r.small(ctx, t, 10, 0); err != nil {
		return row, err
	}
	hold, rest := r.hold()
	quiet, err := r.small(ctx, t, 0, hold)
	if err != nil {
		return row, err
	}
	w := &crowd{rig: r, target: t, same: r.fork(NewHistory(Plan{Size: h.size})).Step(0, false)}
	row = MemoryRow{Situation: h.name, Conns: h.conns, Quiet: quantile(quiet, 0.99)}
	row.Before, _ = t.memory()
	t.forgetPeak()
	if err := w.gather(ctx, h, &row); err != nil {
		return row, err
	}
	_, row.Peak = t.memory()
	pause(ctx, rest)
	row.After, _ = t.memory()
	row.Delivered = w.delivered.Load()
	return row, nil
}

// gather opens the connections, lets them act for a while next to a client that makes small requests, and closes them.
func (w *crowd) gather(ctx context.Context, h hostile, row *MemoryRow) error {
	conns := make([]*client, h.conns)
	defer func() {
		for _, c := range conns {
			if c != nil {
				c.close()
			}
		}
	}()
	err := fewAtATime(16, h.conns, func(i int) (err error) {
		if conns[i], err = dialLean(ctx, w.target.Addr); err != nil || h.first == nil {
			return err
		}
		return h.first(w, conns[i])
	})
	if err != nil {
		return err
	}
	aside, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for _, c := range conns {
		if h.then != nil {
			running.Go(func() { h.then(aside, w, c) })
		}
	}
	hold, _ := w.rig.hold()
	pause(ctx, hold) // what the kernel takes at once is soon through
	took, err := w.rig.small(ctx, w.target, 0, hold)
	row.Held, _ = w.target.memory()
	cancel()
	for _, c := range conns {
		c.close()
	}
	running.Wait()
	row.Served, row.P99 = len(took), quantile(took, 0.99)
	return err
}

// fewAtATime does n pieces of work, a few at once.
func fewAtATime(few, n int, work func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, few)
	var running sync.WaitGroup
	for w := range few {
		running.Go(func() {
			for i := next.Add(1) - 1; i < int64(n) && errs[w] == nil; i = next.Add(1) - 1 {
				errs[w] = work(int(i))
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// dialLean is dial with less memory: for connections by the thousand.
func dialLean(ctx context.Context, addr string) (*client, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	return newClient(conn, 1<<10), nil
}

// askOnce makes a whole request.
func (w *crowd) askOnce(c *client) error {
	_, _, err := w.rig.ask(c, &request{call: call{Target: w.target, Body: w.same}})
	return err
}

// declare sends the head of a request with so many bytes to come, and none of them.
func declare(length int) func(w *crowd, c *client) error {
	return func(w *crowd, c *client) error {
		_, err := fmt.Fprintf(c.conn, "POST %s HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", w.target.path, length)
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
	body := w.same
	body[2] = []byte(bodyTailStreamed)
	id := w.rig.mock.Expected.add(&expectation{body: body})
	return c.send(&call{Target: w.target, ID: id, Body: body, Answer: answerBulk(slowPieces)})
}

// readSlowly reads 4 KB at a time.
func readSlowly(ctx context.Context, w *crowd, c *client) {
	buffer := make([]byte, 4<<10)
	for ctx.Err() == nil {
		n, err := c.conn.Read(buffer)
		if err != nil {
			return // closed at the end
		}
		w.delivered.Add(int64(n))
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
			"X-Dewpoint-Condense: now\r\n%s: %d\r\nContent-Length: %d\r\n\r\n", w.target.path, id, headerID, uint64(uncompared), len(first)+len(hard))
		_, err := (&net.Buffers{[]byte(head + first), hard}).WriteTo(c.conn)
		if err == nil {
			err = c.readHead()
		}
		if err == nil {
			err = c.readBody(func([]byte) {})
		}
		if err != nil {
			return // closed at the end
		}
	}
}
