package listen_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/proxy/listen"
)

// pair returns both ends of a connection.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := listen.Open("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if client, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	if server, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	return client, server
}

func TestWatchTellsThatTheClientLeft(t *testing.T) {
	client, server := pair(t)
	left := make(chan struct{})
	stop := listen.WatchClient(server, func() { close(left) })
	client.Close()
	<-left
	stop()
	stop() // again: nothing happens
}

// TestWatchGivesTheConnectionBack stops watching a client that stays: what it then sends can be read.
func TestWatchGivesTheConnectionBack(t *testing.T) {
	client, server := pair(t)
	stop := listen.WatchClient(server, func() { t.Error("the client is said to have left") })
	stop()
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := server.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

// TestCutOff: writes fail once the context has ended, until stop is called.
func TestCutOff(t *testing.T) {
	_, server := pair(t)
	ctx, cancel := context.WithCancel(t.Context())
	back := listen.CutOff(ctx, server)
	cancel()
	for begun := time.Now(); ; {
		if _, err := server.Write([]byte("x")); err != nil {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatal("writes go on")
		}
	}
	back()
	if _, err := server.Write([]byte("x")); err != nil {
		t.Error(err)
	}
}
