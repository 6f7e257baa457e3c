package platform_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
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

// TestTryLock locks a file once, and again after it was closed.
func TestTryLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() (f *os.File, locked bool) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if locked, err = platform.TryLock(f); err != nil {
			t.Error(err)
		}
		return f, locked
	}
	first, locked := open()
	if !locked {
		t.Error("a new file was not locked")
	}
	second, locked := open()
	if locked {
		t.Error("a locked file was locked again")
	}
	if err := second.Close(); err != nil { // does not release the first one's lock
		t.Fatal(err)
	}
	third, locked := open()
	defer third.Close()
	if locked {
		t.Error("the lock was lost with another open file")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	fourth, locked := open()
	defer fourth.Close()
	if !locked {
		t.Error("a file that was unlocked was not locked again")
	}
}
