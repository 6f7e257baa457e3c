package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
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
	leaving atomic.Bool // connections are closed when they fall silent

	mu    sync.Mutex
	all   []*door // in use
	inUse int     // of them, those that still accept
	conns map[*clientConn]struct{}
	over  chan struct{} // closed when nothing accepts and no connection is open; nil: not asked for yet
	told  bool
}

// add makes a listener one of the doors, unless they are shut.
func (d *doors) add(l net.Listener) (*door, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over != nil {
		return nil, false
	}
	if d.conns == nil {
		d.conns = map[*clientConn]struct{}{}
	}
	tcp, _ := l.(*net.TCPListener)
	one := &door{Listener: l, tcp: tcp, of: d}
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
	net.Listener
	tcp    *net.TCPListener // nil: of another kind, which is just closed
	of     *doors
	isShut atomic.Bool
	once   sync.Once
}

// shut has Accept give what clients have begun, and then io.EOF.
func (l *door) shut() {
	if l.tcp == nil {
		_ = l.Close()
		return
	}
	_ = refuseHandshakes(l.tcp) // without it, a client that comes in the very moment of closing is reset
	l.isShut.Store(true)
	_ = l.tcp.SetDeadline(time.Unix(1, 0)) // Accept wakes up
}

// Accept implements net.Listener.
func (l *door) Accept() (net.Conn, error) {
	if l.tcp == nil {
		return l.Listener.Accept()
	}
	for {
		last := l.isShut.Load()
		if last {
			_ = l.tcp.SetDeadline(time.Now().Add(settling)) // whole, after each connection: then none was waiting
		}
		conn, err := l.tcp.AcceptTCP()
		switch {
		case err == nil:
			return l.of.enter(conn), nil
		case !timedOut(err):
			return nil, err
		case last:
			_ = l.Close()
			return nil, io.EOF
		}
	}
}

// Close implements net.Listener. Closing again is no error.
func (l *door) Close() error {
	var err error
	l.once.Do(func() { err = l.Listener.Close() })
	return err
}
