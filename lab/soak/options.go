package soak

import (
	"errors"
	"fmt"
	"io"
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

// The least that a soak must have to mean anything.
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
