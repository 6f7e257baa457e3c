package engine_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// touched is an upstream that receives touches.
type touched struct {
	mu     sync.Mutex
	bodies []string
	cached int
	takes  time.Duration
	err    error
}

func (u *touched) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	u.mu.Lock()
	u.bodies = append(u.bodies, string(r.Body))
	u.mu.Unlock()
	time.Sleep(u.takes)
	usd := (.3*float64(u.cached) + 3.75*float64(20_000-u.cached) + 15) / 1e6
	limit.Bill(ctx, limit.Call{Model: r.Model, Input: 20_000, Cached: u.cached, Output: 1, USD: usd, Known: true})
	return condense.Reply{Usage: session.Usage{Input: 20_000, Cached: u.cached, Output: 1}}, u.err
}

// all returns the bodies it received.
func (u *touched) all() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.bodies)
}

// warmRig is a rig whose tenant keeps prompts warm. It counts touches by outcome.
func warmRig(t *testing.T, usd float64) (*rig, *touched, map[engine.WarmOutcome]int) {
	r, upstream, told := newRig(t, condense.Noop{}), &touched{cached: 20_000}, map[engine.WarmOutcome]int{}
	r.clock, r.client = time.Time{}, "sk-of-the-client"
	r.tenant.Warm = &engine.Warm{
		Model: upstream, USD: usd, Told: func(o engine.WarmOutcome) { told[o]++ },
		Prices: func(string) *condense.Economics {
			return &condense.Economics{Read: .3, Write: 3.75, Answer: 15, Life: 5 * time.Minute}
		},
	}
	return r, upstream, told
}

// answered sends a request with n messages, which upstream answers.
func (r *rig) answered(n int) {
	r.Helper()
	r.answeredAfter(0, says(n))
}

// answeredAfter sends a request, whose answer takes so long.
func (r *rig) answeredAfter(takes time.Duration, b *body) {
	r.Helper()
	turn := r.begin(b, engine.WishNone)
	turn.Condense(r.Context())
	r.logged(turn)
	time.Sleep(takes)
	turn.KeepWarm(session.Usage{Input: 20_000, Cached: 18_000, Written: 2000, Output: 10})
}

func (r *rig) closed() {
	must(r.T, r.engine.Close(context.Background()))
	synctest.Wait()
}

const warmMessages = 241 // enough for a prompt that is worth keeping warm

// TestKeepWarm: a prompt is touched before its cache expires, as it was last sent, for one token, until the touches of a pause have cost as much
// as the client's return saves.
func TestKeepWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, upstream, told := warmRig(t, 10)
		defer r.closed()
		r.answered(warmMessages)
		time.Sleep(4 * time.Minute)
		synctest.Wait()
		if len(upstream.all()) > 0 {
			t.Fatal("touched too early")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(upstream.all()) != 1 {
			t.Fatalf("%d touches within the life of the cache", len(upstream.all()))
		}
		body, sent := upstream.all()[0], string(says(warmMessages).bytes)
		prefix := sent[:strings.LastIndex(sent, "]")]
		if !strings.HasPrefix(body, prefix) || !strings.Contains(body[len(prefix):], `"max_tokens":1`) {
			t.Errorf("touched with %.200s ... %s", body, body[len(prefix):])
		}
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		if want := map[engine.WarmOutcome]int{engine.WarmKept: 11}; !maps.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
	})
}

