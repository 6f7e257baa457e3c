package session

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Backend is everything that a store offers to the process that opened it.
type Backend interface {
	Store
	Archive
	Journal
	// Ping checks that the store is reachable and healthy. An error wraps ErrUnavailable.
	Ping(ctx context.Context) error
}

// PanicError is a panic that Recover turned into an error. It wraps ErrUnavailable.
type PanicError struct {
	Value any
	At    string // file and line
	Func  string // the function that panicked, with the path of its package
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: a defect, or damaged data (panic at %s: %v)", ErrUnavailable, e.At, e.Value)
}

// Unwrap returns ErrUnavailable.
func (e *PanicError) Unwrap() error { return ErrUnavailable }

// Recover calls f and returns its error. If f panics, or faults on memory that a file is mapped to, it returns a PanicError.
func Recover(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			site := panicSite()
			err = &PanicError{Value: p, At: fmt.Sprintf("%s:%d", filepath.Base(site.File), site.Line), Func: site.Function}
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return f()
}

// panicSite returns where the panic that is being recovered began: the first frame outside the runtime.
func panicSite() runtime.Frame {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // skip Callers, panicSite and its caller
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") || !more {
			return frame
		}
	}
}

// Watch is called after each call of a store with the operation, the time it began, and its error. It may be called
// concurrently.
type Watch func(op string, begun time.Time, err error)

// Guard wraps a store so that a call that panics or faults returns a PanicError instead. It adds the operation to all
// errors. watch may be nil.
func Guard(store Backend, watch Watch) Backend { return &guarded{store, watch} }

type guarded struct {
	Backend
	watch Watch
}

// run calls a method under Recover and adds the operation and its object, if any, to the error.
func (g *guarded) run(op string, object any, method func() error) error {
	begun := time.Now()
	err := Recover(method)
	if g.watch != nil {
		g.watch(op, begun, err)
	}
	switch {
	case err == nil:
		return nil
	case object == nil:
		return fmt.Errorf("%s: %w", op, err)
	}
	return fmt.Errorf("%s %v: %w", op, object, err)
}

// call is like run, for a method that returns a result.
func call[T any](g *guarded, op string, object any, method func() (T, error)) (result T, err error) {
	err = g.run(op, object, func() (err error) {
		result, err = method()
		return err
	})
	return result, err
}

func (g *guarded) Secret(ctx context.Context, proposed Secret) (Secret, error) {
	return call(g, "secret", nil, func() (Secret, error) { return g.Backend.Secret(ctx, proposed) })
}

func (g *guarded) Find(ctx context.Context, hashes []Hash, hint ThreadID, traces ...Hash) (Found, error) {
	return call(g, "find", nil, func() (Found, error) { return g.Backend.Find(ctx, hashes, hint, traces...) })
}

func (g *guarded) Thread(ctx context.Context, id ThreadID) (Thread, error) {
	return call(g, "thread", id, func() (Thread, error) { return g.Backend.Thread(ctx, id) })
}

func (g *guarded) Append(ctx context.Context, b Batch) error {
	return g.run("append", b.Thread.ID, func() error { return g.Backend.Append(ctx, b) })
}

func (g *guarded) Condense(ctx context.Context, thread ThreadID, c Condensation) (Condensation, error) {
	return call(g, "condense", thread, func() (Condensation, error) { return g.Backend.Condense(ctx, thread, c) })
}

func (g *guarded) Prepare(ctx context.Context, thread ThreadID, c Condensation) error {
	return g.run("prepare", thread, func() error { return g.Backend.Prepare(ctx, thread, c) })
}

func (g *guarded) Prepared(ctx context.Context, thread ThreadID) (Condensation, error) {
	return call(g, "prepared", thread, func() (Condensation, error) { return g.Backend.Prepared(ctx, thread) })
}

func (g *guarded) Summary(ctx context.Context, id CondensationID) (string, error) {
	return call(g, "summary", id, func() (string, error) { return g.Backend.Summary(ctx, id) })
}

func (g *guarded) Events(ctx context.Context, thread ThreadID, at uint64, limit int) ([]Event, error) {
	return call(g, "events", thread, func() ([]Event, error) { return g.Backend.Events(ctx, thread, at, limit) })
}

func (g *guarded) Trace(ctx context.Context, traces []Hash) ([]Place, error) {
	return call(g, "trace", nil, func() ([]Place, error) { return g.Backend.Trace(ctx, traces) })
}

func (g *guarded) Mark(ctx context.Context, at Place, traces Traces) error {
	return g.run("mark", at.Thread, func() error { return g.Backend.Mark(ctx, at, traces) })
}

func (g *guarded) Answers(ctx context.Context, thread ThreadID) ([]Answer, error) {
	return call(g, "answers", thread, func() ([]Answer, error) { return g.Backend.Answers(ctx, thread) })
}

