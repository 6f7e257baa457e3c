package listen

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
)

// WatchClient calls gone when the client closes its side of the connection. A goroutine sleeps in the network poller and peeks at the
// connection, a syscall.Conn, so nothing is polled and no bytes are consumed. Nothing else may read the connection until stop has returned.
func WatchClient(conn net.Conn, gone func()) (stop func()) {
	wire, done := conn.(syscall.Conn), make(chan struct{})
	_ = conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(done)
		if left, err := peek(wire); left && err == nil {
			gone()
		}
	}()
	return sync.OnceFunc(func() {
		_ = conn.SetReadDeadline(time.Unix(1, 0))
		<-done
		_ = conn.SetReadDeadline(time.Time{})
	})
}

// peek waits until the connection has bytes to read, is closed or broken (then it is gone), or reaches its read deadline (then err is set). The
// bytes are a request's, or a pipelined one's while a request is under way.
func peek(wire syscall.Conn) (gone bool, err error) {
	raw, err := wire.SyscallConn()
	if err != nil {
		return true, err // callers only compare it with nil
	}
	var state platform.State
	err = raw.Read(func(socket uintptr) bool {
		state = platform.Peek(socket)
		return state != platform.Silent
	})
	return state == platform.Closed, err // callers only compare it with nil
}

// CutOff makes writes to a client fail once ctx has ended: a client that reads nothing would hold its request for ever. stop ends that and
// makes the connection writable again.
func CutOff(ctx context.Context, conn net.Conn) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
	})
	return func() {
		if !cancel() {
			<-done
			_ = conn.SetWriteDeadline(time.Time{})
		}
	}
}