// TestKeepWarmEnds: a prompt is not touched if that is not configured, it is small or was not cached, the client is back, the cache has lost it,
// upstream fails, the configuration changes, or the day's budget is spent.
func TestKeepWarmEnds(t *testing.T) {
	for name, c := range map[string]struct {
		usd  float64
		run  func(r *rig, upstream *touched)
		want map[engine.WarmOutcome]int
	}{
		"not asked for":  {10, func(r *rig, _ *touched) { r.tenant.Warm = nil; r.answered(warmMessages) }, nil},
		"small":          {10, func(r *rig, _ *touched) { r.answered(21) }, nil},
		"cold":           {10, func(r *rig, u *touched) { u.cached = 0; r.answered(warmMessages) }, map[engine.WarmOutcome]int{engine.WarmCold: 1}},
		"upstream fails": {10, func(r *rig, u *touched) { u.err = errors.New("no"); r.answered(warmMessages) }, map[engine.WarmOutcome]int{engine.WarmFailed: 1}},
		"the budget":     {0.02, func(r *rig, _ *touched) { r.answered(warmMessages) }, map[engine.WarmOutcome]int{engine.WarmKept: 4, engine.WarmSpent: 1}},
		"a new one":      {10, func(r *rig, _ *touched) { r.answered(warmMessages); r.engine.Swap(engine.Settings{}) }, nil},
		"a new one during the answer": {10, func(r *rig, _ *touched) {
			turn := r.begin(says(warmMessages), engine.WishNone)
			r.logged(turn)
			r.engine.Swap(engine.Settings{})
			turn.KeepWarm(session.Usage{Input: 20_000, Cached: 18_000})
		}, nil},
		"observed":        {10, func(r *rig, _ *touched) { r.tenant.Observe = true; r.answered(warmMessages) }, nil},
		"switched off":    {10, func(r *rig, _ *touched) { r.tenant.Off = true; r.answered(warmMessages) }, nil},
		"cold at the end": {10, func(r *rig, _ *touched) { r.answeredAfter(5*time.Minute, says(warmMessages)) }, nil},
		"the tenant's budget": {10, func(r *rig, _ *touched) {
			r.budget = &session.Charge{Account: session.Account{Tenant: "a", Name: "tenant/usd", Until: time.Now().Add(time.Hour)}, Limit: 100}
			r.answered(warmMessages)
			spent := *r.budget
			spent.Amount = 100
			_, err := r.engine.Reserve(r.Context(), "x", []session.Charge{spent})
			must(r.T, err)
		}, map[engine.WarmOutcome]int{engine.WarmSpent: 1}},
		"what touches cost": {0.1, func(r *rig, u *touched) {
			u.cached = 0
			for i := range 3 {
				r.answered(warmMessages + 2*i)
				time.Sleep(time.Hour)
			}
		}, map[engine.WarmOutcome]int{engine.WarmCold: 2, engine.WarmSpent: 1}},
		"not in any cache": {10, func(r *rig, _ *touched) {
			turn := r.begin(says(warmMessages), engine.WishNone)
			r.logged(turn)
			turn.KeepWarm(session.Usage{Input: 20_000, Output: 10})
		}, nil},
		"its client is back, and under way": {10, func(r *rig, _ *touched) {
			r.answered(warmMessages)
			time.Sleep(time.Minute)
			r.logged(r.begin(says(warmMessages+2), engine.WishNone))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, upstream, told := warmRig(t, c.usd)
				defer r.closed()
				c.run(r, upstream)
				time.Sleep(12 * time.Hour)
				synctest.Wait()
				if !maps.Equal(told, c.want) {
					t.Errorf("told of %v, want %v", told, c.want)
				}
			})
		})
	}
}

// TestKeepWarmInTime: the cache's lifetime counts from the request, or the last touch, however long its answer takes.
func TestKeepWarmInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, upstream, _ := warmRig(t, 10)
		defer r.closed()
		upstream.takes = 40 * time.Second
		r.answeredAfter(2*time.Minute, says(warmMessages))
		for n := range 2 {
			time.Sleep(3*time.Minute - time.Second + time.Duration(n)*90*time.Second)
			synctest.Wait()
			if touches := len(upstream.all()); touches != n+1 {
				t.Errorf("%d touches within the life of the cache, want %d", touches, n+1)
			}
		}
	})
}

// TestKeepWarmOneOfForks: of the versions of a history that its client edits, only the newest is kept warm.
func TestKeepWarmOneOfForks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, upstream, _ := warmRig(t, 10)
		defer r.closed()
		before := r.begin(says(warmMessages-2), engine.WishNone)
		r.logged(before)
		must(t, before.Answered(dialect.Answer{Text: "The answer that all versions share."}, nil)(t.Context()))
		newest := ""
		for _, version := range []string{"first", "second", "third"} {
			b := says(warmMessages)
			b.bytes = []byte(strings.Replace(string(b.bytes), "240: The", version+" The", 1))
			newest = version
			r.answeredAfter(time.Second, b)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if all := upstream.all(); len(all) != 1 || !strings.Contains(all[0], newest) {
			t.Errorf("%d touches", len(all))
		}
	})
}

