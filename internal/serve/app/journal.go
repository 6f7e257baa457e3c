package app

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/account"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/journal"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/observe"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// openJournal opens the journal of requests, which is closed after the data port.
func (a *App) openJournal(store session.Journal) {
	a.journal = journal.New(journal.Options{
		Store: store, Timeout: a.config.Store.Timeout, Lost: a.metrics.Lost, Now: a.options.Now, Missed: a.metrics.Missed,
	})
	a.onStop("journal", func(ctx context.Context) error {
		if err := a.journal.Close(ctx); err != nil {
			a.log.Warn("the newest records of requests are lost", zap.Error(err))
		}
		return nil
	})
}

// ReadTotals reads the totals of all days from that of since to that of until from the configured store. If a proxy has the embedded store, the
// error is a *RunningError.
func ReadTotals(ctx context.Context, cfg *config.Config, since, until time.Time) ([]account.Row, error) {
	if found, err := LookAtStore(ctx, cfg); err != nil || found.New {
		return nil, err // a store that does not exist is not created
	}
	store, err := openStore(cfg, zap.NewNop())
	if err != nil {
		return nil, err
	}
	rows, err := journal.ReadRows(ctx, session.Guard(store, nil), since, journal.Past(until, time.Now()))
	return rows, errors.Join(err, store.Close())
}

// recorded passes what it observes on, and records requests in the journal.
type recorded struct {
	observe.Observer
	journal *journal.Journal
}

func (o recorded) Called(c proxy.OwnCall) {
	o.Observer.Called(c)
	o.journal.Called(c)
}

func (o recorded) Ended(ctx context.Context, r *proxy.Record) {
	o.Observer.Ended(ctx, r)
	o.journal.Ended(ctx, r)
}
