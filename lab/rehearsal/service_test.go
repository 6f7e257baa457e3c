package rehearsal

import (
	"io"
	"net"
	"sync"
	"testing"
)

// service is a Service as kube-proxy makes it: it gives each new connection to a replica that is ready, one after the
// other, and leaves the connections that there are alone. It knows of a replica's end by its readiness probe only, where a
// real one is told at once.
type service struct {
	url      string
	listener net.Listener
	work     sync.WaitGroup

	mu       sync.Mutex
	replicas []*replica
	turn     int
	to       map[string]*replica // by the client's address
	open     map[net.Conn]bool
	closed   bool
}

func newService(t *testing.T) *service {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	s := &service{url: "http://" + listener.Addr().String() + "/v1", listener: listener, to: map[string]*replica{}, open: map[net.Conn]bool{}}
	s.work.Go(s.accept)
	t.Cleanup(s.close)
	return s
}

func (s *service) add(r *replica) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas = append(s.replicas, r)
}

func (s *service) accept() {
	for {
		client, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		s.work.Go(func() { s.carry(client) })
	}
}

// carry connects a client to a replica. Where there is none, or it does not answer, the client's connection is reset.
func (s *service) carry(client net.Conn) {
	defer s.forget(client)
	r := s.pick(client)
	if r == nil {
		reset(client)
		return
	}
	server, err := net.Dial("tcp", r.addr)
	if err != nil {
		reset(client)
		return
	}
	defer s.forget(server)
	if !s.keep(server) {
		return
	}
	r.served.Add(1)
	s.work.Go(func() {
		_, _ = io.Copy(server, client)
		_ = server.(*net.TCPConn).CloseWrite() // the client has left
	})
	if _, err := io.Copy(client, server); err != nil {
		reset(client)
	}
}

func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

// pick gives the next replica that is ready.
func (s *service) pick(client net.Conn) *replica {
	if !s.keep(client) {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for range s.replicas {
		s.turn++
		if r := s.replicas[s.turn%len(s.replicas)]; r.ready.Load() {
			s.to[client.RemoteAddr().String()] = r
			return r
		}
	}
	return nil
}

// served gives the replica that a client's connection led to.
func (s *service) served(client string) *replica {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.to[client]
}

func (s *service) keep(conn net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[conn] = true
	return !s.closed
}

func (s *service) forget(conn net.Conn) {
	_ = conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, conn)
}

func (s *service) close() {
	_ = s.listener.Close()
	s.mu.Lock()
	s.closed = true
	for conn := range s.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	s.work.Wait()
}