// TestKeepWarmOneOfVersions: a client that edits its first message before each request, or other messages by turns, has one prompt kept warm.
func TestKeepWarmOneOfVersions(t *testing.T) {
	for name, edits := range map[string][]int{"the first message": {0, 0, 0, 0}, "by turns": {0, 40, 20, 40, 20}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, upstream, _ := warmRig(t, 10)
				defer r.closed()
				for i, at := range edits {
					n := warmMessages + 2*i
					b := says(n)
					b.bytes = []byte(strings.Replace(string(b.bytes), fmt.Sprintf(`"%d: The`, at), fmt.Sprintf(`"version %d, %d: The`, i, at), 1))
					turn := r.begin(b, engine.WishNone)
					turn.Condense(t.Context())
					r.logged(turn)
					must(t, turn.Answered(dialect.Answer{Text: fmt.Sprintf("%d: %s", n, strings.Repeat("The sea is deep. ", 20))}, nil)(t.Context()))
					turn.KeepWarm(session.Usage{Input: 20_000, Cached: 18_000, Written: 2000, Output: 10})
					time.Sleep(time.Second)
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if n := len(upstream.all()); n != 1 {
					t.Errorf("%d touches", n)
				}
			})
		})
	}
}

// TestKeepWarmAfterOutage: touches that failed say nothing about clients.
func TestKeepWarmAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, upstream, told := warmRig(t, 1000)
		defer r.closed()
		upstream.err = errors.New("503")
		for i := range 60 {
			if i == 30 {
				upstream.err = nil
			}
			r.answered(warmMessages + 2*i)
			time.Sleep(7 * time.Minute)
			synctest.Wait()
		}
		if told[engine.WarmKept] == 0 {
			t.Errorf("never touched after the outage: %v", told)
		}
	})
}

// TestKeepWarmLearnsFromTouches: pauses without a touch, for which no budget was left, say nothing about clients.
func TestKeepWarmLearnsFromTouches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _, told := warmRig(t, 0.005) // one touch a day
		defer r.closed()
		for i := range 41 {
			if i == 40 {
				time.Sleep(24 * time.Hour)
			}
			r.answered(warmMessages + 2*i)
			time.Sleep(7 * time.Minute)
			synctest.Wait()
		}
		if want := map[engine.WarmOutcome]int{engine.WarmKept: 2, engine.WarmSpent: 39}; !maps.Equal(told, want) {
			t.Errorf("told of %v, want %v", told, want)
		}
	})
}

// TestKeepWarmLearns: prompts are kept only if clients tend to come back.
func TestKeepWarmLearns(t *testing.T) {
	for name, back := range map[string]bool{"gone": false, "back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, upstream, _ := warmRig(t, 100)
				defer r.closed()
				pause := 12 * time.Hour
				if back {
					pause = 7 * time.Minute
				}
				for i := range 20 {
					r.answered(warmMessages + 2*i)
					time.Sleep(pause)
					synctest.Wait()
				}
				before := len(upstream.all())
				r.answered(warmMessages + 40)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if touches := len(upstream.all()) - before; touches != map[bool]int{false: 0, true: 1}[back] {
					t.Errorf("%d touches after %d", touches, before)
				}
			})
		})
	}
}

// TestReplicasKeepWarmOnce: if two replicas hold a thread's prompt, only the one with the newest touches it; if it is the same, only one does.
func TestReplicasKeepWarmOnce(t *testing.T) {
	for name, newer := range map[string]int{"a newer one": 2, "the same": 0} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r, upstream, _ := warmRig(t, 100)
				r.answered(warmMessages)
				first := *r
				r.start()
				defer r.closed()
				defer first.closed()
				time.Sleep(time.Minute)
				r.answered(warmMessages + newer)
				sent := string(says(warmMessages + newer).bytes)
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if len(upstream.all()) != 1 || !strings.HasPrefix(upstream.all()[0], sent[:strings.LastIndex(sent, "]")]) {
					t.Errorf("%d touches", len(upstream.all()))
				}
			})
		})
	}
}
