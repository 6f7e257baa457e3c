package proxy

import (
	"context"
	"net"
	"sync"
	"syscall"
	"time"
)

// watch notices that a client leaves, by peeking at its connection from the network poller: no polling, no bytes taken.
// It costs a goroutine that sleeps. The connection must not be read by anybody else until stop has returned.
type watch struct {
	conn net.Conn
	done chan struct{}
	once sync.Once
}

// watchClient cancels when the client closes its side.
func watchClient(conn net.Conn, cancel context.CancelCauseFunc) *watch {
	w := &watch{conn: conn, done: make(chan struct{})}
	raw, ok := rawConn(conn)
	if !ok {
		close(w.done)
		return w
	}
	_ = conn.SetReadDeadline(time.Time{})
	go func() {
		defer close(w.done)
		if gone, err := peek(raw); gone && err == nil {
			cancel(errClientGone)
		}
	}()
	return w
}

func rawConn(conn net.Conn) (syscall.RawConn, bool) {
	sc, ok := conn.(syscall.Conn)
	if !ok {
		return nil, false
	}
	raw, err := sc.SyscallConn()
	return raw, err == nil
}

// peek waits until the connection has bytes (a request; while one is under way, a pipelined one), until it has ended or
// broken: then it is gone; or until its read deadline, which is an error.
func peek(raw syscall.RawConn) (gone bool, err error) {
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

// cutOff makes writes to a client fail once ctx has ended: a client that takes nothing would hold its request for good.
// The function that it returns ends this and gives the connection back.
func cutOff(ctx context.Context, conn net.Conn) func() {
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

// stop ends the watch and gives the connection back.
func (w *watch) stop() {
	w.once.Do(func() {
		_ = w.conn.SetReadDeadline(time.Unix(1, 0))
		<-w.done
		_ = w.conn.SetReadDeadline(time.Time{})
	})
}
