package e2e

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// recordedSize is the number of events above which proxies condense recorded runs.
const recordedSize = 60

func recorded(t *testing.T) []playable {
	t.Helper()
	all, err := judge.Recorded()
	ok(t, err)
	if len(all) == 0 {
		t.Skip("SKIPPED: set " + judge.RunsVariable + " to a folder of recorded runs; runs of our own prove the same in this package")
	}
	var runs []playable
	for i, run := range all {
		runs = append(runs, playable{run, [...]string{"chat", "messages", "responses", "gemini"}[i%4]})
	}
	return runs
}

// playable is a run and the protocol in which to play it, in rotation.
type playable struct {
	replay.Run
	protocol string
}

// seals selects how answers have reasoning. In the Responses API reasoning marks the beginning of an answer, if an agent has two
// in a row.
func (p playable) seals() fakeupstream.Seal {
	return map[string]fakeupstream.Seal{"responses": fakeupstream.SealResponsesDetails, "gemini": fakeupstream.SealThoughtSignature}[p.protocol]
}

// TestRecordedRunsSurviveKills plays each recorded run, and kills and restarts the proxy after a third, a half and three quarters of it, but not in
// the first milliseconds, when nothing is on disk yet.
func TestRecordedRunsSurviveKills(t *testing.T) {
	for _, run := range recorded(t) {
		t.Run(run.Name, func(t *testing.T) {
			t.Parallel()
			s := newLenient(t, fakeupstream.Options{Keep: 16, Seals: run.seals()})
			store := newStore(t)
			config := s.configAt(t, embedded(store), recordedSize)
			at, steps := serve(t, "--config", config), len(run.Messages)/2
			l := &line{to: func(exchange) *process { return at }}
			l.play(t, run.Run, judge.Options{
				Protocol: run.protocol, Sealed: run.seals() != "", Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{MaxSize: recordedSize},
				Each: func(step judge.Step) {
					if n := step.Number + 1; n > 8 && (n == steps/3 || n == steps/2 || n == steps*3/4) {
						at.kill()
						at = serve(t, "--config", config)
						l.placed = append(l.placed, s.again(t, at, l.now))
					}
				},
			})
			oneThread(t, l.placed)
		})
	}
}

// TestRecordedRunsOverTwoProxies plays each recorded run over two proxies on one Redis, alternating with each step.
func TestRecordedRunsOverTwoProxies(t *testing.T) {
	runs := recorded(t)
	redis := sessiontest.StartRedis(t)
	settings, pairs := map[fakeupstream.Seal]*setting{}, map[fakeupstream.Seal][2]*process{}
	for _, form := range []fakeupstream.Seal{"", fakeupstream.SealResponsesDetails, fakeupstream.SealThoughtSignature} {
		settings[form] = newLenient(t, fakeupstream.Options{Keep: 16, Seals: form})
		config := settings[form].configAt(t, inRedis(redis.Addr), recordedSize)
		pairs[form] = [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
	}
	for _, run := range runs {
		s, pair := settings[run.seals()], pairs[run.seals()]
		t.Run(run.Name, func(t *testing.T) {
			l := &line{to: func(x exchange) *process { return pair[x.Step%2] }}
			report := l.play(t, run.Run, judge.Options{
				Protocol: run.protocol, Sealed: run.seals() != "", Upstream: s.Upstream, Expect: judge.Expectations{MaxSize: recordedSize},
			})
			oneThread(t, l.placed)
			if report.OwnCalls != report.Condensed {
				t.Errorf("%d condensations, %d calls of the summariser", report.Condensed, report.OwnCalls)
			}
			if run.protocol == "chat" { // other protocols translate the messages for each request
				checkRedis(t, redis.Addr, l.placed[0].Thread, run.Run)
			}
		})
	}
}
