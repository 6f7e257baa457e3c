package health

import (
	"context"
	"errors"
	"io"
	"net"
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
	ended  chan struct{}
	cancel context.CancelFunc
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
	p := &Pulse{addr: Reachable(addr), pace: pace, limit: limit, ended: make(chan struct{}), cancel: cancel}
	p.last.Store(time.Now().UnixNano())
	go p.run(ctx)
	return p
}

// Stop ends the Pulse and waits for it.
func (p *Pulse) Stop() {
	p.cancel()
	<-p.ended
}

// Look implements a Check.
func (p *Pulse) Look(context.Context) (State, string) {
	if time.Since(time.Unix(0, p.last.Load())) > p.limit {
		return Failed, "the data port has not been served for " + p.limit.String()
	}
	return OK, ""
}

func (p *Pulse) run(ctx context.Context) {
	defer close(p.ended)
	for beat := time.NewTicker(p.pace); ; {
		if beats(ctx, p.addr, p.limit) == nil {
			p.last.Store(time.Now().UnixNano())
		}
		select {
		case <-ctx.Done():
			beat.Stop()
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
	half, ok := conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.New("not a TCP connection")
	}
	if err := half.CloseWrite(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, conn)
	return err
}

// Reachable is an address of this machine to connect to, for one that a server listens on.
func Reachable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	ip := net.ParseIP(host)
	if host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1" // what listens on all addresses of IPv6 listens on those of IPv4 too
	}
	return net.JoinHostPort(host, port)
}
