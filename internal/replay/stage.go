package replay

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/app"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// The models of a stage.
const (
	Model      = "gpt-4o"
	Summariser = "gpt-4o-mini"
)

// Stage is a proxy of its own in front of a fake upstream, both on loopback, with a store that goes when it is closed.
type Stage struct {
	Upstream *fakeupstream.Server
	App      *app.App
	dir      string
	path     string // of the store
}

// NewStage builds and starts a stage. The configuration's condenser and tenants are used; where it listens, stores and
// forwards to is the stage's. Its summariser is the fake upstream's stand-in, and each request waits for it: what a replay shows does not
// depend on how fast it is played.
func NewStage(cfg config.Config, up fakeupstream.Options) (_ *Stage, err error) {
	s := &Stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "dewpoint-"); err != nil {
		return nil, fmt.Errorf("new stage: %w", err)
	}
	up.SummariserModels = []string{Summariser}
	s.Upstream = fakeupstream.New(up)
	if err = s.Upstream.Start(); err != nil {
		return nil, fmt.Errorf("new stage: %w", err)
	}
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", ""
	cfg.Upstream.BaseURL = s.Upstream.URL() + "/v1"
	s.path = filepath.Join(s.dir, "stage.db")
	cfg.Store.Type, cfg.Store.Path = config.StoreEmbedded, s.path
	cfg.LLMs = map[string]config.LLM{"cheap": {Model: Summariser}}
	cfg.Limits.StreamKeepAlive = 0 // a stream that is kept alive has begun before its headers can say what was done
	cfg.Condenser, cfg.Tenants = waiting(cfg.Condenser), slices.Clone(cfg.Tenants)
	for i := range cfg.Tenants {
		if c := cfg.Tenants[i].Condenser; c != nil {
			waits := waiting(*c)
			cfg.Tenants[i].Condenser = &waits
		}
	}
	if s.App, err = app.New(&cfg, zap.NewNop(), app.Options{StoreWait: time.Minute}); err != nil {
		return nil, fmt.Errorf("new stage: %w", err)
	}
	s.App.Start()
	return s, nil
}

// waiting is a condenser whose summaries requests wait for, and of which none is prepared.
func waiting(c config.Condenser) config.Condenser {
	if c.Wait != "" {
		c.Wait, c.BackgroundAt = config.WaitDeadline, 0
	}
	c.Condensers = slices.Clone(c.Condensers)
	for i := range c.Condensers {
		c.Condensers[i] = waiting(c.Condensers[i])
	}
	return c
}

// URL is the base URL for an agent.
func (s *Stage) URL() string { return "http://" + s.App.Addr() + "/v1" }

// stop stops the service; a second call does nothing. The connections of the agents that were played go first: the service waits a second
// for those that are kept.
func (s *Stage) stop() error {
	http.DefaultClient.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return s.App.Stop(ctx)
}

// Close stops everything and removes the store.
func (s *Stage) Close() error {
	var errs []error
	if s.App != nil {
		errs = append(errs, s.stop())
	}
	if s.Upstream != nil {
		s.Upstream.Close()
	}
	if s.dir != "" {
		errs = append(errs, os.RemoveAll(s.dir))
	}
	return errors.Join(errs...)
}
