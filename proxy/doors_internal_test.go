package proxy

import (
	"errors"
	"io"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// TestDoorGivesWhatWasBegun shuts a listener that has connections waiting: it gives them all, takes no other, and is
// closed then.
func TestDoorGivesWhatWasBegun(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var d doors
	one, open := d.add(l.(*net.TCPListener))
	if !open {
		t.Fatal("the doors are shut")
	}
	const waiting = 40
	for range waiting {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	over := d.shut()
	if runtime.GOOS == "linux" {
		late := net.Dialer{Timeout: settling / 4}
		if conn, err := late.Dial("tcp", l.Addr().String()); err == nil {
			conn.Close()
			t.Error("a connection was begun after the door was shut")
		}
	}
	for range waiting {
		conn, err := one.next()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.end()
	}
	if _, err := one.next(); !errors.Is(err, io.EOF) {
		t.Errorf("then %v", err)
	}
	if _, err := net.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dialled: %v", err)
	}
	d.ended()
	select {
	case <-over:
		t.Error("over with connections open")
	default:
	}
	if _, open := d.add(l.(*net.TCPListener)); open {
		t.Error("a door was added to those that are shut")
	}
	d.slam()
	for c := range d.conns {
		_ = c.end()
	}
	<-over
}

// TestDoorWakesUp shuts a listener that is being waited at.
func TestDoorWakesUp(t *testing.T) {
	l, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var d doors
	one, _ := d.add(l.(*net.TCPListener))
	got := make(chan error)
	go func() {
		_, err := one.next()
		got <- err
	}()
	d.shut()
	select {
	case err := <-got:
		if !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for good")
	}
}
