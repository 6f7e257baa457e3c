package sessiontest

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// Relay is the network between a client and a server: slow, silent, or cut. All methods may be called concurrently.
type Relay struct {
	Addr string

	listener net.Listener
	work     sync.WaitGroup

	mu     sync.Mutex
	to     string
	delay  time.Duration
	silent bool
	cutAt  int               // bytes of replies until a connection is cut; 0 is never
	conns  map[net.Conn]bool // nil once the relay is closed
}

// StartRelay relays connections to the address to, until the test ends.
func StartRelay(t testing.TB, to string) *Relay {
	t.Helper()
	l := must(net.Listen("tcp", "127.0.0.1:0"))(t)
	r := &Relay{Addr: l.Addr().String(), to: to, listener: l, conns: map[net.Conn]bool{}}
	r.work.Go(r.accept)
	t.Cleanup(r.close)
	return r
}

// Retarget sends new connections to another address, as after a change in the DNS.
func (r *Relay) Retarget(to string) { r.locked(func() { r.to = to }) }

// Delay delays each reply by d.
func (r *Relay) Delay(d time.Duration) { r.locked(func() { r.delay = d }) }

// Swallow makes the relay accept connections and data, but deliver nothing. Swallow(false) ends that, and resets all
// connections, because they have lost data.
func (r *Relay) Swallow(silent bool) {
	r.locked(func() { r.silent = silent })
	if !silent {
		r.Cut()
	}
}

// Cut resets all connections.
func (r *Relay) Cut() { r.locked(r.resetAll) }

// CutAfter resets, once, the connection that delivers the nth byte of replies from now on.
func (r *Relay) CutAfter(n int) { r.locked(func() { r.cutAt = n }) }

func (r *Relay) locked(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
}

func (r *Relay) resetAll() {
	for conn := range r.conns {
		reset(conn)
	}
}

func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0) // the connection is closed next, whatever this returns
	_ = conn.Close()
}

func (r *Relay) close() {
	_ = r.listener.Close()
	r.locked(func() {
		r.resetAll()
		r.conns = nil
	})
	r.work.Wait()
}

func (r *Relay) accept() {
	for {
		client, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.work.Go(func() { r.serve(client) })
	}
}

// serve connects a client to the server and copies in both directions until either side ends.
func (r *Relay) serve(client net.Conn) {
	r.keep(client)
	defer r.drop(client)
	var to string
	r.locked(func() { to = r.to })
	server, err := net.DialTimeout("tcp", to, patience)
	if err != nil {
		reset(client)
		return
	}
	r.keep(server)
	defer r.drop(server)
	r.work.Go(func() {
		r.pass(server, client, false)
		_ = server.Close()
	})
	r.pass(client, server, true)
}

// keep adds a connection to those that Cut resets, or resets it if the relay is closed.
func (r *Relay) keep(conn net.Conn) {
	r.locked(func() {
		if r.conns == nil {
			reset(conn)
		} else {
			r.conns[conn] = true
		}
	})
}

func (r *Relay) drop(conn net.Conn) {
	r.locked(func() { delete(r.conns, conn) })
	_ = conn.Close()
}

// pass copies from one side to the other until either ends.
func (r *Relay) pass(to io.Writer, from io.Reader, replies bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !r.deliver(to, buffer[:n], replies) || err != nil {
			return
		}
	}
}

// deliver writes one piece of data, as far as the network allows, and reports whether the connection still works.
func (r *Relay) deliver(to io.Writer, piece []byte, replies bool) bool {
	r.mu.Lock()
	delay, silent := r.delay, r.silent
	cut := replies && r.cutAt > 0 && len(piece) >= r.cutAt
	if cut {
		piece, r.cutAt = piece[:r.cutAt], 0
	} else if replies && r.cutAt > 0 {
		r.cutAt -= len(piece)
	}
	r.mu.Unlock()
	if silent {
		return true
	}
	if replies {
		time.Sleep(delay)
	}
	_, err := to.Write(piece)
	return err == nil && !cut
}
