package listen

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// WatchClient calls gone when the client closes its side. It notices by peeking at the connection from the network poller: no polling,
// no bytes taken, at the cost of a goroutine that sleeps. Nothing else may read the connection until stop has returned.
func WatchClient(conn net.Conn, gone func()) (stop func()) {
	wire, ok := conn.(syscall.Conn)
	if !ok {
		return func() {}
	}
	done := make(chan struct{})
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

// peek waits until the connection has bytes (a request; while one is under way, a pipelined one), until it has ended or
// broken: then it is gone; or until its read deadline, which is an error.
func peek(wire syscall.Conn) (gone bool, err error) {
	raw, err := wire.SyscallConn()
	if err != nil {
		return true, err //nolint:wrapcheck // only whether there is one is asked for
	}
	var b [1]byte
	err = raw.Read(func(fd uintptr) bool {
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case syscall.EAGAIN, syscall.EINTR:
			return false
		}
		gone = err != nil || n == 0
		return true
	})
	return gone, err //nolint:wrapcheck // only whether there is one is asked for
}

// CutOff makes writes to a client fail once ctx has ended: a client that takes nothing would hold its request for good.
// The function that it returns ends this and gives the connection back.
func CutOff(ctx context.Context, conn net.Conn) func() {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = conn.SetWriteDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done
			_ = conn.SetWriteDeadline(time.Time{})
		}
	}
}
