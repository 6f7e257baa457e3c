package app

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// tokenCounters counts tokens in the encoding that the configuration gives each model.
type tokenCounters struct {
	*tokenize.Calibration
	config   atomic.Pointer[config.Config] // in force
	encoders *tokenize.Registry
}

// Counter returns the model's counter. It returns a conservative estimator if the vocabulary cannot be loaded.
func (t *tokenCounters) Counter(model string) engine.Counter {
	m, _ := t.config.Load().ModelFor(model)
	e, err := t.encoders.Encoder(m.Encoding)
	if err != nil {
		e = &tokenize.Encoder{}
	}
	return counter{e}
}

type counter struct{ *tokenize.Encoder }

func (c counter) Encoding() string  { return c.Name() }
func (c counter) Text(s string) int { return c.Count(s) }

// lazyRegistry opens the session registry once the store answers, so that the server can start while Redis is unavailable.
type lazyRegistry struct {
	store session.Backend

	mu       sync.Mutex
	secret   session.Secret // as configured; empty: the store keeps one, which readSecret reads
	registry *session.Registry
}

// Registry returns the registry, its store and the secret. Until the store has answered once, each request asks it separately, so that a slow
// failure does not delay the other requests.
func (s *lazyRegistry) Registry(ctx context.Context) (*session.Registry, session.Store, session.Secret, error) {
	registry, secret := s.current()
	if registry != nil {
		return registry, s.store, secret, nil
	}
	secret, err := s.readSecret(ctx, secret)
	if err != nil {
		return nil, nil, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.registry == nil {
		s.secret, s.registry = secret, session.NewRegistry(s.store, secret)
	}
	return s.registry, s.store, s.secret, nil
}

// current returns the registry, nil before it is opened, and its secret.
func (s *lazyRegistry) current() (*session.Registry, session.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.registry, s.secret
}

// follow adopts the store's secret if it differs from the registry's, and reports whether it did. If the store has lost the secret, follow
// writes the registry's secret to it. Turns in progress keep the registry that they began with.
func (s *lazyRegistry) follow(ctx context.Context, store session.Store) (adopted bool, err error) {
	registry, own := s.current()
	if registry == nil {
		return false, nil
	}
	secret, err := store.Secret(ctx, own)
	if err != nil || bytes.Equal(secret, own) {
		return false, err // it names the operation
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secret, s.registry = secret, session.NewRegistry(s.store, secret)
	return true, nil
}

// readSecret returns the configured secret, or without one the store's. It makes sure that the store can be used: Ping and Secret refuse one of an
// earlier version.
func (s *lazyRegistry) readSecret(ctx context.Context, configured session.Secret) (session.Secret, error) {
	if len(configured) > 0 {
		return configured, s.store.Ping(ctx)
	}
	proposed := make(session.Secret, 32)
	_, _ = rand.Read(proposed) // cannot fail
	secret, err := s.store.Secret(ctx, proposed)
	if err != nil {
		return nil, fmt.Errorf("read secret: %w", err)
	}
	return secret, nil
}
