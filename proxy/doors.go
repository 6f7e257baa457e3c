package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// settling is how long a listener that takes no new connections waits for those whose handshake is under way.
const settling = 100 * time.Millisecond

// Listen opens a data port. It speaks plain TCP, no MPTCP: that one can not be told to take no new connections.
func Listen(address string) (net.Listener, error) {
	var c net.ListenConfig
	c.SetMultipathTCP(false)
	l, err := c.Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// doors are the listeners, and the connections that came in by them. At the end they see to it that what a client has
// begun is served: fasthttp's own way out resets connections that wait to be accepted, and closes kept ones under clients
// that are just writing their next request.
type doors struct {
	leaving atomic.Bool  // connections are closed when they fall silent
	parked  atomic.Int64 // connections that wait for a request, without buffers

	mu    sync.Mutex
	all   []*door // in use
	inUse int     // of them, those that still accept
	conns map[*clientConn]struct{}
	over  chan struct{} // closed when nothing accepts and no connection is open; nil: not asked for yet
	told  bool
}

// add makes a listener one of the doors, unless they are shut.
func (d *doors) add(l *net.TCPListener) (*door, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over != nil {
		return nil, false
	}
	if d.conns == nil {
		d.conns = map[*clientConn]struct{}{}
	}
	one := &door{tcp: l, of: d}
	d.all = append(d.all, one)
	d.inUse++
	return one, true
}

// ended says that a door accepts no more.
func (d *doors) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inUse--
	d.check()
}

// check tells when all is over. It is called under mu.
func (d *doors) check() {
	if d.over != nil && !d.told && d.inUse == 0 && len(d.conns) == 0 {
		d.told = true
		close(d.over)
	}
}

// shut takes no new connections and lets go of those that are open as they fall silent. The channel is closed when there
// are none.
func (d *doors) shut() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over != nil {
		return d.over
	}
	d.over = make(chan struct{})
	d.leaving.Store(true)
	for _, one := range d.all {
		one.shut()
	}
	for c := range d.conns {
		c.hurry()
	}
	d.check()
	return d.over
}

// busy counts the connections that have a request under way.
func (d *doors) busy() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := 0
	for c := range d.conns {
		if !c.silent() {
			n++
		}
	}
	return n
}

// slam closes every connection.
func (d *doors) slam() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for c := range d.conns {
		_ = c.TCPConn.Close()
	}
}

// door is one listener.
type door struct {
	tcp    *net.TCPListener
	of     *doors
	isShut atomic.Bool
}

// shut has next give what clients have begun, and then io.EOF.
func (l *door) shut() {
	_ = refuseHandshakes(l.tcp) // without it, a client that comes in the very moment of closing is reset
	l.isShut.Store(true)
	_ = l.tcp.SetDeadline(time.Unix(1, 0)) // next wakes up
}

// next waits for a connection.
func (l *door) next() (*clientConn, error) {
	for {
		last := l.isShut.Load()
		if last {
			_ = l.tcp.SetDeadline(time.Now().Add(settling)) // whole, after each connection: then none was waiting
		}
		conn, err := l.tcp.AcceptTCP()
		switch {
		case err == nil:
			return l.of.enter(conn), nil
		case exhausted(err):
			time.Sleep(recovering)
		case !timedOut(err):
			return nil, fmt.Errorf("accept: %w", err)
		case last:
			_ = l.tcp.Close()
			return nil, io.EOF
		}
	}
}

// recovering is the pause after a connection could not be taken for want of something that others will give back.
const recovering = 20 * time.Millisecond

// exhausted reports whether there were too few file descriptors or too little memory for a connection.
func exhausted(err error) bool {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
		if errors.Is(err, e) {
			return true
		}
	}
	return errors.Is(err, syscall.ECONNABORTED)
}
