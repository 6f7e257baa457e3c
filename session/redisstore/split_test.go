package redisstore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// oneSlot simulates a proxy in front of a cluster: it refuses scripts with keys of several slots.
type oneSlot struct{ refused atomic.Int32 }

type crossSlot struct{ error }

func (crossSlot) RedisError() {}

func (o *oneSlot) DialHook(next redis.DialHook) redis.DialHook { return next }

func (o *oneSlot) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (o *oneSlot) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); cmd.Name() == "evalsha" && args[2].(int) > 3 {
			o.refused.Add(1)
			cmd.SetErr(crossSlot{errors.New("CROSSSLOT Keys in request don't hash to the same slot")})
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

// TestOneSlot: after such a server has refused one script, the store sends no other, and everything is written.
func TestOneSlot(t *testing.T) {
	t.Parallel()
	server := sessiontest.StartRedis(t)
	for name, mark := range map[string]bool{"append": false, "mark": true} {
		s, slots, ctx := start(t, Options{Addrs: []string{server.Addr}, Prefix: name, TTL: time.Hour, Timeout: 5 * time.Second}), &oneSlot{}, t.Context()
		if mark {
			must(t, s.Append(ctx, twoEvents("t", 0)))
		}
		s.under.client.AddHook(slots)
		if mark {
			must(t, s.Mark(ctx, session.Place{Thread: "t", Session: "s", Pos: 2}, session.Traces{Lasting: []session.Hash{{1}, {2}, {3}}}))
		} else {
			must(t, s.Append(ctx, twoEvents("t", 0)))
			must(t, s.Mark(ctx, session.Place{Thread: "t", Session: "s", Pos: 2}, session.Traces{Lasting: []session.Hash{{1}, {2}, {3}}}))
		}
		must(t, s.Append(ctx, twoEvents("t", 2)))
		if n := slots.refused.Load(); n != 1 {
			t.Errorf("%s: %d scripts were refused, want one", name, n)
		}
		found, err := s.Find(ctx, []session.Hash{twoEvents("t", 0).Places[1].Hash, twoEvents("t", 2).Places[1].Hash}, "t", session.Hash{3}, session.Hash{9})
		must(t, err)
		if found.Hinted == nil || found.Hinted.Len != 4 || found.Places[0].Pos != 2 || found.Places[1].Pos != 4 || !found.Traced[0].Known() || found.Traced[1].Pos != 4 {
			t.Errorf("%s: found %+v", name, found)
		}
		ses, err := s.Session(ctx, "s")
		if must(t, err); len(ses.Threads) != 1 {
			t.Errorf("%s: session %+v", name, ses)
		}
	}
}

// TestLargeBatch: a batch that is too large for one script is written completely in two steps.
func TestLargeBatch(t *testing.T) {
	t.Parallel()
	server := sessiontest.StartRedis(t)
	s, ctx := startWith(t, Options{Addrs: []string{server.Addr}, TTL: time.Hour, Timeout: 10 * time.Second}, records.Options{}), t.Context()
	b := twoEvents("t", 0)
	for pos := 3; pos <= maxIndexed+10; pos++ {
		more := twoEvents("t", pos-1)
		b.Events, b.Places, b.Thread.Len = append(b.Events, more.Events[0]), append(b.Places, more.Places[0]), pos
	}
	must(t, s.Append(ctx, b))
	events, err := s.Events(ctx, "t", 1, 1<<20)
	must(t, err)
	last := b.Places[len(b.Places)-1]
	found, err := s.Find(ctx, []session.Hash{b.Places[0].Hash, last.Hash}, "t", session.Hash{9})
	must(t, err)
	if len(events) != len(b.Events) || found.Places[0].Pos != 1 || found.Places[1] != last.Place || found.Traced[0] != last.Place {
		t.Errorf("%d events, found %+v", len(events), found)
	}
	ses, err := s.Session(ctx, "s")
	if must(t, err); len(ses.Threads) != 1 {
		t.Errorf("session %+v", ses)
	}
}
