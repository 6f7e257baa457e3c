package app

import (
	"cmp"
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
	log *zap.Logger
	mu  sync.Mutex
	all map[string]*knowledge.Folder
}

// of gives what a tenant's models are told when a person's words call for it.
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
		if s.all == nil {
			s.all = map[string]*knowledge.Folder{}
		}
		s.all[k.Folder] = f
	}
	return engine.Knowledge{Topics: f.Topics, Tokens: cmp.Or(k.MaxTokens, config.DefaultKnowledge)}, nil
}

func (s *shelves) changed(folder string, err error) {
	if err != nil {
		s.log.Error("knowledge not reloaded", zap.String("folder", folder), zap.Error(err))
		return
	}
	s.log.Info("knowledge reloaded", zap.String("folder", folder))
}

// keep closes the folders that no tenant has any more. Requests under way may still read what is in them.
func (s *shelves) keep(tenants []config.Tenant) error {
	named := map[string]bool{}
	for i := range tenants {
		named[tenants[i].Knowledge.Folder] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for path, f := range s.all {
		if !named[path] {
			errs = append(errs, f.Close())
			delete(s.all, path)
		}
	}
	return errors.Join(errs...)
}
