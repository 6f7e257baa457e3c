package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// rehearsal is an installation that is rolled under load.
type rehearsal struct {
	name   string
	over   string // values over the production set
	signal syscall.Signal
	agents int
}

// outcome is what came of it.
type outcome struct {
	*rollout
	agents  []*agent
	failed  []error // requests that were begun and not answered as they should be
	endings []ending
	found   map[string]bool
	took    time.Duration
}

const (
	replicas = 2 // where the autoscaler of the set keeps three at least
	afterAll = 5 // steps that each agent goes on with when all is rolled
)

// TestRehearsal installs what the chart renders of the production set, and rolls it under load: the container's command,
// environment and configuration as they are, as processes, over a real Redis Cluster, behind a balancer that follows the
// readiness probe. No request may fail, no stream be cut, no conversation lost. Two controls do what must go wrong.
func TestRehearsal(t *testing.T) {
	if testing.Short() {
		t.Skip("SLOW: make rehearsal runs it")
	}
	s := newSite(t)
	t.Run("production", func(t *testing.T) {
		t.Parallel()
		o := rehearsal{"production", "", syscall.SIGTERM, 8}.run(t, s)
		o.wantWhole(t)
		o.wantEndings(t)
		o.wantAvailable(t)
		o.wantContinued(t)
		o.wantHealthy(t, s)
		o.tell(t, s)
	})
	t.Run("control: killed", func(t *testing.T) {
		t.Parallel()
		rehearsal{"killed", "", syscall.SIGKILL, 4}.run(t, s).wantFailures(t)
	})
	t.Run("control: no delay", func(t *testing.T) {
		t.Parallel()
		rehearsal{"hasty", "config: {shutdown: {delay: 0s}}", syscall.SIGTERM, 4}.run(t, s).wantFailures(t)
	})
}

// run installs, loads, rolls, and lets the agents go on for a little.
func (h rehearsal) run(t *testing.T, s *site) outcome {
	t.Helper()
	r := render(t, h.over)
	stop, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	n := &node{
		site: s, image: readImage(t), rendered: r, container: r.container(t), found: map[string]bool{}, stop: stop,
		grace: time.Duration(r.pod(t).TerminationGracePeriodSeconds) * time.Second,
	}
	o := outcome{rollout: newRollout(t, n, newService(t), h.signal, replicas), found: n.found}
	o.install(t)

	working, rest := context.WithCancel(context.Background())
	defer rest()
	var work sync.WaitGroup
	for i := range h.agents {
		a := newAgent(fmt.Sprintf("agent-%s-%d", h.name, i), o.service, s.desk, i%2 == 0, i/2%2 == 0)
		o.agents = append(o.agents, a)
		work.Go(func() { a.work(working) })
	}
	o.each(t, "has been condensed by the old replicas", func(a *agent) bool {
		_, condensed, _, _ := a.tally(o.old)
		return condensed > 0
	})
	o.hold(t, s.desk, h.name)
	began := time.Now()
	o.roll(t)
	o.each(t, "goes on with the new replicas", func(a *agent) bool {
		_, condensed, _, _ := a.tally(o.fresh)
		return condensed >= afterAll
	})
	o.await(t)
	o.took = time.Since(began)
	rest()
	work.Wait()
	for _, a := range o.agents {
		if _, _, _, err := a.tally(nil); err != nil {
			o.failed = append(o.failed, err)
		}
	}
	return o
}

// each waits until something holds of each agent that still works.
func (o *outcome) each(t *testing.T, what string, holds func(*agent) bool) {
	t.Helper()
	for _, a := range o.agents {
		sessiontest.Eventually(t, a.name+" "+what, func() error {
			if _, _, _, err := a.tally(nil); err == nil && !holds(a) {
				return errors.New("not yet")
			}
			return nil
		})
	}
}

// await waits for the old replicas and for the streams that were held.
func (o *outcome) await(t *testing.T) {
	t.Helper()
	for _, one := range o.old {
		select {
		case e := <-one.ended:
			o.endings = append(o.endings, e)
		case <-time.After(patience):
			t.Fatalf("%s does not end:\n%s", one.name, one.run.Log)
		}
	}
	for _, h := range o.held {
		if err := <-h.over; err != nil {
			o.failed = append(o.failed, fmt.Errorf("the stream that %s was sending: %w", h.by.name, err))
		}
	}
}

func (o *outcome) wantWhole(t *testing.T) {
	t.Helper()
	for _, err := range o.failed {
		t.Error(err)
	}
}

