package process

import (
	"net"
	"testing"
)

// TestFreeAddr checks that a server can listen on the address, and that it is outside the ephemeral range.
func TestFreeAddr(t *testing.T) {
	for range 20 {
		addr, err := FreeAddr()
		if err != nil {
			t.Fatal(err)
		}
		server, err := net.Listen("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		if reserve(addr) == nil {
			t.Errorf("%s was given twice", addr)
		}
		if at := server.Addr().(*net.TCPAddr); !at.IP.IsLoopback() || at.Port < firstPort || at.Port > lastPort {
			t.Errorf("free: %v", at)
		}
	}
}

// TestReservedWithoutAServer: an address stays reserved before its server has started.
func TestReservedWithoutAServer(t *testing.T) {
	addr, err := FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	if reserve(addr) == nil {
		t.Errorf("%s was given twice", addr)
	}
}