func (g *guarded) Enter(ctx context.Context, e Entry) error {
	return g.run("enter", nil, func() error { return g.Backend.Enter(ctx, e) })
}

func (g *guarded) Experiment(ctx context.Context, name string) (Experiment, error) {
	return call(g, "experiment", nil, func() (Experiment, error) { return g.Backend.Experiment(ctx, name) })
}

func (g *guarded) Save(ctx context.Context, thread ThreadID, more Savings) error {
	return g.run("save", thread, func() error { return g.Backend.Save(ctx, thread, more) })
}

func (g *guarded) Saved(ctx context.Context, thread ThreadID) (Savings, error) {
	return call(g, "saved", thread, func() (Savings, error) { return g.Backend.Saved(ctx, thread) })
}

func (g *guarded) Session(ctx context.Context, id SessionID) (Session, error) {
	return call(g, "session", id, func() (Session, error) { return g.Backend.Session(ctx, id) })
}

func (g *guarded) Lock(ctx context.Context, thread ThreadID, ttl time.Duration) (Lease, error) {
	lease, err := call(g, "lock", thread, func() (Lease, error) { return g.Backend.Lock(ctx, thread, ttl) })
	if err != nil {
		return Lease{}, err
	}
	return Lease{
		Renew: func(ctx context.Context) error {
			return g.run("keep lock", thread, func() error { return lease.Renew(ctx) })
		},
		Release: func() {
			_ = Recover(func() error { // a lock that is not released expires
				lease.Release()
				return nil
			})
		},
	}, nil
}

func (g *guarded) Reserve(ctx context.Context, id string, charges []Charge) (Reserved, error) {
	return call(g, "reserve", nil, func() (Reserved, error) { return g.Backend.Reserve(ctx, id, charges) })
}

func (g *guarded) Settle(ctx context.Context, id string, charges []Charge) error {
	return g.run("settle", nil, func() error { return g.Backend.Settle(ctx, id, charges) })
}

func (g *guarded) Enqueue(ctx context.Context, n Notice, limit int) (bool, error) {
	return call(g, "enqueue", n.Thread, func() (bool, error) { return g.Backend.Enqueue(ctx, n, limit) })
}

func (g *guarded) Enqueued(ctx context.Context, tenant string, from, limit int) (found []Notice, total int, err error) {
	err = g.run("read outbox", nil, func() (err error) {
		found, total, err = g.Backend.Enqueued(ctx, tenant, from, limit)
		return err
	})
	return found, total, err
}

func (g *guarded) Dequeue(ctx context.Context, n Notice) error {
	return g.run("dequeue", n.Thread, func() error { return g.Backend.Dequeue(ctx, n) })
}

func (g *guarded) Sessions(ctx context.Context, q SessionQuery) (SessionPage, error) {
	return call(g, "list sessions", nil, func() (SessionPage, error) { return g.Backend.Sessions(ctx, q) })
}

func (g *guarded) Forget(ctx context.Context, id SessionID) error {
	return g.run("forget session", id, func() error { return g.Backend.Forget(ctx, id) })
}

func (g *guarded) Compact(ctx context.Context) error {
	return g.run("compact", nil, func() error { return g.Backend.Compact(ctx) })
}

func (g *guarded) Request(ctx context.Context, thread ThreadID, at time.Time) error {
	return g.run("request a condensation of", thread, func() error { return g.Backend.Request(ctx, thread, at) })
}

func (g *guarded) Set(ctx context.Context, name string, value []byte) error {
	return g.run("set", name, func() error { return g.Backend.Set(ctx, name, value) })
}

func (g *guarded) Settings(ctx context.Context) (map[string][]byte, error) {
	return call(g, "settings", nil, func() (map[string][]byte, error) { return g.Backend.Settings(ctx) })
}

func (g *guarded) WriteJournal(ctx context.Context, b JournalBatch) error {
	return g.run("write journal", nil, func() error { return g.Backend.WriteJournal(ctx, b) })
}

func (g *guarded) ReadJournal(ctx context.Context, id SessionID, before uint64, limit int) ([]JournalEntry, error) {
	return call(g, "read journal of", id, func() ([]JournalEntry, error) { return g.Backend.ReadJournal(ctx, id, before, limit) })
}

func (g *guarded) FindJournal(ctx context.Context, name Hash) (SessionID, error) {
	return call(g, "find in journal", nil, func() (SessionID, error) { return g.Backend.FindJournal(ctx, name) })
}

func (g *guarded) Totals(ctx context.Context, period string) ([]Total, error) {
	return call(g, "read totals", nil, func() ([]Total, error) { return g.Backend.Totals(ctx, period) })
}

func (g *guarded) Ping(ctx context.Context) error {
	return g.run("ping", nil, func() error { return g.Backend.Ping(ctx) })
}

func (g *guarded) Close() error { return g.run("close session store", nil, g.Backend.Close) }
