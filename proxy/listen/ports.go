// Package listen accepts clients' connections, parks idle ones without buffers, notices when a client leaves, and drains connections on
// shutdown. It knows nothing about requests.
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

// Open listens on a TCP address. prepare is called with the socket before it is bound; nil: nothing.
func Open(address string, prepare func(network, address string, socket syscall.RawConn) error) (net.Listener, error) {
	c := net.ListenConfig{Control: prepare}
	// Watching and parking connections is tested over plain TCP only.
	c.SetMultipathTCP(false)
	return c.Listen(context.Background(), "tcp", address) // it names the address
}

// Ports is a set of listeners and the connections that they accepted. Close still serves what a client has begun: fasthttp's own shutdown
// resets connections that wait to be accepted, and closes kept ones while their client writes the next request.
type Ports struct {
	handle     func(net.Conn) error // serves a connection until its client closes it or it is parked
	maxSilence time.Duration        // of a new connection
	closing    atomic.Bool          // idle connections are closed
	users      sync.WaitGroup       // accepting listeners, and open connections

	mu        sync.Mutex
	listeners []*net.TCPListener
	conns     map[*conn]struct{}
	drained   chan struct{} // closed when there are no users left; nil: Close was not called
}

// New returns Ports without a listener. maxSilence is how long a new connection may take to send its first byte; 0 is no limit.
func New(handle func(net.Conn) error, maxSilence time.Duration) *Ports {
	return &Ports{handle: handle, maxSilence: maxSilence, conns: map[*conn]struct{}{}}
}

// Count returns how many connections have a request under way, and how many are idle. Idle ones hold no buffers.
func (p *Ports) Count() (busy, idle int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if c.idle() {
			idle++
		}
	}
	return len(p.conns) - idle, idle
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
		go p.attend(c) // ends when c is removed from conns
	}
}

// attend waits for a connection's next request and has it handled, along with any that were pipelined behind it. Then it goes on in another
// goroutine, whose stack is small again.
func (p *Ports) attend(c *conn) {
	if !c.awaitRequest() {
		_ = c.closeTCP()
		return
	}
	_ = p.handle(c) // an error concerns the client only
	if c.parking {
		c.parking = false
		_ = c.applyDeadline()
		go p.attend(c)
	}
}

// add registers a listener. It reports false after Close.
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

// Close stops accepting connections after grace, and closes open ones when they are idle. The channel is closed when none is left. Without
// any grace, connections that the kernel has already completed are reset.
func (p *Ports) Close(grace time.Duration) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.drained != nil {
		return p.drained
	}
	p.drained = make(chan struct{})
	p.closing.Store(true)
	for _, l := range p.listeners {
		_ = l.SetDeadline(time.Now().Add(grace))
	}
	for c := range p.conns {
		_ = c.applyDeadline()
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

// accept waits for a connection. It closes the listener when the deadline that Close set has passed.
func (p *Ports) accept(l *net.TCPListener) (*conn, error) {
	for {
		c, err := l.AcceptTCP()
		switch {
		case err == nil:
			return p.newConn(c), nil
		case retryable(err):
			time.Sleep(acceptRetryDelay)
		case errors.Is(err, os.ErrDeadlineExceeded):
			_ = l.Close()
			return nil, net.ErrClosed
		default:
			return nil, fmt.Errorf("accept: %w", err)
		}
	}
}

// acceptRetryDelay is the pause after a failed accept that may succeed when other connections have freed resources.
const acceptRetryDelay = 20 * time.Millisecond

// retryable reports whether accept failed for lack of file descriptors or memory, or because the connection was already closed.
func retryable(err error) bool {
	code, ok := errors.AsType[syscall.Errno](err)
	return ok && slices.Contains(
		[]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED}, code)
}

// Follow is the ConnState hook of a fasthttp.Server. It notes when an answer has ended and when the next request begins.
func Follow(c net.Conn, state fasthttp.ConnState) {
	ours, ok := c.(*conn)
	switch {
	case ok && state == fasthttp.StateIdle:
		ours.idleSince.Store(new(time.Now()))
	case ok && state == fasthttp.StateActive:
		ours.idleSince.Store(nil)
	}
}
