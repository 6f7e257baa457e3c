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

// open returns the knowledge that a tenant's configuration names at key. It starts watching folders that are new.
func (k *knowledgeFolders) open(key string, c config.Knowledge) (engine.Knowledge, error) {
	out := engine.Knowledge{Tokens: cmp.Or(c.MaxTokens, config.DefaultKnowledge)}
	var errs []error
	if c.Folder != "" {
		f, err := k.folder(key, c.Folder)
		if err != nil {
			errs = append(errs, err)
		} else {
			out.Topics = f.Topics
		}
	}
	for i, set := range c.Also {
		f, err := k.folder(fmt.Sprintf("%s.also[%d]", key, i), set.Folder)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		name, value := set.HeaderValue()
		out.Also = append(out.Also, engine.KnowledgeSet{Topics: f.Topics, Header: name, Value: value, Sessions: set.Sessions})
	}
	return out, errors.Join(errs...)
}

// folder returns a folder that the section at key names. It starts watching the folder if that is new.
func (k *knowledgeFolders) folder(key, path string) (*knowledge.Folder, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f := k.byPath[path]; f != nil {
		return f, nil
	}
	f, err := knowledge.Open(path, func(err error) { k.logReload(path, err) })
	if err != nil {
		return nil, fmt.Errorf("%s.folder: %w: correct the folder, or name another", key, err)
	}
	k.byPath[path] = f
	return f, nil
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
		for _, set := range tenants[i].Knowledge.Also {
			used[set.Folder] = true
		}
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
