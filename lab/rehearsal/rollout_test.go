package rehearsal

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// rollout replaces replicas as the Deployment's controller does.
type rollout struct {
	node        *node
	service     *service
	signal      syscall.Signal // that ends a replica: SIGTERM, in earnest
	desired     int
	surge, lack int // maxSurge and maxUnavailable, in replicas
	settle      time.Duration

	old, fresh []*replica
	fewest     int // replicas that were ready at a time
	most       int // replicas that were not told to end at a time
	held       []*heldStream
	started    int
}

func newRollout(t *testing.T, n *node, s *service, signal syscall.Signal, desired int) *rollout {
	t.Helper()
	d := n.rendered.deployment(t).Spec
	if d.Strategy.RollingUpdate == nil {
		t.Fatalf("the strategy is %s", d.Strategy.Type)
	}
	surge := replicasOf(t, d.Strategy.RollingUpdate.MaxSurge, desired, true)
	lack := replicasOf(t, d.Strategy.RollingUpdate.MaxUnavailable, desired, false)
	return &rollout{
		node: n, service: s, signal: signal, desired: desired, surge: surge, lack: lack, fewest: desired,
		settle: time.Duration(d.MinReadySeconds) * time.Second,
	}
}

// start starts a replica and puts it behind the service.
func (r *rollout) start(t *testing.T) *replica {
	t.Helper()
	r.started++
	one := r.node.start(t, fmt.Sprintf("%s-%d", r.node.rendered.deployment(t).Metadata.Name, r.started))
	r.service.add(one)
	return one
}

// install starts the replicas that are rolled later, and waits until they are ready.
func (r *rollout) install(t *testing.T) {
	t.Helper()
	for range r.desired {
		r.old = append(r.old, r.start(t))
	}
	for _, one := range r.old {
		one.await(t, "ready", one.ready.Load)
	}
}

// await waits for something of a replica.
func (r *replica) await(t *testing.T, what string, is func() bool) {
	t.Helper()
	sessiontest.Eventually(t, r.name+" is "+what, func() error {
		select {
		case <-r.unwell:
			return fmt.Errorf("the kubelet kills it:\n%s", r.run.Log)
		default:
		}
		if !is() {
			return errors.New("not yet")
		}
		return nil
	})
}

// roll replaces the old replicas by new ones.
func (r *rollout) roll(t *testing.T) {
	t.Helper()
	old := r.old
	for len(old) > 0 || len(r.fresh) < r.desired {
		switch {
		case len(r.fresh) < r.desired && len(old)+len(r.fresh) < r.desired+r.surge:
			r.fresh = append(r.fresh, r.start(t))
			r.most = max(r.most, len(old)+len(r.fresh))
		case len(old) > 0 && r.ready(old)+r.ready(r.fresh) > r.desired-r.lack:
			must(t, r.node.end(old[0], r.signal))
			r.letGo(t, old[0])
			old = old[1:]
		default:
			r.settled(t, r.fresh[len(r.fresh)-1])
		}
		r.fewest = min(r.fewest, r.ready(old)+r.ready(r.fresh))
	}
	if last := r.fresh[len(r.fresh)-1]; !last.ready.Load() {
		r.settled(t, last)
	}
}

// settled waits until a replica counts as available: ready for minReadySeconds.
func (r *rollout) settled(t *testing.T, one *replica) {
	t.Helper()
	one.await(t, "ready", one.ready.Load)
	end := time.Now().Add(r.settle)
	one.await(t, "available", func() bool { return time.Now().After(end) })
}

func (r *rollout) ready(of []*replica) int {
	n := 0
	for _, one := range of {
		if one.ready.Load() {
			n++
		}
	}
	return n
}

// heldStream is an answer that upstream holds in its middle until its replica takes no connections any more.
type heldStream struct {
	by    *replica
	letGo chan struct{}
	over  chan error
}

// hold begins answers until each old replica has one.
func (r *rollout) hold(t *testing.T, d *desk, rig string) {
	t.Helper()
	missing := len(r.old)
	for n := 0; missing > 0; n++ {
		h := &heldStream{letGo: make(chan struct{}), over: make(chan error, 1)}
		a := newAgent(fmt.Sprintf("agent-%sheld-%d", rig, n), r.service, d, true, false)
		resp, by, err := a.begin(t.Context(), fakeupstream.Fault{Hold: h.letGo, HoldAfter: 2})
		must(t, err)
		if h.by = by; r.holding(by) == nil {
			missing--
		} else {
			close(h.letGo)
		}
		r.held = append(r.held, h)
		go func() { h.over <- a.finish(resp, by) }()
		if n > 20 {
			t.Fatal("the service sends all connections to one replica")
		}
	}
}

func (r *rollout) holding(by *replica) *heldStream {
	for _, h := range r.held {
		if h.by == by {
			return h
		}
	}
	return nil
}

// letGo has upstream go on when the replica's port is closed.
func (r *rollout) letGo(t *testing.T, one *replica) {
	go func() {
		defer close(r.holding(one).letGo)
		for end := time.Now().Add(patience); time.Now().Before(end) && t.Context().Err() == nil; time.Sleep(5 * time.Millisecond) {
			conn, err := net.Dial("tcp", one.addr)
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
}

// status asks for a path without credentials.
func status(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	must(t, err)
	_ = resp.Body.Close()
	return resp.StatusCode
}
