package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/app"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// The models of a stage.
const (
	Model      = "gpt-4o"
	Summariser = "gpt-4o-mini"
)

// Stage is a proxy in front of a fake upstream, both on loopback, with a temporary store.
type Stage struct {
	Upstream *fakeupstream.Server
	App      *app.App
	dir      string
	path     string // of the store
}

// NewStage builds and starts a stage with a configuration, but sets the addresses, the store and the upstream itself. The fake upstream
// also stands in for the models of llms, to which NewStage adds "cheap". Each request waits for its summary, so that the results of a
// replay do not depend on its speed. Stages can share encoders; nil: the stage has its own.
func NewStage(cfg config.Config, up fakeupstream.Options, encoders *tokenize.Registry) (_ *Stage, err error) {
	s := &Stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "dewpoint-"); err != nil {
		return nil, fmt.Errorf("new stage: %w", err)
	}
	if up.IsSummary == nil {
		up.SummariserModels = []string{Summariser}
	}
	s.Upstream = fakeupstream.New(up)
	if err = s.Upstream.Start(); err != nil {
		return nil, fmt.Errorf("new stage: %w", err)
	}
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", ""
	cfg.Upstream.BaseURL = s.Upstream.URL() + "/v1"
	s.path = filepath.Join(s.dir, "stage.db")
	cfg.Store.Type, cfg.Store.Path, cfg.Store.Timeout = config.StoreEmbedded, s.path, time.Minute
	llms := map[string]config.LLM{"cheap": {Model: Summariser}}
	for name, llm := range cfg.LLMs {
		llm.BaseURL = cfg.Upstream.BaseURL
		llms[name] = llm
	}
	cfg.LLMs = llms
	cfg.Limits.StreamKeepAlive = 0 // a stream kept alive begins before its headers can report condensations
	cfg.Condenser, cfg.Tenants = waiting(cfg.Condenser), slices.Clone(cfg.Tenants)
	for i := range cfg.Tenants {
		if c := cfg.Tenants[i].Condenser; c != nil {
			cfg.Tenants[i].Condenser = new(waiting(*c))
		}
	}
	if s.App, err = app.New(&cfg, zap.NewNop(), app.Options{Encoders: encoders}); err != nil {
		return nil, fmt.Errorf("new stage: %w", err)
	}
	s.App.Start()
	return s, nil
}

// waiting returns a condenser for whose summaries requests wait, and which prepares none.
func waiting(c config.Condenser) config.Condenser {
	if c.Wait != "" {
		c.Wait, c.Deadline, c.BackgroundAt = config.WaitDeadline, time.Minute, 0
	}
	c.PerModel = maps.Clone(c.PerModel)
	for name, override := range c.PerModel {
		override.BackgroundAt = nil
		c.PerModel[name] = override
	}
	c.Condensers = slices.Clone(c.Condensers)
	for i := range c.Condensers {
		c.Condensers[i] = waiting(c.Condensers[i])
	}
	return c
}

// URL returns the base URL for an agent.
func (s *Stage) URL() string { return "http://" + s.App.Addr() + "/v1" }

// stop stops the service. A second call does nothing. It first closes the player's idle connections, for which the service would
// wait a second.
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

// CheckLog stops the service and checks that the stage's store has the whole history of a played run, in order and byte for byte,
// whatever was condensed, and a record of each condensation.
func (s *Stage) CheckLog(ctx context.Context, r Report) error {
	if err := s.stop(); err != nil {
		return err
	}
	store, err := boltstore.Open(boltstore.Options{Path: s.path, Content: true})
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	defer func() { _ = store.Close() }()
	thread, err := store.Thread(ctx, session.ThreadID(r.Thread))
	if err != nil {
		return fmt.Errorf("check log: %w", err)
	}
	return checkThread(ctx, store, thread, r.last, r.Condensations)
}

func checkThread(ctx context.Context, store session.Store, t session.Thread, messages []session.Message, condensations int) error {
	pos, logged := 0, 0
	history := session.NewHistory(session.Hash{}, messages)
	for events, err := range session.ReadLog(ctx, store, t.ID, math.MaxInt) {
		if err != nil {
			return fmt.Errorf("check log: %w", err)
		}
		for _, e := range events {
			switch {
			case e.Kind == session.Condensed:
				logged++
			case e.Pos == 0:
			case e.Pos != pos+1 || e.Pos > history.Len() || !bytes.Equal(e.Payload, history.Message(e.Pos).Raw):
				return fmt.Errorf("check log: entry %d is not message %d", e.Seq, pos+1)
			default:
				pos++
			}
		}
	}
	if pos != history.Len() || logged != condensations {
		return fmt.Errorf("check log: %d of %d messages and %d of %d condensations are logged", pos, history.Len(), logged, condensations)
	}
	return nil
}
