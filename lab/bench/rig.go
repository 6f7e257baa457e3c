package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// Parts of a run.
const (
	PartCells  = "cells"
	PartStream = "stream"
	PartMemory = "memory"
	PartWaits  = "waits"
)

// Parts lists them, in the order in which they run.
func Parts() []string { return []string{PartCells, PartStream, PartMemory, PartWaits} }

// Options are what a run is made of.
type Options struct {
	Dewpoint string            // the binary
	Bare     []string          // the command of the bare proxy; the mock's address is added to it
	Parts    []string          // none: all
	Quick    bool              // a short run, for a first look
	Tiny     bool              // the shortest run: to see that everything works
	Log      func(string)      // takes progress; nil: it is dropped
	Match    func(string) bool // cells to measure, by name; nil: all
}

func (o *Options) has(part string) bool { return len(o.Parts) == 0 || slices.Contains(o.Parts, part) }

// rig is the mock, Redis and the targets of a run.
type rig struct {
	Options
	mock    *Mock
	redis   *redisServer // nil: not installed
	dir     string
	targets []*Target
	missing []string      // what is not installed
	id      atomic.Uint64 // of the last history that was forked
}

// Names of the targets that have a part of their own in tables.
const (
	nameBare     = "bare fasthttp"
	nameNginx    = "nginx"
	nameEmbedded = "dewpoint"
	nameRedis    = "dewpoint, Redis"
)

// newRig starts everything. The first target is the bare proxy, with which all are compared.
func newRig(ctx context.Context, o Options) (r *rig, err error) {
	r = &rig{Options: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if r.dir, err = os.MkdirTemp("", "dewpoint-bench-"); err != nil {
		return r, fmt.Errorf("make a folder: %w", err)
	}
	if r.mock, err = StartMock(); err != nil {
		return r, err
	}
	if err := r.add(startBare(o.Bare, r.mock.Addr())); err != nil {
		return r, err
	}
	if err := r.add(startNginx(ctx, r.folder("nginx"), r.mock.Addr())); err != nil {
		return r, err
	}
	return r, r.addDewpoints(ctx)
}

func (r *rig) addDewpoints(ctx context.Context) error {
	if err := r.add(r.dewpoint(setting{Name: nameEmbedded})); err != nil {
		return err
	}
	var err error
	if r.redis, err = startRedis(ctx, r.folder("redis")); errors.Is(err, errNotInstalled) {
		r.missing = append(r.missing, err.Error())
		return nil
	} else if err != nil {
		return err
	}
	return r.add(r.dewpoint(setting{Name: nameRedis, Redis: r.redis.addr}))
}

// dewpoint starts another one, which is the caller's.
func (r *rig) dewpoint(s setting) (*Target, error) {
	s.Upstream, s.Dir = r.mock.Addr(), r.folder(fmt.Sprintf("dewpoint-%d", r.id.Add(1)))
	return startDewpoint(r.Dewpoint, s)
}

// add takes a target that was started. What is not installed is only noted.
func (r *rig) add(t *Target, err error) error {
	if errors.Is(err, errNotInstalled) {
		r.missing = append(r.missing, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	r.targets = append(r.targets, t)
	return nil
}

func (r *rig) folder(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) log(format string, args ...any) {
	if r.Log != nil {
		r.Log(fmt.Sprintf(format, args...))
	}
}

// fork makes a conversation that no target has seen. It may be used concurrently.
func (r *rig) fork(h *History) *History { return h.Fork(r.id.Add(1)) }

func (r *rig) close() error {
	err := closeAll(r.targets)
	if r.redis != nil {
		err = errors.Join(err, r.redis.proc.close())
	}
	if r.mock != nil {
		r.mock.Close()
	}
	if r.dir != "" {
		err = errors.Join(err, os.RemoveAll(r.dir))
	}
	return err
}

// request is one request that is made and checked.
type request struct{ call }

// ask makes a request over a connection, and checks both what arrived upstream and what came back.
func (r *rig) ask(c *client, q *request) (*answer, int, error) {
	q.ID = r.mock.Expected.add(&expectation{body: q.Body})
	a, err := c.do(&q.call, nil)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", q.Target.Name, err)
	}
	if err := intact(a, q); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", q.Target.Name, err)
	}
	arrived, err := r.mock.Expected.await(q.ID)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", q.Target.Name, err)
	}
	return a, arrived, nil
}
