package app

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/proxy"
)

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
