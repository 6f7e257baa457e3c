package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// degraded tracks whether the store is unavailable. While it cannot be read, requests pass unrecognised. While it rejects writes, because
// it is full or read-only, new messages are not logged until a later request sends them again. Each change is logged once.
type degraded struct {
	o              *Options
	reads, writes  atomic.Bool  // set while they fail
	lastWriteError atomic.Int64 // in nanoseconds of Unix time
}

// writeErrorTTL is how long a failed write counts if no other write is tried.
const writeErrorTTL = 5 * time.Minute

// CheckStore asks a store that was unavailable whether it is back, and updates Degraded. Requests find that out as well, but a server that
// gets none would stay degraded for ever.
func (s *Server) CheckStore(ctx context.Context) {
	if s.degraded.reads.Load() {
		if err := s.o.Engine.Reach(ctx); err == nil {
			s.degraded.readOK()
		}
	}
	since := s.o.Now().UnixNano() - s.degraded.lastWriteError.Load()
	if since > int64(writeErrorTTL) && s.degraded.writes.CompareAndSwap(true, false) {
		s.o.Log.Info("no store write was attempted recently; writes no longer count as failing")
	}
}

// StoreAway makes the server Degraded because the store did not answer a probe. CheckStore ends that.
func (s *Server) StoreAway(err error) { s.degraded.away(err) }

// readFailed counts a request that the store could not resolve.
func (d *degraded) readFailed(err error) {
	d.o.Faults.Lost("resolve")
	d.away(err)
}

func (d *degraded) away(err error) {
	if d.reads.CompareAndSwap(false, true) {
		d.o.Log.Error("store unavailable: requests are forwarded unchanged", zap.Error(err))
	}
}

func (d *degraded) readOK() {
	if d.reads.CompareAndSwap(true, false) {
		d.o.Log.Info("the store answers again: requests are recognised and condensed")
	}
}

// writeFailed counts a write that was lost. The next request of its thread repairs it.
func (d *degraded) writeFailed(op string, err error) {
	d.o.Faults.Lost(op)
	level, message := zap.DebugLevel, "store write lost"
	if errors.Is(err, session.ErrUnavailable) {
		d.lastWriteError.Store(d.o.Now().UnixNano())
		if d.writes.CompareAndSwap(false, true) {
			level, message = zap.ErrorLevel, "store rejects writes: new messages will be written with a later request"
		}
	}
	d.o.Log.Log(level, message, zap.String("op", op), zap.Error(err))
}

func (d *degraded) writeOK() {
	if d.writes.CompareAndSwap(true, false) {
		d.o.Log.Info("the store accepts writes again")
	}
}
