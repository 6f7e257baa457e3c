package redisstore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// lengthOf returns the length of a thread, which must exist.
func lengthOf(t *testing.T, s *sessions, id session.ThreadID) int {
	t.Helper()
	thread, err := s.Thread(t.Context(), id)
	must(t, err)
	return thread.Len
}

// catchUp waits until a replica has everything that was written to its master before the call.
func catchUp(t *testing.T, replica, master *sessiontest.Server) {
	t.Helper()
	want, err := offset(master, "master_repl_offset:")
	must(t, err)
	sessiontest.Eventually(t, "the replica has caught up", func() error {
		got, err := offset(replica, "slave_repl_offset:")
		if err == nil && got < want {
			err = fmt.Errorf("it is at %d of %d", got, want)
		}
		return err
	})
}

func offset(s *sessiontest.Server, field string) (n int64, err error) {
	state, err := sessiontest.Command(s.Addr, "INFO", "replication")
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(state, field)
	_, err = fmt.Sscan(rest, &n)
	return n, err
}

// awaitReplica waits until the Sentinels have made a former master, which must be running again, a replica. They close its
// connections when they change its role, so that a command may fail.
func awaitReplica(t *testing.T, s *sessiontest.Server) {
	t.Helper()
	sessiontest.Eventually(t, "the former master is a replica", func() error {
		state, err := sessiontest.Command(s.Addr, "INFO", "replication")
		if err == nil && (!strings.Contains(state, "role:slave") || !strings.Contains(state, "master_link_status:up")) {
			err = fmt.Errorf("the state is %q", state)
		}
		return err
	})
}

// failover has the Sentinels replace the master, as an operator may, and waits until they have. Sentinels give up if they have
// not heard from the replica for a while, so it repeats the command.
func failover(t *testing.T, group *sessiontest.Group) {
	t.Helper()
	leader := group.Sentinels[0]
	master := func() string { return leader.Do("SENTINEL", "GET-MASTER-ADDR-BY-NAME", group.Name) }
	before := master()
	sessiontest.Eventually(t, "the Sentinels begin a failover", func() error {
		if strings.Contains(leader.Do("SENTINEL", "MASTER", group.Name), "failover_in_progress") {
			return errors.New("it has not ended")
		}
		if master() != before {
			return nil
		}
		_, err := sessiontest.Command(leader.Addr, "SENTINEL", "FAILOVER", group.Name)
		return errors.Join(errors.New("the master is the same"), err)
	})
	group.AwaitFailover()
}

