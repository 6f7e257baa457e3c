package app

import (
	"context"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/journal"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// openJournal opens the journal of requests, which is closed after the data port.
func (a *App) openJournal(store session.Journal) {
	a.journal = journal.New(journal.Options{Store: store, Timeout: a.config.Store.Timeout, Lost: a.metrics.Lost})
	a.onStop("journal", func(ctx context.Context) error {
		if err := a.journal.Close(ctx); err != nil {
			a.log.Warn("the newest records of requests are lost", zap.Error(err))
		}
		return nil
	})
}

// recorded passes what it observes on, and records requests in the journal.
type recorded struct {
	observe.Observer
	journal *journal.Journal
}

func (o recorded) Ended(ctx context.Context, r *proxy.Record) {
	o.Observer.Ended(ctx, r)
	o.journal.Ended(ctx, r)
}
