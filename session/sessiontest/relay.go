package sessiontest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Relay stands between a client and a server, and is the network between them: slow, silent, or cut. All methods may be
// called concurrently, at any time.
type Relay struct {
	Addr string

	to       string
	listener net.Listener
	work     sync.WaitGroup
	mu       sync.Mutex
	delay    time.Duration
	hole     bool
	cutAt    int // answers' bytes until a connection is cut, 0: never
	ends     map[net.Conn]bool
	closed   bool
}

// StartRelay relays connections to the address to, until the end of the test.
func StartRelay(t testing.TB, to string) *Relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	r := &Relay{Addr: l.Addr().String(), to: to, listener: l, ends: map[net.Conn]bool{}}
	r.work.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

// Retarget makes new connections go to another address, as when a name comes to stand for another host.
func (r *Relay) Retarget(to string) { r.set(func() { r.to = to }) }

// Delay makes each answer come later by d.
func (r *Relay) Delay(d time.Duration) { r.set(func() { r.delay = d }) }

// Swallow makes the relay take connections and all that is sent, and give nothing; or ends that, and with it all
// connections that have lost something.
func (r *Relay) Swallow(hole bool) {
	r.set(func() { r.hole = hole })
	if !hole {
		r.Cut()
	}
}

// Cut resets all connections.
func (r *Relay) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for conn := range r.ends {
		reset(conn)
	}
}

// CutAfter resets the connection on which the nth byte of an answer from now on would pass, once.
func (r *Relay) CutAfter(n int) { r.set(func() { r.cutAt = n }) }

func (r *Relay) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func reset(conn net.Conn) {
	if tcp, isTCP := conn.(*net.TCPConn); isTCP {
		_ = tcp.SetLinger(0) // it is about to be closed: what else could be done
	}
	_ = conn.Close()
}

func (r *Relay) close() {
	r.set(func() { r.closed = true })
	_ = r.listener.Close()
	r.Cut()
	r.work.Wait()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		if r.keep(client) {
			r.work.Go(func() { r.serve(client) })
		}
	}
}

// keep remembers a connection, unless the relay is closed.
func (r *Relay) keep(conn net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		reset(conn)
		return false
	}
	r.ends[conn] = true
	return true
}

func (r *Relay) drop(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.ends, conn)
	_ = conn.Close()
}

func (r *Relay) serve(client net.Conn) {
	defer r.drop(client)
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	server, err := net.DialTimeout("tcp", to, patience)
	if err != nil {
		reset(client)
		return
	}
	if !r.keep(server) {
		return
	}
	defer r.drop(server)
	var there sync.WaitGroup
	there.Go(func() {
		defer server.Close()
		r.pass(server, client, false)
	})
	r.pass(client, server, true)
	_ = client.Close()
	there.Wait()
}

// pass copies from one end to the other until either ends.
func (r *Relay) pass(to io.Writer, from io.Reader, answers bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !r.hand(to, buffer[:n], answers) || err != nil {
			return
		}
	}
}

// hand passes one piece on, as the network is now, and reports whether the connection lives.
func (r *Relay) hand(to io.Writer, piece []byte, answers bool) bool {
	r.mu.Lock()
	delay, hole := r.delay, r.hole
	cut := answers && r.cutAt > 0 && len(piece) >= r.cutAt
	if cut {
		piece, r.cutAt = piece[:r.cutAt], 0
	} else if answers && r.cutAt > 0 {
		r.cutAt -= len(piece)
	}
	r.mu.Unlock()
	if hole {
		return true
	}
	if answers && delay > 0 {
		time.Sleep(delay) // the network's, not the test's
	}
	_, err := to.Write(piece)
	return err == nil && !cut
}
