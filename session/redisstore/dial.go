package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// dial opens a connection. It does what go-redis's own dialer does, but returns a conn.
func (o Options) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout:         o.Timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout) // including the TLS handshake
	defer cancel()
	raw, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := raw.(*net.TCPConn)
	if !ok {
		return raw, nil
	}
	if o.TLS == nil {
		return conn{tcp}, nil
	}
	config := o.TLS
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName, _, _ = net.SplitHostPort(addr) // dialing has split it too
	}
	secured := tls.Client(conn{tcp}, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, tcp.Close())
	}
	return secured, nil
}

// conn tries a second time after a deadline has passed. If this process was too busy to try earlier, the answer has arrived
// already, and the server is not to blame.
type conn struct{ *net.TCPConn }

// grace is how long the second try may take. Data that has arrived is available at once.
const grace = time.Millisecond

func (c conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if later := c.SetReadDeadline(time.Now().Add(grace)); later != nil {
		return 0, err
	}
	return c.TCPConn.Read(b)
}

func (c conn) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	if n == len(b) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if later := c.SetWriteDeadline(time.Now().Add(grace)); later != nil {
		return n, err
	}
	more, err := c.TCPConn.Write(b[n:])
	return n + more, err
}
