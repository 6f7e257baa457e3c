package platform_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
)

// TestHold: a port that is held connects clients while somebody listens, and nobody takes it afterwards.
func TestHold(t *testing.T) {
	if !platform.CanHold {
		t.Skip("this system cannot hold ports")
	}
	c := net.ListenConfig{Control: platform.Holdable}
	listener, err := c.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := listener.Addr().String()
	held, err := platform.Hold(at)
	if err != nil {
		t.Fatal(err)
	}
	client, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(client.Close(), listener.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := net.Dial("tcp", at); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	if _, err := net.Listen("tcp", at); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("somebody listens on a held port: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	_ = again.Close()
}
