package sessiontest

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"testing"
	"time"
)

// echo sends a byte and waits until it comes back.
func echo(conn net.Conn) error {
	if _, err := conn.Write([]byte("x")); err != nil {
		return err
	}
	return second(conn.Read(make([]byte, 1)))
}

// echoServer returns the address of a server that sends back what it gets.
func echoServer(t *testing.T) string {
	t.Helper()
	l := must(net.Listen("tcp", host+":0"))(t)
	var work sync.WaitGroup
	t.Cleanup(work.Wait)
	t.Cleanup(func() { _ = l.Close() })
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				_, _ = io.Copy(conn, conn)
			})
		}
	})
	return l.Addr().String()
}

// TestRelayCuts: Cut resets what is connected, and a closed relay what connects.
func TestRelayCuts(t *testing.T) {
	addr := echoServer(t)
	r := StartRelay(t, addr)
	dial := func(to string) net.Conn {
		conn := must(net.Dial("tcp", to))(t)
		t.Cleanup(func() { _ = conn.Close() })
		ok(t, conn.SetDeadline(time.Now().Add(patience)))
		ok(t, echo(conn))
		return conn
	}
	wantCut := func(conn net.Conn) {
		t.Helper()
		if err := echo(conn); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the connection is not cut: %v", err)
		}
	}
	conn, direct := dial(r.Addr), dial(addr)
	r.Cut()
	wantCut(conn)
	conn = dial(r.Addr)
	r.close()
	wantCut(conn)
	r.keep(direct)
	wantCut(direct)
}
