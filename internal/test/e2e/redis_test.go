package e2e

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// The steps between which Redis is unavailable.
const (
	redisGoes  = 14
	redisComes = 22
)

// TestRedisGoesAndComes kills Redis in the middle of a run: every request is served, unchanged. Once Redis is back, with or
// without its data, the run is recognised and condensed again, and the log is complete.
func TestRedisGoesAndComes(t *testing.T) {
	for name, options := range map[string][]string{
		"with its data": nil,
		"empty":         {"--appendonly", "no"},
	} {
		t.Run(name, func(t *testing.T) {
			redis := sessiontest.StartRedis(t, options...)
			s := newSetting(t, fakeupstream.Options{Keep: 16})
			p := serve(t, "--config", s.config(t, inRedis(redis.Addr)))
			l := &line{to: func(exchange) *process { return p }}
			run := beginning(36)
			l.play(t, run, judge.Options{
				Upstream: s.Upstream, Stream: true, Expect: judge.Expectations{Tolerant: true},
				Before: func(step int) {
					switch step {
					case redisGoes:
						redis.Kill()
					case redisComes:
						redis.Start()
						s.awaitStore(t, p)
					}
				},
				Each: func(step judge.Step) {
					away := redisGoes <= step.Number && step.Number < redisComes
					if away && step.Forwarded != step.Events || !away && step.Forwarded > maxSize {
						t.Errorf("step %d: %d of %d events forwarded", step.Number, step.Forwarded, step.Events)
					}
				},
			})
			before, away, after := l.placed[:redisGoes], l.placed[redisGoes:redisComes], l.placed[redisComes:]
			for _, x := range away {
				if x.Thread != "" {
					t.Errorf("step %d was recognised without Redis", x.Step)
				}
			}
			oneThread(t, before)
			oneThread(t, after)
			if before[0].Thread != after[0].Thread {
				t.Errorf("thread %s before, %s after", before[0].Thread, after[0].Thread)
			}
			checkRedis(t, redis.Addr, after[0].Thread, run)
			p.checkStoreMetrics()
		})
	}
}

// awaitStore waits until the proxy recognises requests again.
func (s *setting) awaitStore(t testing.TB, p *process) {
	t.Helper()
	s.aside.Store(true)
	defer s.aside.Store(false)
	probe := body(longRun().Messages[:2])
	sessiontest.Eventually(t, "the proxy uses Redis again", func() error {
		answer := send(t, p, probe)
		ok(t, answer.finish())
		if answer.Header.Get("X-Dewpoint-Thread") == "" {
			return errors.New("forwarded as it came")
		}
		return nil
	})
}

// checkStoreMetrics checks that the time without a store was counted, that its beginning and end were logged once each, and that
// it is over.
func (p *process) checkStoreMetrics() {
	p.t.Helper()
	metrics := p.metrics()
	if !slices.Contains(metrics, "dewpoint_store_degraded 0") {
		p.t.Error("the metrics say that the store is away")
	}
	if !slices.ContainsFunc(metrics, func(m string) bool {
		count, found := strings.CutPrefix(m, `dewpoint_store_losses_total{op="resolve"} `)
		return found && count != "0"
	}) {
		p.t.Errorf("no request is counted that was not recognised:\n%s", strings.Join(metrics, "\n"))
	}
	for _, message := range []string{"store unavailable", "the store answers again"} {
		if n := strings.Count(p.log.String(), `"msg":"`+message); n != 1 {
			p.t.Errorf("%q was logged %d times", message, n)
		}
	}
}
