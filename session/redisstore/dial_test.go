package redisstore

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// pipeTo returns both ends of a connection that the store's dialer opened.
func pipeTo(t *testing.T) (ours net.Conn, theirs net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	ours, err = Options{Timeout: 10 * time.Second}.dial(t.Context(), "tcp", l.Addr().String())
	must(t, err)
	theirs, err = l.Accept()
	must(t, err)
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	return ours, theirs
}

// TestSecondLook: data that has arrived, or can be sent, when the deadline has passed is not late.
func TestSecondLook(t *testing.T) {
	t.Parallel()
	ours, theirs := pipeTo(t)
	past := time.Unix(1, 0)
	must(t, ours.SetDeadline(past))
	if _, err := ours.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("nothing was sent, and read was %v", err)
	}
	must(t, ours.SetDeadline(past))
	must(t, second(ours.Write([]byte("PING"))))
	must(t, second(io.ReadFull(theirs, make([]byte, 4))))
	must(t, second(theirs.Write([]byte("PONG"))))
	got := make([]byte, 4)
	sessiontest.Eventually(t, "it arrives, too late for a first look", func() error {
		must(t, ours.SetDeadline(past))
		return second(io.ReadFull(ours, got))
	})
	if string(got) != "PONG" {
		t.Errorf("read %q", got)
	}
	must(t, theirs.Close())
	must(t, ours.SetDeadline(time.Now().Add(time.Minute)))
	if _, err := ours.Read(got); !errors.Is(err, io.EOF) {
		t.Errorf("the end was %v", err)
	}
}

// TestStarved: a call that timed out while this process was overloaded is repeated and does not trip the breaker.
func TestStarved(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		starved bool
		calls   int
	}{{"starved", true, 2}, {"not starved", false, 1}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := start(t, Options{Addrs: []string{blackHole(t)}, Timeout: 20 * time.Millisecond, Rest: time.Hour})
			s.under.starved = func() bool { return c.starved }
			calls := 0
			err := s.under.read(t.Context(), func(ctx context.Context) error {
				calls++
				<-ctx.Done()
				return ctx.Err()
			})
			unavailable(t, err)
			if calls != c.calls || s.under.breaker.allow() != c.starved {
				t.Errorf("%d calls, others may go out: %v", calls, s.under.breaker.allow())
			}
		})
	}
	s := start(t, Options{Addrs: []string{blackHole(t)}, Timeout: 20 * time.Millisecond, Rest: time.Hour})
	s.under.starved = func() bool { return true }
	late := false
	must(t, s.under.read(t.Context(), func(ctx context.Context) error {
		if late {
			return nil // the repeated call succeeds
		}
		late = true
		<-ctx.Done()
		return ctx.Err()
	}))
}
