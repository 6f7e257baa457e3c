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

// knowledgeFolders holds the watched folders of knowledge. Tenants may share a folder.
type knowledgeFolders struct {
	log    *zap.Logger
	mu     sync.Mutex
	byPath map[string]*knowledge.Folder
}

// open returns the knowledge that a tenant's configuration names at key. It starts watching the folder if that is new.
func (k *knowledgeFolders) open(key string, c config.Knowledge) (engine.Knowledge, error) {
	if c.Folder == "" {
		return engine.Knowledge{}, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	f := k.byPath[c.Folder]
	if f == nil {
		var err error
		if f, err = knowledge.Open(c.Folder, func(err error) { k.logReload(c.Folder, err) }); err != nil {
			return engine.Knowledge{}, fmt.Errorf("%s.folder: %w: correct the folder, or name another", key, err)
		}
		k.byPath[c.Folder] = f
	}
	return engine.Knowledge{Topics: f.Topics, Tokens: cmp.Or(c.MaxTokens, config.DefaultKnowledge)}, nil
}

func (k *knowledgeFolders) logReload(folder string, err error) {
	if err != nil {
		k.log.Error("knowledge not reloaded", zap.String("folder", folder), zap.Error(err))
		return
	}
	k.log.Info("knowledge reloaded", zap.String("folder", folder))
}

// closeUnused closes the folders that none of the tenants uses. Requests in progress can still read their topics.
func (k *knowledgeFolders) closeUnused(tenants []config.Tenant) error {
	used := map[string]bool{}
	for i := range tenants {
		used[tenants[i].Knowledge.Folder] = true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	var errs []error
	for path, f := range k.byPath {
		if !used[path] {
			errs = append(errs, f.Close())
			delete(k.byPath, path)
		}
	}
	return errors.Join(errs...)
}
