// Package bench measures what Dewpoint adds to a request. It starts a fast mock upstream in its own process, and as processes
// of their own a bare fasthttp proxy, nginx where it is installed, Dewpoint over each of its stores and any peers; drives them
// in alternation with the same agent-shaped bodies; and checks byte for byte what arrived upstream. Its figures are ratios
// to the bare proxy in the same block of the same run: times differ from machine to machine, ratios hardly do.
package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// Parts lists the parts of a run, in the order in which they run.
func Parts() []string { return []string{"cells", "stream", "memory", "waits"} }

// Options are what a run is made of.
type Options struct {
	Dewpoint string       // the binary
	Bare     []string     // the command of the bare proxy; the mock's address is added to it
	Relay    []string     // the command of the relay, likewise
	Parts    []string     // none: all
	Quick    bool         // a short run, for a first look
	Tiny     bool         // the shortest run: to see that everything works
	Log      func(string) // takes progress
	Cell     string       // only cells whose name holds this are measured
}

// pick chooses what is measured of something by how much time there is.
func pick[T any](o *Options, tiny, quick, full T) T {
	switch {
	case o.Tiny:
		return tiny
	case o.Quick:
		return quick
	}
	return full
}

// rig is the mock, Redis and the targets of a run.
type rig struct {
	Options
	mock    *Mock
	redis   string // address; empty: it is not installed
	stop    func() // ends what is no target
	dir     string
	targets []*Target
	missing []string      // what is not installed
	id      atomic.Uint64 // of the last history that was forked
}

// Names of the targets that have a part of their own in tables.
const (
	nameBare     = "bare fasthttp"
	nameDirect   = "direct"
	nameRelay    = "net/http relay"
	nameNginx    = "nginx"
	nameEmbedded = "dewpoint"
	nameRedis    = "dewpoint, Redis"
)

// newRig starts everything. The first target is the bare proxy, with which all are compared.
func newRig(ctx context.Context, o Options) (r *rig, err error) {
	r = &rig{Options: o, stop: func() {}}
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
	r.stop = r.mock.Close
	if err := r.add(startServed(ctx, nameBare, o.Bare, r.mock.Addr())); err != nil {
		return r, err
	}
	r.targets = append(r.targets, &Target{Name: nameDirect, Addr: r.mock.Addr()})
	if err := r.add(startServed(ctx, nameRelay, o.Relay, r.mock.Addr())); err != nil {
		return r, err
	}
	if err := r.add(startNginx(ctx, filepath.Join(r.dir, "nginx"), r.mock.Addr())); err != nil {
		return r, err
	}
	if err := r.add(r.dewpoint(ctx, setting{Name: nameEmbedded})); err != nil {
		return r, err
	}
	redis, err := servers.StartRedis(ctx, r.dir, "--appendonly", "no") // it keeps everything in memory
	if err == nil {
		r.redis, r.stop = redis.Addr, func() { redis.Kill(); r.mock.Close() }
		return r, r.add(r.dewpoint(ctx, setting{Name: nameRedis, Redis: r.redis}))
	}
	return r, r.add(nil, err)
}

// dewpoint starts another one, which is the caller's.
func (r *rig) dewpoint(ctx context.Context, s setting) (*Target, error) {
	s.Upstream, s.Dir = cmp.Or(s.Upstream, r.mock.Addr()), filepath.Join(r.dir, fmt.Sprintf("dewpoint-%d", r.id.Add(1)))
	return startDewpoint(ctx, r.Dewpoint, s)
}

// add takes a target that was started. What is not installed is only noted.
func (r *rig) add(t *Target, err error) error {
	if errors.Is(err, servers.ErrNotInstalled) {
		r.missing = append(r.missing, err.Error())
		return nil
	}
	if err != nil {
		return err
	}
	r.targets = append(r.targets, t)
	return nil
}

func (r *rig) log(format string, args ...any) { r.Log(fmt.Sprintf(format, args...)) }

// fork makes a conversation that no target has seen. It may be used concurrently.
func (r *rig) fork(h *History) *History { return h.Fork(r.id.Add(1)) }

func (r *rig) close() error {
	err := closeAll(nil, r.targets...)
	r.stop()
	return errors.Join(err, os.RemoveAll(r.dir))
}

// ask makes a request over a connection, and checks both what arrived upstream and what came back.
func (r *rig) ask(c *client, q *call) (*answer, error) {
	q.ID, _ = r.mock.Expected.add(q.Body)
	a, err := c.do(q)
	if err == nil {
		err = errors.Join(intact(a, q.ID), r.mock.Expected.await(q.ID))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", q.Target.Name, err)
	}
	return a, nil
}

// intact checks that an answer is the mock's own, to its end.
func intact(a *answer, id uint64) error {
	if a.StatusCode() != 200 {
		return fmt.Errorf("answered %d: %.300s", a.StatusCode(), a.Body())
	}
	if !bytes.Contains(a.Body(), []byte(`"chatcmpl-`+strconv.FormatUint(id, 10)+`"`)) {
		return fmt.Errorf("another request's answer: %.300s", a.Body())
	}
	return nil
}

// Result is what a run measured.
type Result struct {
	Machine   string
	Load      string // the average over a minute, before the run
	Quick     bool
	Took      time.Duration
	Missing   []string // what is not installed
	Cells     []CellResult
	Streaming *Streaming
	Memory    *Memory
	Waits     []Wait
}

// Run measures. It fails if a request was lost, altered or not answered.
func Run(ctx context.Context, o Options) (result *Result, err error) {
	begun, before := time.Now(), found("/proc/loadavg", `^(\S+)`)
	r, err := newRig(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	result = &Result{Machine: describe(ctx), Load: before, Quick: o.Quick || o.Tiny, Missing: r.missing}
	parts := map[string]func() error{
		"cells":  func() (err error) { result.Cells, err = r.measureCells(ctx); return err },
		"stream": func() (err error) { result.Streaming, err = r.measureStreaming(ctx); return err },
		"memory": func() (err error) { result.Memory, err = r.measureMemory(ctx); return err },
		"waits":  func() (err error) { result.Waits, err = r.measureWaits(ctx); return err },
	}
	for _, part := range Parts() {
		if len(o.Parts) > 0 && !slices.Contains(o.Parts, part) {
			continue
		}
		since := time.Now()
		if err := errors.Join(parts[part](), r.mock.Expected.check()); err != nil {
			return result, fmt.Errorf("%s: %w", part, err)
		}
		r.log("%s: %.1f s", part, time.Since(since).Seconds())
	}
	result.Took = time.Since(begun)
	return result, nil
}
