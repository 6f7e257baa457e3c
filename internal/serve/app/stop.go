package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/proxy"
)

// lifecycle is a stack of clean-ups. Each is registered where its resource is created; they run in reverse order.
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

// onStopFunc registers a clean-up that neither fails nor waits.
func (l *lifecycle) onStopFunc(name string, fn func()) {
	l.onStop(name, func(context.Context) error {
		fn()
		return nil
	})
}

// Stop shuts the service down: it runs all clean-ups, even if some of them fail. It waits for requests in progress until ctx
// ends, then cuts them off and logs that. The store is written in either case. A second call does nothing.
func (l *lifecycle) Stop(ctx context.Context) error {
	var errs []error
	for _, s := range slices.Backward(l.stops) {
		if err := s.fn(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", s.name, err))
		}
	}
	l.stops = nil
	return errors.Join(errs...)
}

// adminGrace is how long requests on the admin port may take after everything else has stopped.
const adminGrace = time.Second

// Drain announces that the service is about to stop. The service is no longer ready, and clients are asked to reconnect, so
// that a load balancer can send them elsewhere. Requests are still served. A second call does nothing.
func (a *App) Drain() {
	a.health.draining.Store(true)
	a.server.Drain()
}

// stopServer drains the data port. It cuts off requests that have not finished when ctx ends.
func (a *App) stopServer(ctx context.Context) error {
	a.Drain()
	err := a.server.Shutdown(ctx)
	if errors.Is(err, proxy.ErrCut) {
		a.log.Warn("stopping: some requests did not finish in time", zap.Error(err))
		return nil
	}
	return err
}

// stopCondensations waits for condensations that have outlived their requests. If ctx ends, they are cut off, and the next
// request of the thread starts them again.
func (a *App) stopCondensations(ctx context.Context) error {
	if err := a.engine.Close(ctx); err != nil {
		a.log.Warn("stopping: a condensation was cut off", zap.Error(err))
	}
	return nil
}

// stopAdmin closes the admin port, which is served until the data port is empty.
func (a *App) stopAdmin() error {
	if a.admin == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), adminGrace)
	defer cancel()
	if a.admin.Shutdown(ctx) == nil {
		return nil
	}
	return a.admin.Close()
}

// ignoreClosed drops the error of closing a listener that is already closed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
