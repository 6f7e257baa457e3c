package judge

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
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
	proxy    *replay.Proxy
}

// NewStage builds and starts a stage with a configuration, except that it sets the addresses, the store and the upstream itself. The fake
// upstream also serves the models in llms, to which NewStage adds "cheap". Each request waits for its summary. Stages can share encoders; if
// encoders is nil, the stage has its own.
func NewStage(cfg config.Config, up fakeupstream.Options, encoders *tokenize.Registry) (*Stage, error) {
	if up.IsSummary == nil {
		up.SummariserModels = []string{Summariser}
	}
	s := &Stage{Upstream: fakeupstream.New(up)}
	if err := s.Upstream.Start(); err != nil {
		return nil, fmt.Errorf("new stage: %w", err)
	}
	llms := map[string]config.LLM{"cheap": {Model: Summariser}}
	maps.Copy(llms, cfg.LLMs)
	cfg.LLMs = llms
	var err error
	if s.proxy, err = replay.StartProxy(cfg, s.Upstream.URL()+"/v1", encoders); err != nil {
		s.Upstream.Close()
		return nil, fmt.Errorf("new stage: %w", err)
	}
	return s, nil
}

// URL returns the base URL for an agent.
func (s *Stage) URL() string { return s.proxy.URL() }

// Close stops everything and removes the store.
func (s *Stage) Close() error {
	http.DefaultClient.CloseIdleConnections() // the player's, for which the proxy would wait a second
	err := s.proxy.Close()
	s.Upstream.Close()
	return err
}

// stopAndOpen stops the proxy and opens its store.
func (s *Stage) stopAndOpen() (*boltstore.Store, error) {
	http.DefaultClient.CloseIdleConnections()
	if err := s.proxy.Stop(); err != nil {
		return nil, err
	}
	return boltstore.Open(boltstore.Options{Path: s.proxy.StorePath(), Content: true})
}

// CheckLog stops the service and checks that the stage's store has the whole history of a played run, in order and byte for byte,
// whatever was condensed, and a record of each condensation.
func (s *Stage) CheckLog(ctx context.Context, r Report) error {
	store, err := s.stopAndOpen()
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