// TestSentinelFailover kills a master. Its replica takes over, and writes continue without a restart. The old master
// returns as a replica, and a planned failover makes it master again.
func TestSentinelFailover(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	group := sessiontest.StartGroup(t, "main")
	s, ctx := start(t, Options{Addrs: group.Addrs(), MasterName: "main", Timeout: time.Second, Rest: 20 * time.Millisecond}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	c, err := s.Condense(ctx, "t", session.Condensation{Summary: "kept"})
	must(t, err)
	catchUp(t, group.Replica, group.Master)

	group.Master.Kill()
	unavailable(t, s.Append(ctx, twoEvents("t", 2)))
	group.AwaitFailover()
	sessiontest.Eventually(t, "writes go on", func() error { return s.Append(ctx, twoEvents("t", 2)) })
	text, err := s.Summary(ctx, c.ID)
	must(t, err)
	if text != "kept" {
		t.Errorf("the summary is %q", text)
	}
	group.Replica.Start()
	awaitReplica(t, group.Replica)
	must(t, s.Append(ctx, twoEvents("t", 4)))
	catchUp(t, group.Replica, group.Master)

	failover(t, group)
	at := lengthOf(t, s, "t")
	sessiontest.Eventually(t, "writes go on", func() error { return s.Append(ctx, twoEvents("t", at)) })
	if got := lengthOf(t, s, "t"); got != at+2 {
		t.Errorf("the thread has %d, want %d", got, at+2)
	}
}

// TestReadOnlyIsRetried: connections that still lead to the former master are replaced, and the caller does not notice.
func TestReadOnlyIsRetried(t *testing.T) {
	t.Parallel()
	old := sessiontest.StartRedis(t)
	successor := sessiontest.StartRedis(t)
	successor.Follow(old)
	relay := sessiontest.StartRelay(t, old.Addr)
	s, ctx := start(t, Options{Addrs: []string{relay.Addr}, Timeout: 5 * time.Second}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	c, err := s.Condense(ctx, "t", session.Condensation{Summary: "kept"})
	must(t, err)
	catchUp(t, successor, old)
	successor.Do("REPLICAOF", "NO", "ONE")
	old.Follow(successor)
	relay.Retarget(successor.Addr)
	must(t, s.Append(ctx, twoEvents("t", 2)))
	text, err := s.Summary(ctx, c.ID)
	must(t, err)
	if n := lengthOf(t, s, "t"); n != 4 || text != "kept" {
		t.Errorf("the thread has %d, and the summary is %q", n, text)
	}
}

// TestClusterFailover kills one master of three. Its replica takes its slots, and calls continue without a restart.
func TestClusterFailover(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	cluster := sessiontest.StartCluster(t)
	s, ctx := start(t, Options{Addrs: cluster.Addrs(), Cluster: true, Timeout: time.Second, Rest: 20 * time.Millisecond}), t.Context()
	replica := cluster.AddReplica(cluster.Nodes[1])
	ids := []session.ThreadID{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, id := range ids {
		must(t, s.Append(ctx, twoEvents(id, 0)))
	}
	catchUp(t, replica, cluster.Nodes[1])
	cluster.Nodes[1].Kill()
	refused := 0
	for _, id := range ids {
		if err := second(s.Thread(ctx, id)); err != nil {
			unavailable(t, err)
			refused++
		}
	}
	if refused == 0 || refused == len(ids) {
		t.Errorf("%d of %d threads are away with one of three masters", refused, len(ids))
	}
	cluster.AwaitMaster(replica)
	for _, id := range ids {
		sessiontest.Eventually(t, "each thread is there again", func() error { return second(s.Thread(ctx, id)) })
		sessiontest.Eventually(t, "and goes on", func() error {
			err := s.Append(ctx, twoEvents(id, 2))
			if errors.Is(err, session.ErrStale) {
				return nil // the reply to the previous attempt was lost
			}
			return err
		})
		if n := lengthOf(t, s, id); n != 4 {
			t.Errorf("thread %s has %d, want 4", id, n)
		}
	}
}

// TestResharding moves a thread's slot from one master to another. Reads never fail. Writes fail only while the keys of the
// thread are on both masters.
func TestResharding(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	cluster := sessiontest.StartCluster(t)
	s, ctx := start(t, Options{Addrs: cluster.Addrs(), Cluster: true, Timeout: 5 * time.Second}), t.Context()
	must(t, s.Append(ctx, twoEvents("t", 0)))
	reading, stop := sync.WaitGroup{}, make(chan struct{})
	for range 4 {
		reading.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				found, err := s.Find(ctx, []session.Hash{{1, 0, 0, 7}, {2, 0, 0, 7}, {byte(n), byte(n >> 8), 8}}, "t")
				if err != nil || found.Hinted == nil || !found.Places[0].Known() || !found.Places[1].Known() {
					t.Errorf("in between: found %+v, %v", found, err)
					return
				}
			}
		})
	}
	move := cluster.MoveSlot(s.thread("t"))
	must(t, s.Append(ctx, twoEvents("t", 2))) // nothing has moved yet
	move.Key(s.thread("t"))
	if err := s.Append(ctx, twoEvents("t", 4)); err == nil || !strings.Contains(err.Error(), "TRYAGAIN") {
		t.Errorf("half a thread was written to: %v", err)
	} else {
		unavailable(t, err)
	}
	must(t, second(s.Thread(ctx, "t"))) // ASK
	move.Key(s.log("t"))
	move.Key(s.left("t"))
	must(t, s.Append(ctx, twoEvents("t", 4))) // ASK for a script
	move.End()
	must(t, s.Append(ctx, twoEvents("t", 6))) // MOVED
	close(stop)
	reading.Wait()
	events, err := s.Events(ctx, "t", 1, 100)
	must(t, err)
	if len(events) != 8 {
		t.Errorf("%d events, want 8", len(events))
	}
}
