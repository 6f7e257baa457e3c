package e2e

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// TestDrain asks the proxy to end while an answer streams: it takes no new connection, relays the answer to its end,
// writes its log and exits with 0.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			config := s.config(t, embedded(newStore(t)))
			p := serve(t, "--config", config)
			hold, run := make(chan struct{}), demo.Sample()
			s.Upstream.Script(fakeupstream.Answer{Message: run.Messages[4], Fault: fakeupstream.Fault{Hold: hold, HoldAfter: 2}})
			request := encode(map[string]any{"model": "gpt-4o", "stream": true, "messages": run.Messages[:4]})
			running := send(t, p, request)
			running.read(1)

			ok(t, p.command.Process.Signal(signal))
			p.await("stopping")
			eventually(t, "the port is closed", func() error { return refused(p.Addr) })
			close(hold)
			rest, err := running.rest()
			if err != nil || !strings.HasSuffix(rest, "data: [DONE]\n\n") {
				t.Errorf("%v, %q", err, rest)
			}
			if code := p.wait(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			next := send(t, serve(t, "--config", config), body(run.Messages[:6]))
			ok(t, next.finish())
			oneThread(t, []place{placeOf(exchange{}, running.Response), placeOf(exchange{Step: 1}, next.Response)})
		})
	}
}

func refused(addr string) error {
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		return errors.New("it accepts")
	}
	return nil
}

// TestIdleConnectionsDoNotKeepIt ends a proxy whose clients keep their connections.
func TestIdleConnectionsDoNotKeepIt(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	for _, url := range []string{p.url() + "/models", "http://" + p.Admin + "/healthz", "http://" + p.Admin + "/readyz"} {
		resp, err := http.Get(url)
		ok(t, err)
		ok(t, (&answer{Response: resp}).finish())
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", url, resp.Status)
		}
	}
	p.terminate()
	if code := p.wait(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
