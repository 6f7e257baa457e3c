package proxy

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// degraded is whether the store is away: to read from, then requests pass unrecognised; or to write to, as a full one or
// a replica, then what is new is lost until it is written with a later request. Either is logged once each way.
type degraded struct {
	o               *Options
	reading, writes atomic.Bool  // away
	failed          atomic.Int64 // when a write was lost last, in nanoseconds of Unix time
}

// untried is how long a store counts as taking no writes when no write is tried any more.
const untried = 5 * time.Minute

// CheckStore asks a store that was found away whether it is back. Requests find that out by themselves; a server that gets
// none would count as degraded for good. Degraded tells what came of it.
func (s *Server) CheckStore(ctx context.Context) {
	if s.degraded.reading.Load() {
		if err := s.o.Engine.Reach(ctx); err == nil {
			s.degraded.leave()
		}
	}
	if s.o.Now().UnixNano()-s.degraded.failed.Load() > int64(untried) && s.degraded.writes.CompareAndSwap(true, false) {
		s.o.Log.Info("no write of the store was tried of late")
	}
}

func (d *degraded) enter(err error) {
	d.o.Faults.Lost("resolve")
	if d.reading.CompareAndSwap(false, true) {
		d.o.Log.Error("store away: requests are forwarded as they come", zap.Error(err))
	}
}

func (d *degraded) leave() {
	if d.reading.CompareAndSwap(true, false) {
		d.o.Log.Info("store back")
	}
}

// note counts a write that was lost. The next request of its thread repairs it.
func (d *degraded) note(op string, err error) {
	d.o.Faults.Lost(op)
	level, said := zap.DebugLevel, "store write lost"
	if errors.Is(err, session.ErrUnavailable) {
		d.failed.Store(d.o.Now().UnixNano())
		if d.writes.CompareAndSwap(false, true) {
			level, said = zap.ErrorLevel, "store takes no writes: what is new is written with a later request"
		}
	}
	d.o.Log.Log(level, said, zap.String("op", op), zap.Error(err))
}

// wrote tells of a write that was not lost.
func (d *degraded) wrote() {
	if d.writes.CompareAndSwap(true, false) {
		d.o.Log.Info("store takes writes again")
	}
}
