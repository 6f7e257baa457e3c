package proxy

import (
	"sync/atomic"

	"go.uber.org/zap"
)

// degraded is whether the store is away. Requests pass meanwhile, unrecognised; it is logged once each way.
type degraded struct {
	log     *zap.Logger
	metrics *Metrics
	away    atomic.Bool
}

func (d *degraded) enter(err error) {
	d.metrics.unrecognised()
	if !d.away.Swap(true) {
		d.metrics.degraded(true)
		d.log.Error("store away: requests are forwarded as they come", zap.Error(err))
	}
}

func (d *degraded) leave() {
	if d.away.Load() && d.away.Swap(false) {
		d.metrics.degraded(false)
		d.log.Info("store back")
	}
}

// note counts a write that was lost. The next request of its thread repairs it.
func (d *degraded) note(op string, err error) {
	d.metrics.lost(op)
	d.log.Debug("store write lost", zap.String("op", op), zap.Error(err))
}
