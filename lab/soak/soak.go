// Package soak runs Dewpoint as users do, several replicas on one store with hundreds of agents at once, while processes
// are killed and upstream and summariser fail in every way they fail, and counts what comes of it.
//
// Three parties check: a front before the strict fake upstream judges every request that is forwarded; each agent judges
// every answer against what upstream sent and against the faults that were injected into this very exchange; and at the
// end every history that an agent holds is compared with the log in the store. Every generated text carries marks of
// its tenant and conversation, so what is mixed shows wherever it turns up.
//
// What agents say and when faults come follows from a seed. How requests and faults meet does not: processes are
// scheduled by the system. A violation tells the seed all the same, since the same schedule often finds it again.
package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// The kinds of stores.
const (
	Redis    = "redis"
	Embedded = "embedded"
)

// Options say how large a soak is.
type Options struct {
	Dewpoint string        // path of the binary
	Store    string        // Redis or Embedded, whose file belongs to one replica
	Duration time.Duration // of the faults; what is checked afterwards takes its own time
	Replicas int
	Sessions int // agents, each with one conversation
	Steps    int // turns of each agent, spread over the duration
	Seed     uint64
	Progress io.Writer // gets a line now and then
}

// The timeouts that the proxies are given.
const (
	silence    = 10 * time.Second // of upstream, before its header and between its chunks
	summarises = 3 * time.Second
)

// Minimums without which a soak proves nothing.
const (
	leastSteps    = 4
	leastSessions = 4
)

func (o Options) validate() error {
	var errs []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	bad(o.Dewpoint == "", "the path of the binary is missing")
	bad(o.Store != Redis && o.Store != Embedded, "store %q is neither %s nor %s", o.Store, Redis, Embedded)
	bad(o.Replicas < 1, "%d replicas", o.Replicas)
	bad(o.Sessions < leastSessions, "%d sessions, fewer than %d", o.Sessions, leastSessions)
	bad(o.Steps < leastSteps, "%d steps, fewer than %d", o.Steps, leastSteps)
	bad(o.Duration <= 0, "a duration of %v", o.Duration)
	if o.Store == Redis {
		errs = append(errs, servers.FindRedis())
	}
	return errors.Join(errs...)
}

// The streams of chance apart from those of families, which are numbered from 0.
const (
	chanceChaos = 1<<50 + iota
	chanceSummariser
	chanceWeather
)

// soak is one run.
type soak struct {
	Options
	tally     *tally
	weather   *weather
	exchanges sync.Map // under way, by id, and those before them for what arrives late
	tenants   []*tenant
	front     *front
	redis     *servers.Redis // nil: the store is embedded
	path      string         // of the embedded store
	fleet     *fleet
	client    *http.Client
	sent      atomic.Int64
	agents    []*agent
	began     time.Time
	faulty    time.Duration // how long faults lasted
	rounds    int           // of closing requests
}

// Run soaks, and reports. The error is of the soak itself; what Dewpoint did wrong is in the report.
func Run(ctx context.Context, o Options) (*Report, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	dir, err := os.MkdirTemp("", "dewpoint-soak-")
	if err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the system's folder for what may go
	s := &soak{
		Options: o, tally: newTally(), weather: newWeather(), tenants: newTenants(len(condensers())), began: time.Now(),
		client: &http.Client{Timeout: 2 * patience, Transport: &http.Transport{MaxIdleConnsPerHost: o.Sessions}},
	}
	if o.Store == Embedded {
		s.Replicas = 1 // the file belongs to one process
	}
	if err := s.run(ctx, dir); err != nil {
		return nil, fmt.Errorf("soak: %w", err)
	}
	return &Report{
		Violations: s.tally.violations, Violated: s.tally.sum(groupViolations, ""), Splits: s.tally.splits, soak: s, took: time.Since(s.began),
	}, nil
}

func (s *soak) run(ctx context.Context, dir string) (err error) {
	defer s.stop()
	if err := s.start(ctx, dir); err != nil {
		return err
	}
	watching, stopWatching := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() {
		for sleep(watching, sampling) {
			s.fleet.sample(watching)
		}
	})
	err = s.storm(ctx)
	if err == nil {
		err = s.closing(ctx)
	}
	stopWatching()
	watcher.Wait()
	return err
}

// start starts upstream, the store and the replicas.
func (s *soak) start(ctx context.Context, dir string) (err error) {
	s.front = startFront(s)
	s.path = filepath.Join(dir, "dewpoint.db")
	store := fmt.Sprintf("{type: embedded, path: %q, secret: %q}", s.path, secret)
	if s.Store == Redis {
		// It writes its file once a second: what is younger may be lost when it is killed.
		if s.redis, err = servers.StartRedis(ctx, dir, "--appendonly", "yes", "--appendfsync", "everysec"); err != nil {
			return err
		}
		store = fmt.Sprintf("{type: redis, secret: %q, redis: {addrs: [%q]}}", secret, s.redis.Addr)
	}
	config := filepath.Join(dir, "dewpoint.yaml")
	text := configuration(s.front.server.URL+"/v1", store, s.tenants)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	s.fleet = &fleet{
		binary: s.Dewpoint, config: config, tally: s.tally, client: http.Client{Timeout: time.Second}, slots: make([]*replica, s.Replicas),
	}
	for slot := range s.Replicas {
		if err := s.fleet.launch(ctx, slot); err != nil {
			return err
		}
	}
	return nil
}

func (s *soak) stop() {
	if s.fleet != nil {
		s.fleet.close()
		s.client.CloseIdleConnections()
	}
	if s.redis != nil {
		s.redis.Kill()
	}
	if s.front != nil {
		s.front.close()
	}
}

func (s *soak) chance(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(s.Seed, stream)) }

// storm lets the agents work while things go wrong.
func (s *soak) storm(ctx context.Context) error {
	began := time.Now()
	for n := range s.Sessions {
		s.agents = append(s.agents, s.newAgent(n))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	chaos := &chaos{s, s.chance(chanceChaos)}
	var trouble error
	var working, raging sync.WaitGroup
	raging.Go(func() {
		if trouble = chaos.run(ctx, s.Duration); trouble != nil {
			cancel()
		}
	})
	for _, a := range s.agents {
		working.Go(func() {
			// An agent that is not served has been reported: the others go on.
			if err := a.run(ctx, s.Steps, s.Duration); err != nil && !errors.Is(err, errUnserved) {
				s.tally.violate("agents work", a.lines[0].name(), "%v", err)
			}
		})
	}
	told, tellNoMore := context.WithCancel(ctx)
	defer tellNoMore()
	raging.Go(func() {
		for sleep(told, telling) {
			fmt.Fprintf(s.Progress, "%v: %d requests, %d condensations, %d violations\n", time.Since(began).Round(time.Second),
				s.sent.Load(), s.tally.sum(groupCondensed, ""), s.tally.sum(groupViolations, ""))
		}
	})
	working.Wait()
	tellNoMore()
	raging.Wait()
	s.faulty = time.Since(began)
	if trouble != nil {
		return trouble
	}
	return ctx.Err()
}

// telling is how often progress is told.
const telling = 15 * time.Second

func (s *soak) newAgent(number int) *agent {
	f := newFamily(number, s.tenants, s.Seed)
	return &agent{family: f, caller: &caller{soak: s, chance: s.chance(chanceWeather + uint64(number)), only: -1}}
}