// wantFailures is for controls: what must lose requests does.
func (o outcome) wantFailures(t *testing.T) {
	t.Helper()
	if len(o.failed) == 0 {
		t.Fatal("nothing was lost: the rehearsal sees no failures")
	}
	t.Logf("%s: %d of %d agents and held streams lost a request, as they must: %v", t.Name(), len(o.failed), len(o.agents)+len(o.held), o.failed[0])
}

func (o *outcome) wantEndings(t *testing.T) {
	t.Helper()
	delay := o.node.rendered.delay(t)
	for i, e := range o.endings {
		if e.code != 0 || e.took > o.node.grace || e.took < delay {
			t.Errorf("%s ended after %s with code %d; it has a delay of %s and %s in all", o.old[i].name, e.took, e.code, delay, o.node.grace)
		}
	}
}

func (o *outcome) wantAvailable(t *testing.T) {
	t.Helper()
	if o.fewest < o.desired-o.lack || o.most > o.desired+o.surge {
		t.Errorf("%d replicas were ready, and there were %d; %d may be missing and %d too many", o.fewest, o.most, o.lack, o.surge)
	}
}

// wantContinued holds that every agent was served by old and new replicas, with a condensed view, which agent.judge
// has compared from step to step.
func (o *outcome) wantContinued(t *testing.T) {
	t.Helper()
	for _, a := range o.agents {
		before, early, _, _ := a.tally(o.old)
		after, late, times, _ := a.tally(o.fresh)
		if early == 0 || late == 0 || times == 0 {
			t.Errorf("%s: %d steps before, %d of them condensed; %d after, %d condensed; %d condensations", a.name, before, early, after, late, times)
		}
	}
}

// wantHealthy asks the new replicas how they are, as Prometheus does, and whether strangers can.
func (o *outcome) wantHealthy(t *testing.T, s *site) {
	t.Helper()
	for _, one := range o.fresh {
		if got := status(t, "http://"+one.admin+"/metrics"); got != http.StatusUnauthorized {
			t.Errorf("metrics without the token: %d", got)
		}
		resp, err := s.admin(one.admin, "/metrics")
		must(t, err)
		text, err := io.ReadAll(resp.Body)
		must(t, errors.Join(err, resp.Body.Close()))
		lines := strings.Split(string(text), "\n")
		for _, line := range []string{"dewpoint_store_degraded 0", "dewpoint_panics_total 0", "dewpoint_config_reload_success 1"} {
			if !slices.Contains(lines, line) {
				t.Errorf("%s does not report %s", one.name, line)
			}
		}
		for _, line := range lines {
			lost := strings.HasPrefix(line, "dewpoint_store_losses_total{") && !strings.HasSuffix(line, " 0")
			failed := strings.HasPrefix(line, "dewpoint_summariser_failures_total{")
			if lost || failed {
				t.Errorf("%s counts %s", one.name, line)
			}
		}
	}
	if s.spans.Load() == 0 {
		t.Error("no spans came to the collector")
	}
}

// tell says in short what was done, and what of it was not as it was rendered.
func (o *outcome) tell(t *testing.T, s *site) {
	t.Helper()
	var before, after, times int
	for _, a := range o.agents {
		early, _, n, _ := a.tally(o.old)
		late, _, _, _ := a.tally(o.fresh)
		before, after, times = before+early, after+late, times+n
	}
	t.Logf("ran %s %s with the %d variables of the container over the image's %s", o.node.image.entrypoint, strings.Join(o.node.container.Args, " "), len(o.node.container.Env), strings.Join(o.node.image.env, " "))
	for _, d := range s.differences("…") {
		if !o.found[d.rendered] {
			t.Errorf("%s is not in what was rendered", d.rendered)
		}
		t.Logf("not as rendered: %s is %s (%s)", d.rendered, d.here, d.why)
	}
	t.Logf("not as rendered: %s is added (the set goes to the real upstream); %d replicas (without the autoscaler)", s.added(), o.desired)
	t.Logf("not as rendered: this user, not %s; a root that can be written to; no limits of memory and processors", o.node.image.user)
	t.Logf("rolled %d replicas (maxSurge %d, maxUnavailable %d) in %s under %d agents: %d requests to old replicas, %d to new ones, %d condensations, 0 failed",
		o.desired, o.surge, o.lack, o.took.Round(time.Millisecond), len(o.agents), before, after, times)
	for i, e := range o.endings {
		t.Logf("%s ended %s after SIGTERM with code %d; a stream of it was held until its port was closed", o.old[i].name, e.took.Round(time.Millisecond), e.code)
	}
}
