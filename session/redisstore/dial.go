package redisstore

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"os"
	"time"
)

// dial makes the connections. go-redis's own dialer does the same, but for the second look.
func (o Options) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{
		Timeout:         o.Timeout,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 5 * time.Second, Count: 3},
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout) // the handshake of TLS included
	defer cancel()
	raw, err := dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	tcp, is := raw.(*net.TCPConn)
	if !is {
		return raw, nil
	}
	if o.TLS == nil {
		return conn{tcp}, nil
	}
	return o.secure(ctx, conn{tcp}, addr)
}

func (o Options) secure(ctx context.Context, raw net.Conn, addr string) (net.Conn, error) {
	config := o.TLS
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, errors.Join(err, raw.Close())
		}
		config = config.Clone()
		config.ServerName = host
	}
	secured := tls.Client(raw, config)
	if err := secured.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, raw.Close())
	}
	return secured, nil
}

// conn looks a second time when a deadline has passed: where this process had no time to look before, the answer is there
// for long, and the server is not to blame.
type conn struct{ *net.TCPConn }

// look is how long the second look takes at most. What has arrived is there at once.
const look = time.Millisecond

func (c conn) Read(b []byte) (int, error) {
	n, err := c.TCPConn.Read(b)
	if n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if later := c.SetReadDeadline(time.Now().Add(look)); later != nil {
		return 0, err
	}
	return c.TCPConn.Read(b)
}

func (c conn) Write(b []byte) (int, error) {
	n, err := c.TCPConn.Write(b)
	if n == len(b) || !errors.Is(err, os.ErrDeadlineExceeded) {
		return n, err
	}
	if later := c.SetWriteDeadline(time.Now().Add(look)); later != nil {
		return n, err
	}
	more, err := c.TCPConn.Write(b[n:])
	return n + more, err
}
