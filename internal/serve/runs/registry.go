// Package runs keeps the runs of agents that "dewpoint run" starts: their totals and how long they last. A Registry has the runs of the process
// that serves, a Control lets other processes begin and end them, and Join is the other end of that.
package runs

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// Registry holds the runs of a process. It is safe for concurrent use.
type Registry struct {
	mu     sync.Mutex
	byID   map[string]*run
	closed bool
	idle   chan struct{}
}

// NewRegistry returns a registry without runs.
func NewRegistry() *Registry {
	return &Registry{byID: map[string]*run{}, idle: make(chan struct{}, 1)}
}

// Begin begins a run and returns its id. It returns false once the registry is closed.
func (r *Registry) Begin(observe bool) (id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return "", false
	}
	id = rand.Text()
	r.byID[id] = newRun(observe)
	return id, true
}

// End ends a run. Requests to its base path are refused from now on.
func (r *Registry) End(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, known := r.byID[id]; !known {
		return
	}
	delete(r.byID, id)
	if len(r.byID) == 0 {
		select {
		case r.idle <- struct{}{}:
		default:
		}
	}
}

// Idle returns a channel that receives a value when the last run has ended. By then another may have begun: see Close.
func (r *Registry) Idle() <-chan struct{} { return r.idle }

// Close makes Begin fail from now on. It does nothing and returns false if there are runs.
func (r *Registry) Close() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = r.closed || len(r.byID) == 0
	return r.closed
}

// Find is for proxy.Options.Runs.
func (r *Registry) Find(id string) (proxy.Run, bool) {
	r.mu.Lock()
	found, known := r.byID[id]
	r.mu.Unlock()
	if !known {
		return proxy.Run{}, false
	}
	return proxy.Run{Observe: found.totals.Observe, Begin: found.begin, Spent: found.spent, Totals: found.json}, true
}

// run is one run of an agent. It is safe for concurrent use.
type run struct {
	mu     sync.Mutex
	totals Totals
	open   int           // requests under way
	settle chan struct{} // closed when there are none, and replaced when one begins
}

func newRun(observe bool) *run {
	settled := make(chan struct{})
	close(settled)
	return &run{totals: Totals{Observe: observe}, settle: settled}
}

func (r *run) begin() func(*proxy.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open++; r.open == 1 {
		r.settle = make(chan struct{})
	}
	return r.end
}

func (r *run) end(record *proxy.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals.add(record)
	if r.open--; r.open == 0 {
		close(r.settle)
	}
}

func (r *run) spent(c limit.Call) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals.addCall(c)
}

// settleTime is how long totals wait for requests that have been answered to be counted.
const settleTime = 2 * time.Second

// json returns the totals, once the requests under way are counted.
func (r *run) json() ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTime)
	defer cancel()
	r.mu.Lock()
	settled := r.settle
	r.mu.Unlock()
	select {
	case <-settled:
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return json.Marshal(r.totals)
}
