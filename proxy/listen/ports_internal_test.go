package listen

import (
	"errors"
	"net"
	"syscall"
	"testing"
	"time"
)

// TestCloseGivesWhatWasBegun closes a listener with connections waiting: it accepts them all, and is closed then.
func TestCloseGivesWhatWasBegun(t *testing.T) {
	l, err := Open("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	tcp := l.(*net.TCPListener)
	p := New(nil, 0)
	if !p.add(tcp) {
		t.Fatal("the ports are closed")
	}
	const waiting = 40
	for range waiting {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	drained := p.Close(100 * time.Millisecond)
	_ = tcp.SetDeadline(time.Time{}) // however busy the machine is
	for range waiting {
		conn, err := p.accept(tcp)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.closeTCP()
	}
	_ = tcp.SetDeadline(time.Now())
	if _, err := p.accept(tcp); !errors.Is(err, net.ErrClosed) {
		t.Errorf("then %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialled: %v", err)
	}
	p.users.Done() // the listener is
	select {
	case <-drained:
		t.Error("drained with connections open")
	default:
	}
	if p.add(tcp) {
		t.Error("a listener was added after Close")
	}
	p.Abort()
	for c := range p.conns {
		_ = c.closeTCP()
	}
	<-drained
}

// TestCloseWakesUp closes ports whose listener is waiting for connections.
func TestCloseWakesUp(t *testing.T) {
	l, err := Open("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	p := New(nil, 0)
	served := make(chan error, 1)
	go func() { served <- p.Serve(l) }()
	<-p.Close(100 * time.Millisecond)
	select {
	case err := <-served:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for good")
	}
}
