// Package listen accepts clients' connections, holds those that are idle without buffers, notices when a client leaves,
// and drains connections at the end. It knows nothing about requests.
package listen

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/valyala/fasthttp"
)

// settling is how long a listener goes on accepting once it is told to stop: connections that the kernel has completed
// would be reset if it were closed at once.
const settling = 100 * time.Millisecond

// Open listens on a TCP address.
func Open(address string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false) // watching and parking connections are only tested over plain TCP
	l, err := c.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// Ports are the listeners and the connections accepted by them. When they are closed, what a client has begun is still
// served: fasthttp's own shutdown resets connections that wait to be accepted, and closes kept ones under clients that are
// just writing their next request.
type Ports struct {
	handle  func(net.Conn) error // serves a connection until its client closes it, or it is to be parked
	silence time.Duration        // of a new connection
	leaving atomic.Bool          // connections are closed when they fall silent
	users   sync.WaitGroup       // listeners that accept, and open connections

	mu        sync.Mutex
	listeners []*net.TCPListener
	conns     map[*conn]struct{}
	drained   chan struct{} // closed when there are no users; nil: not closing yet
}

// New makes Ports without a listener. A new connection may be silent for some time, 0: no limit.
func New(handle func(net.Conn) error, silence time.Duration) *Ports {
	return &Ports{handle: handle, silence: silence, conns: map[*conn]struct{}{}}
}

// Count counts the connections: those that have a request under way, and those that are silent, which hold no buffers.
func (p *Ports) Count() (busy, silent int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.silent() {
			silent++
		}
	}
	return len(p.conns) - silent, silent
}

// Serve accepts connections from a TCP listener until Close.
func (p *Ports) Serve(l net.Listener) error {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return fmt.Errorf("serve: %T is not a TCP listener", l)
	}
	if !p.add(tcp) {
		_ = l.Close()
		return nil
	}
	defer p.users.Done()
	for {
		c, err := p.accept(tcp)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
		go p.attend(c) // until it is removed from conns
	}
}

// attend waits for a connection's next request and has it handled, with those that came with it. Then it begins anew, in a goroutine
// whose stack is small again.
func (p *Ports) attend(c *conn) {
	if !c.await() {
		_ = c.end()
		return
	}
	_ = p.handle(c) // its errors are the client's
	if c.parking {
		c.parking = false
		_ = c.setEnd()
		go p.attend(c)
	}
}

// add registers a listener, unless the ports are closed.
func (p *Ports) add(l *net.TCPListener) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drained != nil {
		return false
	}
	p.listeners = append(p.listeners, l)
	p.users.Add(1)
	return true
}

// Close takes no new connections and closes those that are open as they fall silent. The channel is closed when none is
// left.
func (p *Ports) Close() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drained != nil {
		return p.drained
	}
	p.drained = make(chan struct{})
	p.leaving.Store(true)
	for _, l := range p.listeners {
		_ = l.SetDeadline(time.Now().Add(settling))
	}
	for c := range p.conns {
		_ = c.setEnd()
	}
	go func() {
		p.users.Wait()
		close(p.drained)
	}()
	return p.drained
}

// Abort closes every connection at once.
func (p *Ports) Abort() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		_ = c.TCPConn.Close()
	}
}

// accept waits for a connection. Close gives a listener a deadline; when it has passed, the listener is closed.
func (p *Ports) accept(l *net.TCPListener) (*conn, error) {
	for {
		c, err := l.AcceptTCP()
		switch {
		case err == nil:
			return p.enter(c), nil
		case exhausted(err):
			time.Sleep(recovering)
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = l.Close()
			return nil, net.ErrClosed
		default:
			return nil, fmt.Errorf("accept: %w", err)
		}
	}
}

// recovering is the pause after a connection could not be accepted for lack of something that others will give back.
const recovering = 20 * time.Millisecond

// exhausted reports whether there were too few file descriptors or too little memory for a connection, or it has ended already.
func exhausted(err error) bool {
	var code syscall.Errno
	return errors.As(err, &code) && slices.Contains(
		[]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}, code)
}

// Follow is a fasthttp.Server's ConnState: it is told when an answer is over and when the next request comes.
func Follow(c net.Conn, state fasthttp.ConnState) {
	ours, ok := c.(*conn)
	switch {
	case ok && state == fasthttp.StateIdle:
		ours.setSilent(time.Now())
	case ok && state == fasthttp.StateActive:
		ours.setSilent(time.Time{})
	}
}
