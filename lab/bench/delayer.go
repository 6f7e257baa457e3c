package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// delayer is a slow line to a server: it forwards connections, and every answer takes longer.
type delayer struct {
	to       string
	listener net.Listener
	wait     atomic.Int64 // nanoseconds, of each piece of an answer
	stalled  sync.RWMutex // held for writing while nothing comes through
	running  sync.WaitGroup
	mu       sync.Mutex
	conns    []net.Conn
}

func newDelayer(to string) (*delayer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("delay: %w", err)
	}
	d := &delayer{to: to, listener: l}
	d.running.Go(d.accept)
	return d, nil
}

func (d *delayer) addr() string { return d.listener.Addr().String() }

func (d *delayer) delay(by time.Duration) { d.wait.Store(int64(by)) }

// stalls lets nothing through for a while, again and again.
func (d *delayer) stalls(ctx context.Context, _ *Target) error {
	for ctx.Err() == nil {
		d.stalled.Lock()
		pause(ctx, 300*time.Millisecond)
		d.stalled.Unlock()
		pause(ctx, 700*time.Millisecond)
	}
	return nil
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (d *delayer) accept() {
	for {
		from, err := d.listener.Accept()
		if err != nil {
			return // closed
		}
		to, err := net.Dial("tcp", d.to)
		if err != nil {
			from.Close()
			continue
		}
		d.mu.Lock()
		d.conns = append(d.conns, from, to)
		d.mu.Unlock()
		d.running.Go(func() { d.pass(to, from, false) })
		d.running.Go(func() { d.pass(from, to, true) })
	}
}

// pass copies what comes, until either side closes.
func (d *delayer) pass(to, from net.Conn, slow bool) {
	defer to.Close()
	defer from.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if slow && n > 0 {
			time.Sleep(time.Duration(d.wait.Load()))
			d.stalled.RLock()
			d.stalled.RUnlock() //nolint:staticcheck // it only waits until nothing is held back
		}
		if _, werr := to.Write(buffer[:n]); err != nil || werr != nil {
			return
		}
	}
}

func (d *delayer) close() {
	_ = io.Closer(d.listener).Close()
	d.mu.Lock()
	for _, c := range d.conns {
		c.Close()
	}
	d.mu.Unlock()
	d.running.Wait()
}
