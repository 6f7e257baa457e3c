package health

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Pulse tells whether a server's port is still served: again and again it opens a connection, says that nothing will come,
// and waits until the server has closed it. So the server has accepted the connection, read from it and closed it,
// without there being a request. A single slow answer means nothing: a busy server is not to be killed for it.
type Pulse struct {
	addr   string
	pace   time.Duration // between two tries
	limit  time.Duration // without success; one try may take as long
	last   atomic.Int64  // success, in nanoseconds of Unix time
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// How often a Pulse tries, and how long nothing may come of it.
const (
	pace  = 5 * time.Second
	limit = time.Minute
)

// StartPulse begins to probe a server on addr.
func StartPulse(addr string) *Pulse { return startPulse(addr, pace, limit) }

func startPulse(addr string, pace, limit time.Duration) *Pulse {
	ctx, cancel := context.WithCancel(context.Background())
	p := &Pulse{addr: Reachable(addr), pace: pace, limit: limit, cancel: cancel}
	p.last.Store(time.Now().UnixNano())
	p.work.Go(func() { p.run(ctx) })
	return p
}

// Stop ends the Pulse and waits for it.
func (p *Pulse) Stop() {
	p.cancel()
	p.work.Wait()
}

// Look implements a Check.
func (p *Pulse) Look(context.Context) (State, string) {
	if time.Since(time.Unix(0, p.last.Load())) > p.limit {
		return Failed, "the data port has not been served for " + p.limit.String()
	}
	return OK, ""
}

func (p *Pulse) run(ctx context.Context) {
	beat := time.NewTicker(p.pace)
	defer beat.Stop()
	for {
		if beats(ctx, p.addr, p.limit) == nil {
			p.last.Store(time.Now().UnixNano())
		}
		select {
		case <-ctx.Done():
			return
		case <-beat.C:
		}
	}
}

// beats makes one connection that asks for nothing.
func beats(ctx context.Context, addr string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	end := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer end()
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}
