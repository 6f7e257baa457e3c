package main

import (
	"context"
	"os"
	"os/signal"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/app"
)

// ending stops the proxy in order.
type ending struct {
	app      *app.App
	log      *zap.Logger
	shutdown config.Shutdown
	again    chan os.Signal // a second signal cuts the wait short; a third ends the process
}

// run drains the proxy, waits until clients have gone elsewhere, finishes requests under way and closes the store. An
// interrupt comes from the keyboard: there is no balancer to wait for.
func (e ending) run(asked os.Signal) error {
	delay := e.shutdown.Delay
	if asked == os.Interrupt {
		delay = 0
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	e.log.Info("stopping", zap.Duration("delay", delay), zap.Duration("timeout", e.shutdown.Timeout))
	e.app.Drain()
	hurried := make(chan struct{})
	defer func() { <-hurried }()
	go func() {
		defer close(hurried)
		e.hurry(ctx, cancel)
	}()
	wait(ctx, delay)
	limited, over := context.WithTimeout(ctx, e.shutdown.Timeout)
	defer over()
	err := e.app.Stop(limited)
	cancel()
	if err == nil {
		e.log.Info("stopped")
	}
	return err
}

// hurry cuts everything short at the next signal, and no longer handles the one after it.
func (e ending) hurry(ctx context.Context, cancel context.CancelFunc) {
	select {
	case <-ctx.Done():
		return
	case <-e.again:
	}
	signal.Stop(e.again)
	e.log.Info("stopping now: a second signal")
	cancel()
}

func wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
