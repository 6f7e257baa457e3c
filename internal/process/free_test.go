package process_test

import (
	"net"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/process"
)

// TestFreeAddr: a server can listen there, and nobody gets that port who does not ask for it.
func TestFreeAddr(t *testing.T) {
	addr, err := process.FreeAddr()
	if err != nil {
		t.Fatal(err)
	}
	server, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	given, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer given.Close()
	mine, others := server.Addr().(*net.TCPAddr), given.Addr().(*net.TCPAddr)
	if !mine.IP.IsLoopback() || mine.Port >= others.Port {
		t.Errorf("free: %v; given to who asks for none: %v", mine, others)
	}
}
