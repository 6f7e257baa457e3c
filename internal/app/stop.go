package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// lifecycle is a stack of clean-ups, each registered where its resource is made, run last in first out.
type lifecycle struct {
	stops []stop
}

type stop struct {
	name string
	fn   func(context.Context) error
}

func (l *lifecycle) onStop(name string, fn func(context.Context) error) {
	l.stops = append(l.stops, stop{name, fn})
}

// onEnd registers what cannot fail.
func (l *lifecycle) onEnd(name string, fn func()) {
	l.onStop(name, func(context.Context) error {
		fn()
		return nil
	})
}

// stop runs all clean-ups, also after one failed. A second call does nothing.
func (l *lifecycle) stop(ctx context.Context) error {
	var errs []error
	for i := len(l.stops) - 1; i >= 0; i-- {
		if err := l.stops[i].fn(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", l.stops[i].name, err))
		}
	}
	l.stops = nil
	return errors.Join(errs...)
}

// adminLeave is how long those who ask the admin port have for their answers when all else has ended.
const adminLeave = time.Second

// Drain says that the service is about to stop: it is not ready any more, and clients are told to connect anew, which a
// balancer then has them do elsewhere. Requests are served as before. A second call does nothing.
func (a *App) Drain() {
	a.health.draining.Store(true)
	a.server.Drain()
}

// drained drains the data port.
func (a *App) drained(ctx context.Context) error {
	a.Drain()
	err := a.server.Shutdown(ctx)
	if errors.Is(err, proxy.ErrCut) {
		a.log.Warn("stopping: not everything came to its end in time", zap.Error(err))
		return nil
	}
	return err
}

// stopCondensations waits for the condensations that have outlived their requests.
func (a *App) stopCondensations(ctx context.Context) error {
	if err := a.engine.Close(ctx); err != nil {
		a.log.Warn("stopping: a condensation was cut off", zap.Error(err))
	}
	return nil // the next request of its thread begins it anew
}

// stopAdmin closes the admin port, which is served until the data port is empty.
func (a *App) stopAdmin() error {
	if a.admin == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminLeave)
	defer cancel()
	if a.admin.Shutdown(ctx) == nil {
		return nil
	}
	return a.admin.Close()
}

func closed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
