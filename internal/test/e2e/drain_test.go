package e2e

import (
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// manySteps is a max_size that no run here reaches.
const manySteps = 10_000

// TestDrain asks the proxy to stop while an answer streams: it accepts no new connections, relays the answer to its end, writes
// its log and exits with 0.
func TestDrain(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			config := s.config(t, embedded(newStore(t)))
			p := serve(t, "--config", config)
			run := demo.Sample()
			running, hold := s.holding(t, p, run.Messages[:4])

			ok(t, p.command.Process.Signal(signal))
			p.await("stopping")
			sessiontest.Eventually(t, "the port is closed", func() error { return refused(p.Addr) })
			close(hold)
			wantWhole(t, running)
			wantExit(t, p, 0)
			next := send(t, serve(t, "--config", config), body(run.Messages[:6]))
			ok(t, next.finish())
			oneThread(t, []place{placeOf(exchange{}, running.Response), placeOf(exchange{Step: 1}, next.Response)})
		})
	}
}

// holding begins a stream, with the fifth message of the sample, that continues when the channel is closed.
func (s *setting) holding(t testing.TB, p *process, messages []json.RawMessage) (*answer, chan struct{}) {
	t.Helper()
	hold := make(chan struct{})
	s.Upstream.Script(fakeupstream.Answer{Message: demo.Sample().Messages[4], Fault: fakeupstream.Fault{Hold: hold, HoldAfter: 2}})
	a := send(t, p, encode(map[string]any{"model": judge.Model, "stream": true, "messages": messages}))
	a.read(1)
	return a, hold
}

func wantWhole(t testing.TB, a *answer) {
	t.Helper()
	if rest, err := a.rest(); err != nil || !strings.HasSuffix(rest, "data: [DONE]\n\n") {
		t.Errorf("%v, %q", err, rest)
	}
}

func wantExit(t testing.TB, p *process, want int) {
	t.Helper()
	if code := p.wait(); code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
}

func refused(addr string) error {
	if conn, err := net.Dial("tcp", addr); err == nil {
		_ = conn.Close()
		return errors.New("it accepts")
	}
	return nil
}

// TestIdleConnectionsDoNotKeepIt stops a proxy whose clients keep idle connections open.
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
	wantExit(t, p, 0)
}

// TestDrainUnderLoad stops a proxy with many active clients, with and without a delay: every request that was begun, including
// streams, is answered in full, and the log has every message.
func TestDrainUnderLoad(t *testing.T) {
	t.Parallel()
	for name, delay := range map[string]string{"delay": "300ms", "no delay": "0s"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Keep: 16, Reply: func(*fakeupstream.Request) fakeupstream.Answer {
				return fakeupstream.Answer{Content: loadAnswer}
			}})
			store := newStore(t)
			config := s.configEnding(t, embedded(store), manySteps, "{delay: "+delay+", timeout: 1m}")
			p := serve(t, "--config", config)
			run := demo.Sample()
			first, hold := s.holding(t, p, run.Messages[:4])
			second, holdSecond := s.holding(t, p, run.Messages[:2])

			l := newLoad(p.url(), 24)
			l.begin(t)
			l.after(t, 120)
			l.ending.Store(true)
			p.terminate()
			sessiontest.Eventually(t, "the port is closed", func() error { return refused(p.Addr) })
			close(hold)
			close(holdSecond)
			l.over(t)
			wantWhole(t, first)
			wantWhole(t, second)
			wantExit(t, p, 0)

			l.logged(t, store)
			again := serve(t, "--config", config)
			for _, a := range l.agents {
				ok(t, a.exchange(t.Context(), again.url())) // it continues in its thread
			}
		})
	}
}

// TestDelay: a proxy with a delay serves as before after it was asked to stop, but announces it. A second signal ends the delay,
// and requests in progress.
func TestDelay(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	store := newStore(t)
	p := serve(t, "--config", s.configEnding(t, embedded(store), manySteps, "{delay: 1h, timeout: 1h}"))
	run := demo.Sample()
	running, hold := s.holding(t, p, run.Messages[:4])
	defer close(hold)
	p.wantProbe("/readyz", http.StatusOK, "")

	p.terminate()
	p.await("stopping")
	p.wantProbe("/readyz", http.StatusServiceUnavailable, "stopping")
	p.wantProbe("/livez", http.StatusOK, "stopping")
	for range 3 {
		late := send(t, p, body(run.Messages[:2]))
		ok(t, late.finish())
		if !late.Close {
			t.Error("the client is not told to close its connection")
		}
	}

	p.terminate()
	p.await("stopping now: a second signal")
	if err := running.finish(); err == nil {
		t.Error("a stream that was cut off ended as if it were whole")
	}
	wantExit(t, p, 0)
}

// TestDrainEndsInTime: a stream that takes longer than the timeout is cut off, visibly to its client, and the log is still
// complete.
func TestDrainEndsInTime(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	path := newStore(t)
	p := serve(t, "--config", s.configEnding(t, embedded(path), manySteps, "{delay: 0s, timeout: 200ms}"))
	run := demo.Sample()
	running, hold := s.holding(t, p, run.Messages[:4])
	defer close(hold)
	p.terminate()
	if err := running.finish(); err == nil {
		t.Error("a stream that was cut off ended as if it were whole")
	}
	wantExit(t, p, 0)
	p.await("stopping: some requests did not finish in time")

	store, err := boltstore.Open(boltstore.Options{Path: path, Content: true})
	ok(t, err)
	defer store.Close()
	checkLog(t, store, session.ThreadID(running.Header.Get("X-Dewpoint-Thread")), replay.Run{Messages: run.Messages[:4]})
}
