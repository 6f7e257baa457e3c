package app

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/knowledge"
)

// shelves are the folders of knowledge that are watched, by path.
type shelves struct {
	mu  sync.Mutex
	log *zap.Logger
	all map[string]*knowledge.Folder
}

func newShelves(log *zap.Logger) *shelves {
	return &shelves{log: log, all: map[string]*knowledge.Folder{}}
}

// of gives what a tenant's models are told.
func (s *shelves) of(k config.Knowledge) (engine.Knowledge, error) {
	if k.Folder == "" {
		return engine.Knowledge{}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.all[k.Folder]
	if f == nil {
		var err error
		if f, err = knowledge.Open(k.Folder, func(err error) { s.changed(k.Folder, err) }); err != nil {
			return engine.Knowledge{}, fmt.Errorf("knowledge.folder: %w", err)
		}
		s.all[k.Folder] = f
	}
	tokens := k.MaxTokens
	if tokens == 0 {
		tokens = config.DefaultKnowledge
	}
	return engine.Knowledge{Topics: f.Topics, Tokens: tokens}, nil
}

func (s *shelves) changed(folder string, err error) {
	if err != nil {
		s.log.Error("knowledge not reloaded", zap.String("folder", folder), zap.Error(err))
		return
	}
	s.log.Info("knowledge reloaded", zap.String("folder", folder))
}

// keep closes the folders that a configuration does not name. Requests under way may still read what is in them.
func (s *shelves) keep(cfg *config.Config) {
	named := map[string]bool{cfg.Knowledge.Folder: true}
	for _, t := range cfg.Tenants {
		named[t.Knowledge.Folder] = true
	}
	_ = s.close(func(folder string) bool { return !named[folder] }) // it is only watched
}

func (s *shelves) close(which func(folder string) bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for path, f := range s.all {
		if which(path) {
			errs = append(errs, f.Close())
			delete(s.all, path)
		}
	}
	return errors.Join(errs...)
}

func (s *shelves) stop(context.Context) error { return s.close(func(string) bool { return true }) }
