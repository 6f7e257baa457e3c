package h1

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"
)

// handshaking is how long a TLS handshake may take.
const handshaking = 10 * time.Second

// secure connects by TLS. Which hosts speak HTTP/2 comes out at the first handshake: they are the other transport's from
// then on, and that connection is, too.
type secure struct {
	config *tls.Config
	dial   func(ctx context.Context, network, addr string) (net.Conn, error)

	mu    sync.Mutex
	other map[string]bool
	spare map[string]*tls.Conn // by address, for the other transport's next one
}

// connect makes a connection, nil if the host is the other transport's.
func (s *secure) connect(ctx context.Context, addr string) (net.Conn, error) {
	c, err := s.handshake(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	if c.ConnectionState().NegotiatedProtocol != "h2" {
		return c, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.other[addr] = true
	if s.spare[addr] != nil {
		_ = c.Close()
	} else {
		s.spare[addr] = c
	}
	return nil, nil //nolint:nilnil // said above
}

func (s *secure) handshake(ctx context.Context, network, addr string) (*tls.Conn, error) {
	raw, err := s.dial(ctx, network, addr)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	config := s.config.Clone()
	config.NextProtos = []string{"h2", "http/1.1"}
	if config.ServerName, _, err = net.SplitHostPort(addr); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, handshaking)
	defer cancel()
	c := tls.Client(raw, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = raw.Close()
		return nil, fmt.Errorf("connect: %w", err)
	}
	return c, nil
}

// isOther reports whether a host is the other transport's.
func (s *secure) isOther(addr string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.other[addr]
}

// take gives the connection that was made for the other transport, nil if there is none.
func (s *secure) take(addr string) *tls.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.spare[addr]
	delete(s.spare, addr)
	return c
}

// DialTLS connects for the other transport, if that is net/http's: it is its DialTLSContext.
func (t *Transport) DialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	if c := t.secure.take(addr); c != nil {
		return c, nil
	}
	return t.secure.handshake(ctx, network, addr)
}
