package soak

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"
)

// The kinds of stores.
const (
	Redis    = "redis"
	Embedded = "embedded"
)

// Options say how large a soak is. The zero value of a number takes its default.
type Options struct {
	Dewpoint string        // path of the binary
	Store    string        // Redis or Embedded
	Duration time.Duration // of the faults; what is checked afterwards takes its own time
	Replicas int
	Sessions int // agents, each with one conversation
	Tenants  int
	Steps    int    // turns of each agent, spread over the duration
	Requests int    // at most so many are sent while faults last; 0: as many as the turns take
	Limit    Limits // of the proxies
	Seed     uint64
	Progress io.Writer // gets a line now and then; nil: nowhere
}

// Limits are the timeouts that the proxies are given.
type Limits struct {
	Silence    time.Duration // of upstream, before its header and between its chunks
	Summariser time.Duration
}

// The least that a soak must have to mean anything.
const (
	leastSteps    = 4
	leastSessions = 4
)

func (o Options) withDefaults() Options {
	set := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	set(&o.Replicas, 3)
	set(&o.Sessions, 300)
	set(&o.Tenants, len(condensers()))
	set(&o.Steps, 30)
	if o.Store == "" {
		o.Store = Redis
	}
	if o.Store == Embedded {
		o.Replicas = 1 // the file belongs to one process
	}
	if o.Duration == 0 {
		o.Duration = 5 * time.Minute
	}
	if o.Limit == (Limits{}) {
		o.Limit = Limits{Silence: 10 * time.Second, Summariser: 3 * time.Second}
	}
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	return o
}

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
	bad(o.Tenants < 2, "%d tenants: nothing could be mixed", o.Tenants)
	bad(o.Steps < leastSteps, "%d steps, fewer than %d", o.Steps, leastSteps)
	bad(o.Duration <= 0, "a duration of %v", o.Duration)
	bad(o.Requests < 0, "%d requests", o.Requests)
	if o.Store == Redis {
		_, err := exec.LookPath(redisServer)
		bad(err != nil, "%s is not installed", redisServer)
	}
	return errors.Join(errs...)
}
