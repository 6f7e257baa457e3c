package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// degraded tracks whether the store is unavailable. While it cannot be read, requests pass unrecognised. While it takes no writes, being
// full or a replica, new messages are lost until a later request brings them again. Each change is logged once.
type degraded struct {
	reads, writes  atomic.Bool  // fail
	lastWriteError atomic.Int64 // in nanoseconds of Unix time
}

// writeErrorTTL is how long a failed write counts if no other write is tried.
const writeErrorTTL = 5 * time.Minute

// CheckStore asks a store that was unavailable whether it is back, and updates Degraded. Requests find that out as well, but a server that
// gets none would stay degraded for ever.
func (s *Server) CheckStore(ctx context.Context) {
	if s.degraded.reads.Load() {
		if err := s.o.Engine.Reach(ctx); err == nil {
			s.readOK()
		}
	}
	since := s.o.Now().UnixNano() - s.degraded.lastWriteError.Load()
	if since > int64(writeErrorTTL) && s.degraded.writes.CompareAndSwap(true, false) {
		s.o.Log.Info("no store write was attempted recently; writes no longer count as failing")
	}
}

// Degraded reports whether the store cannot be read or takes no writes, as the last requests or a probe found it.
func (s *Server) Degraded() bool { return s.degraded.reads.Load() || s.degraded.writes.Load() }

// readFailed counts a request that the store could not resolve.
func (s *Server) readFailed(err error) {
	s.o.Faults.Lost("resolve")
	s.StoreAway(err)
}

// StoreAway makes the server Degraded because the store did not answer, for example a probe. CheckStore ends that.
func (s *Server) StoreAway(err error) {
	if s.degraded.reads.CompareAndSwap(false, true) {
		s.o.Log.Error("store unavailable: requests are forwarded unchanged", zap.Error(err))
	}
}

func (s *Server) readOK() {
	if s.degraded.reads.CompareAndSwap(true, false) {
		s.o.Log.Info("store back")
	}
}

// writeFailed counts a write that was lost. The next request of its thread repairs it.
func (s *Server) writeFailed(op string, err error) {
	s.o.Faults.Lost(op)
	level, message := zap.DebugLevel, "store write lost"
	if errors.Is(err, session.ErrUnavailable) {
		s.degraded.lastWriteError.Store(s.o.Now().UnixNano())
		if s.degraded.writes.CompareAndSwap(false, true) {
			level, message = zap.ErrorLevel, "store rejects writes: new messages will be written with a later request"
		}
	}
	s.o.Log.Log(level, message, zap.String("op", op), zap.Error(err))
}

func (s *Server) writeOK() {
	if s.degraded.writes.CompareAndSwap(true, false) {
		s.o.Log.Info("store takes writes again")
	}
}
