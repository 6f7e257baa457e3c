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

// Backend is all that a store offers to the process that opened it.
type Backend interface {
	Store
	Archive
	// Ping reports whether the store is there and well. An error wraps ErrUnavailable.
	Ping(ctx context.Context) error
}

// PanicError is what Recover makes of a panic. It wraps ErrUnavailable.
type PanicError struct {
	Value any
	At    string // file and line
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%v: a defect, or damaged data (panic at %s: %v)", ErrUnavailable, e.At, e.Value)
}

// Unwrap makes it an ErrUnavailable.
func (e *PanicError) Unwrap() error { return ErrUnavailable }

// Recover calls f. A panic in it, or a fault in the memory that a file is mapped to, is a PanicError.
func Recover(f func() error) (err error) {
	defer recovered(&err)
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return f()
}

func recovered(err *error) {
	if p := recover(); p != nil {
		*err = &PanicError{Value: p, At: panicSite()}
	}
}

// panicSite is where the panic came from that is being recovered: the first frame below the runtime's.
func panicSite() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)]) // without this function and recovered
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "runtime.") || !more {
			return fmt.Sprintf("%s:%d", filepath.Base(frame.File), frame.Line)
		}
	}
}

// Guard makes a store that panics one that is unavailable: what panics in a call, or faults, is that call's error. Errors
// say what was being done.
func Guard(store Backend) Backend { return guarded{store} }

type guarded struct{ Backend }

// run is Recover for a method, with what it does added to its error.
func run(method func() error, doing string, args ...any) error {
	err := Recover(method)
	if err == nil {
		return nil
	}
	return fmt.Errorf(doing+": %w", append(args, err)...)
}

// call is run for a method with a result.
func call[T any](method func() (T, error), doing string, args ...any) (result T, err error) {
	err = run(func() (err error) {
		result, err = method()
		return err
	}, doing, args...)
	return result, err
}

func (g guarded) Secret(ctx context.Context, proposed Secret) (Secret, error) {
	return call(func() (Secret, error) { return g.Backend.Secret(ctx, proposed) }, "secret")
}

func (g guarded) Find(ctx context.Context, hashes []Hash, hint ThreadID, traces ...Hash) (Found, error) {
	return call(func() (Found, error) { return g.Backend.Find(ctx, hashes, hint, traces...) }, "find")
}

func (g guarded) Thread(ctx context.Context, id ThreadID) (Thread, error) {
	return call(func() (Thread, error) { return g.Backend.Thread(ctx, id) }, "thread %s", id)
}

func (g guarded) Append(ctx context.Context, b Batch) error {
	return run(func() error { return g.Backend.Append(ctx, b) }, "append to %s", b.Thread.ID)
}

func (g guarded) Condense(ctx context.Context, thread ThreadID, c Condensation) (Condensation, error) {
	return call(func() (Condensation, error) { return g.Backend.Condense(ctx, thread, c) }, "condense %s", thread)
}

func (g guarded) Summary(ctx context.Context, id CondensationID) (string, error) {
	return call(func() (string, error) { return g.Backend.Summary(ctx, id) }, "summary %s/%d", id.Thread, id.Seq)
}

func (g guarded) Events(ctx context.Context, thread ThreadID, from uint64, limit int) ([]Event, error) {
	return call(func() ([]Event, error) { return g.Backend.Events(ctx, thread, from, limit) }, "events of %s", thread)
}

func (g guarded) Trace(ctx context.Context, traces []Hash) ([]Place, error) {
	return call(func() ([]Place, error) { return g.Backend.Trace(ctx, traces) }, "trace")
}

func (g guarded) Mark(ctx context.Context, traces []Hash, at Place) error {
	return run(func() error { return g.Backend.Mark(ctx, traces, at) }, "mark")
}

func (g guarded) Session(ctx context.Context, id SessionID) (Session, error) {
	return call(func() (Session, error) { return g.Backend.Session(ctx, id) }, "session %s", id)
}

func (g guarded) Lock(ctx context.Context, thread ThreadID, ttl time.Duration) (func(), error) {
	unlock, err := call(func() (func(), error) { return g.Backend.Lock(ctx, thread, ttl) }, "lock %s", thread)
	if err != nil {
		return nil, err
	}
	return func() {
		_ = Recover(func() error { // a lock that is not released runs out
			unlock()
			return nil
		})
	}, nil
}

func (g guarded) Sessions(ctx context.Context, q SessionQuery) (SessionPage, error) {
	return call(func() (SessionPage, error) { return g.Backend.Sessions(ctx, q) }, "list sessions")
}

func (g guarded) Forget(ctx context.Context, id SessionID) error {
	return run(func() error { return g.Backend.Forget(ctx, id) }, "forget session %s", id)
}

func (g guarded) Request(ctx context.Context, thread ThreadID, at time.Time) error {
	return run(func() error { return g.Backend.Request(ctx, thread, at) }, "request a condensation of %s", thread)
}

func (g guarded) Ping(ctx context.Context) error {
	return run(func() error { return g.Backend.Ping(ctx) }, "ping")
}

func (g guarded) Close() error { return run(g.Backend.Close, "close session store") }
