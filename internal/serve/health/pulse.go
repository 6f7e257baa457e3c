package health

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Pulse checks that a server still serves its port. At intervals it opens a connection, closes its sending side, and waits for the server to
// close the connection. That proves that the server accepts, reads and closes connections, without a request. A single slow response is not a
// failure, since a busy server must not be killed for it.
type Pulse struct {
	addr   string
	pace   time.Duration // between two attempts
	limit  time.Duration // for an attempt, and for the time since the last success
	last   atomic.Int64  // last success, in Unix nanoseconds
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// Defaults for Pulse.
const (
	pace  = 5 * time.Second
	limit = time.Minute
)

// StartPulse starts to check a server that listens on addr. Call Stop when done.
func StartPulse(addr string) *Pulse { return startPulse(addr, pace, limit) }

func startPulse(addr string, pace, limit time.Duration) *Pulse {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pulse{addr: Reachable(addr), pace: pace, limit: limit, cancel: cancel}
	p.last.Store(time.Now().UnixNano())
	p.work.Go(func() { p.run(ctx) })
	return p
}

// Stop stops the checks and waits for a running one.
func (p *Pulse) Stop() {
	p.cancel()
	p.work.Wait()
}

// Look is a Check.Look.
func (p *Pulse) Look(context.Context) (State, string) {
	if time.Since(time.Unix(0, p.last.Load())) > p.limit {
		return Failed, "the data port has not been served for " + p.limit.String()
	}
	return OK, ""
}

func (p *Pulse) run(ctx context.Context) {
	ticker := time.NewTicker(p.pace)
	defer ticker.Stop()
	for {
		if probeOnce(ctx, p.addr, p.limit) == nil {
			p.last.Store(time.Now().UnixNano())
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// probeOnce opens a connection, sends nothing, and waits until the server closes it.
func probeOnce(ctx context.Context, addr string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}
