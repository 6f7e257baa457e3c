package e2e

import (
	"bytes"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// firstDue is the first step of the sample above maxSize: it begins with two messages, and each step adds two.
const firstDue = maxSize / 2

// TestKilledAndAskedAgain kills the proxy right after each condensation, and at some other steps, and sends the request of the
// step again to the next process: it forwards the same bytes, without a call of the summariser. The judge checks that the prefix
// does not change in later steps.
func TestKilledAndAskedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		run    replay.Run
		stream bool
	}{
		"sample":         {demo.Sample(), true},
		"parallel calls": {longRun(), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Keep: 16})
			store := newStore(t)
			config := s.config(t, embedded(store))
			at, kills := serve(t, "--config", config), 0
			l := &line{to: func(exchange) *process { return at }}
			condensed := false
			report := l.play(t, c.run, judge.Options{
				Upstream: s.Upstream, Stream: c.stream, Expect: judge.Expectations{MaxSize: maxSize},
				Each: func(step judge.Step) {
					condensed = condensed || step.Condensed != ""
					if condensed && (step.Condensed != "" || step.Number%9 == 0) {
						at.kill()
						at = serve(t, "--config", config)
						kills++
						l.placed = append(l.placed, s.again(t, at, l.now))
					}
				},
			})
			oneThread(t, l.placed)
			if report.OwnCalls != report.Condensed || report.Condensed < 4 || kills <= report.Condensed {
				t.Errorf("%d condensations, %d calls of the summariser, %d kills", report.Condensed, report.OwnCalls, kills)
			}
			checkFile(t, at, store, l.placed[0].Thread, c.run)
		})
	}
}

// again sends a step's request again and checks that it is forwarded identically. It does not reach the upstream of the judge.
func (s *setting) again(t testing.TB, p *process, x exchange) place {
	t.Helper()
	s.aside.Store(true)
	defer s.aside.Store(false)
	answer := sendTo(t, p, x.Path, x.Body)
	ok(t, answer.finish())
	if got, want := lastBody(s.Aside), lastBody(s.Upstream); !bytes.Equal(got, want) {
		t.Errorf("step %d was forwarded differently after the restart", x.Step)
	}
	if n := s.Aside.SummariserCalls(); n > 0 {
		t.Errorf("step %d: %d calls of the summariser for what had been condensed", x.Step, n)
	}
	return placeOf(x, answer.Response)
}

func lastBody(up *fakeupstream.Server) []byte {
	all := up.Requests()
	return all[len(all)-1].Body
}

// TestKilledBeforeAnythingIsOnDisk kills the proxy after each of the first steps: the next request restores anything that was not
// yet written, and the client's session key preserves the session.
func TestKilledBeforeAnythingIsOnDisk(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Keep: 16})
	config := s.config(t, embedded(newStore(t)))
	named := http.Header{"X-Dewpoint-Session": {"nightly-job"}}
	run := beginning(24)
	session := ""
	for step := range 6 {
		at := serve(t, "--config", config)
		answer := send(t, at, body(run.Messages[:2+2*step]), named)
		ok(t, answer.finish())
		if got := lastBody(s.Upstream); !bytes.Equal(got, body(run.Messages[:2+2*step])) {
			t.Errorf("step %d was forwarded changed", step)
		}
		got := answer.Header.Get("X-Dewpoint-Session")
		if session == "" {
			session = got
		}
		if got == "" || got != session {
			t.Errorf("step %d is in session %q, it began in %q", step, got, session)
		}
		at.kill()
	}
	at := serve(t, "--config", config)
	l := &line{to: func(exchange) *process { return at }}
	l.play(t, run, judge.Options{
		Upstream: s.Upstream, Stream: true, Headers: named, Expect: judge.Expectations{MaxSize: maxSize},
	})
	oneThread(t, l.placed)
	if l.placed[0].Session != session {
		t.Errorf("session %q, it began in %q", l.placed[0].Session, session)
	}
}

// TestKilledWhileAnAnswerStreams kills the proxy in the middle of an answer: the client sees the stream break, and repeats the
// request. Nothing that was condensed for the broken exchange is condensed again.
func TestKilledWhileAnAnswerStreams(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Keep: 16})
	config := s.config(t, embedded(newStore(t)))
	at := serve(t, "--config", config)
	broken := map[int][]byte{firstDue: nil, firstDue + 1: nil, 20: nil, 30: nil} // the forwarded body of a step's broken exchange
	l := &line{to: func(x exchange) *process {
		if _, breaks := broken[x.Step]; breaks {
			broken[x.Step] = s.breakStream(t, at, x.Body)
			at = serve(t, "--config", config)
		}
		return at
	}}
	report := l.play(t, beginning(36), judge.Options{
		Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{MaxSize: maxSize, Tolerant: true},
		Each: func(step judge.Step) {
			if want, breaks := broken[step.Number]; breaks && !bytes.Equal(lastBody(s.Upstream), want) {
				t.Errorf("step %d was forwarded differently after the restart", step.Number)
			}
			if step.Number == firstDue && (step.OwnCalls > 0 || step.Forwarded >= step.Events) {
				t.Errorf("step %d: %d of %d events forwarded, %d calls of the summariser", firstDue, step.Forwarded, step.Events, step.OwnCalls)
			}
		},
	})
	oneThread(t, l.placed)
	if s.Aside.SummariserCalls() == 0 || report.Condensed < 3 {
		t.Errorf("%d and %d condensations", s.Aside.SummariserCalls(), report.Condensed)
	}
}

// breakStream sends a request, kills the proxy when the first part of the answer has arrived, and returns the forwarded body. It
// does not reach the upstream of the judge.
func (s *setting) breakStream(t testing.TB, p *process, body []byte) []byte {
	t.Helper()
	s.aside.Store(true)
	defer s.aside.Store(false)
	never := make(chan struct{})
	s.Aside.Script(fakeupstream.Answer{Content: "An answer that never ends.", Fault: fakeupstream.Fault{Hold: never, HoldAfter: 2}})
	answer := send(t, p, body)
	answer.read(1)
	p.kill()
	if answer.finish() == nil {
		t.Error("an answer that was broken off ended as if it were whole")
	}
	return lastBody(s.Aside)
}

// TestKilledWhileSummarising kills the proxy while it waits for its summariser: nothing was logged, so the next process makes the
// condensation.
func TestKilledWhileSummarising(t *testing.T) {
	t.Parallel()
	never, asked := make(chan struct{}), make(chan struct{}, 1)
	var hold atomic.Bool
	s := newSetting(t, fakeupstream.Options{Keep: 16, Summarise: func(r *fakeupstream.Request) fakeupstream.Answer {
		answer := fakeupstream.Extract(r)
		if hold.CompareAndSwap(true, false) {
			answer.Fault.HoldHeaders = never
			asked <- struct{}{}
		}
		return answer
	}})
	config := s.config(t, embedded(newStore(t)))
	at := serve(t, "--config", config)
	l := &line{to: func(x exchange) *process {
		if x.Step == firstDue {
			hold.Store(true)
			s.aside.Store(true)
			left := sendAside(t, at, x.Body)
			select {
			case <-asked:
			case <-left:
				t.Error("the summariser was not asked")
			}
			at.kill()
			<-left
			s.aside.Store(false)
			at = serve(t, "--config", config)
		}
		return at
	}}
	report := l.play(t, beginning(24), judge.Options{
		Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{MaxSize: maxSize},
	})
	oneThread(t, l.placed)
	if report.OwnCalls != report.Condensed {
		t.Errorf("%d condensations, %d calls of the summariser", report.Condensed, report.OwnCalls)
	}
}
