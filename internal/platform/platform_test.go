package platform_test

import (
	"net"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/platform"
)

// TestPeek follows a connection that is silent, has a byte to read, and is closed by the other side.
func TestPeek(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	far, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer far.Close()
	near, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	raw, err := near.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	peek := func() (state platform.State) {
		if err := raw.Control(func(socket uintptr) { state = platform.Peek(socket) }); err != nil {
			t.Fatal(err)
		}
		return state
	}
	wait := func() platform.State { // until the connection is not silent
		state := platform.Silent
		err := raw.Read(func(socket uintptr) bool {
			state = platform.Peek(socket)
			return state != platform.Silent
		})
		if err != nil {
			t.Fatal(err)
		}
		return state
	}
	if state := peek(); state != platform.Silent {
		t.Errorf("a new connection: state %d", state)
	}
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if first, second := wait(), peek(); first != platform.Readable || second != platform.Readable {
		t.Errorf("a byte has arrived, which peeking leaves: states %d and %d", first, second)
	}
	var b [2]byte
	if n, err := near.Read(b[:]); n != 1 || err != nil {
		t.Errorf("read %d bytes, %v; want 1", n, err)
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if state := wait(); state != platform.Closed {
		t.Errorf("a closed connection: state %d", state)
	}
}
