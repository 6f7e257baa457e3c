package e2e

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// TestTwoProxiesTakeTurns has two processes on one Redis serve the steps of a run alternately. One is killed on the way and comes
// back later. The run is one thread, and each condensation is made once.
func TestTwoProxiesTakeTurns(t *testing.T) {
	for name, run := range map[string]replay.Run{"sample": demo.Sample(), "parallel calls": longRun()} {
		t.Run(name, func(t *testing.T) {
			redis := sessiontest.StartRedis(t)
			s := newSetting(t, fakeupstream.Options{Keep: 16})
			config := s.config(t, inRedis(redis.Addr))
			pair := [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
			l := &line{to: func(x exchange) *process {
				if 24 <= x.Step && x.Step < 34 {
					return pair[1]
				}
				return pair[x.Step%2]
			}}
			report := l.play(t, run, judge.Options{
				Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{MaxSize: maxSize},
				Before: func(step int) {
					switch step {
					case 24:
						pair[0].kill()
					case 34:
						pair[0] = serve(t, "--config", config)
					}
				},
			})
			oneThread(t, l.placed)
			if report.OwnCalls != report.Condensed || report.Condensed < 4 {
				t.Errorf("%d condensations, %d calls of the summariser", report.Condensed, report.OwnCalls)
			}
			checkRedis(t, redis.Addr, l.placed[0].Thread, run)
		})
	}
}

// duel is a pair of proxies that get the same history. The first one is stopped in a phase of its condensation until it is released.
type duel struct {
	*setting
	first, second *process
	history       []byte
	letGo         chan struct{}
	stopped       chan struct{} // closed when the first one has reached that phase
}

// phase is the phase in which the first proxy is stopped: at the summariser's answer, or at the answer to the condensed history.
type phase struct {
	answers bool // at the answer of the agent's model
	late    bool // after the answer has begun
}

func newDuel(t *testing.T, limits string) *duel {
	t.Helper()
	return newDuelAt(t, limits, 0, phase{})
}

// newDuelAt is newDuel with an upstream of a given window.
func newDuelAt(t *testing.T, limits string, window int, at phase) *duel {
	t.Helper()
	d := &duel{letGo: make(chan struct{}), stopped: make(chan struct{})}
	var met atomic.Bool
	stop := func(a fakeupstream.Answer, here bool) fakeupstream.Answer {
		if here && !met.Swap(true) {
			close(d.stopped)
			if a.Fault.HoldHeaders = d.letGo; at.late {
				a.Fault = fakeupstream.Fault{Hold: d.letGo, HoldAfter: 20}
			}
		}
		return a
	}
	d.setting = newSetting(t, fakeupstream.Options{
		Windows:   map[string]int{judge.Model: window},
		Summarise: func(r *fakeupstream.Request) fakeupstream.Answer { return stop(fakeupstream.Extract(r), !at.answers) },
		Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			return stop(fakeupstream.Answer{Content: "Understood. " + strings.Repeat("I go on. ", 20)}, at.answers)
		},
	})
	config := d.config(t, inRedis(sessiontest.StartRedis(t).Addr)+limits)
	d.first, d.second = serve(t, "--config", config), serve(t, "--config", config)
	d.history = body(demo.Sample().Messages[:maxSize+2])
	return d
}

// begin sends the history to the first proxy, and returns once it is stopped.
func (d *duel) begin(t *testing.T) <-chan struct{} {
	t.Helper()
	done := sendAside(t, d.first, d.history)
	select {
	case <-d.stopped:
	case <-time.After(patience):
		t.Fatal("the first proxy does not come to that phase")
	}
	return done
}

// condenses sends the history to the second proxy and reports whether it is forwarded condensed.
func (d *duel) condenses(t *testing.T) bool {
	t.Helper()
	ok(t, send(t, d.second, d.history).finish())
	return !bytes.Equal(lastBody(d.Upstream), d.history)
}

// TestOneCondensationAtATime: while one proxy condenses a thread, the other continues with the existing view.
func TestOneCondensationAtATime(t *testing.T) {
	d := newDuel(t, "")
	done := d.begin(t)
	if d.condenses(t) {
		t.Error("condensed before the summary was there")
	}
	close(d.letGo)
	<-done
	if !d.condenses(t) {
		t.Error("not condensed with the other proxy's summary")
	}
	if n := d.Upstream.SummariserCalls(); n != 1 {
		t.Errorf("%d calls of the summariser", n)
	}
}

// TestKilledWhileRecovering kills the proxy that condenses a history because upstream refused it as too long, in each phase: while it has the
// lock, and while upstream handles the result. The other proxy is delayed by at most the life of a lock, and its own request succeeds.
func TestKilledWhileRecovering(t *testing.T) {
	for name, at := range map[string]phase{
		"asked": {}, "summary begun": {late: true}, "sent": {answers: true}, "answer begun": {answers: true, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			history := body(demo.Sample().Messages[:maxSize+2])
			d := newDuelAt(t, "", len(history)/5, at)
			defer close(d.letGo)
			done := d.begin(t)
			d.first.kill()
			<-done
			begun := time.Now()
			answer := send(t, d.second, d.history)
			ok(t, answer.finish())
			if answer.StatusCode != http.StatusOK || bytes.Equal(lastBody(d.Upstream), d.history) {
				t.Errorf("status %d, condensed %q", answer.StatusCode, answer.Header.Get("X-Dewpoint-Condensed"))
			}
			waited := time.Since(begun)
			t.Logf("waited %v", waited)
			if waited > patience/2 { // far more than the five seconds of a lock: the machine may be busy
				t.Errorf("waited %v", waited)
			}
		})
	}
}

// TestKilledWithTheLock kills the proxy that condenses: requests are still served, and another proxy condenses once the lock has
// expired.
func TestKilledWithTheLock(t *testing.T) {
	d := newDuel(t, "\nlimits: {summariser_timeout: 500ms}")
	done := d.begin(t)
	d.first.kill()
	<-done
	messages := slices.Clone(demo.Sample().Messages[:maxSize+2])
	sessiontest.Eventually(t, "the other proxy condenses", func() error {
		messages = append(messages, encode(map[string]string{"role": "assistant", "content": "Done."}),
			encode(map[string]string{"role": "user", "content": "Go on."}))
		d.history = body(messages) // otherwise an answered history would be forwarded as before
		if !d.condenses(t) {
			return errors.New("forwarded as it came")
		}
		return nil
	})
}
