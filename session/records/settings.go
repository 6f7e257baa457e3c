package records

import (
	"context"
	"errors"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// SecretKey and SettingsKey are the records of the server. They never expire.
var (
	SecretKey   = store.Key{Kind: kindServer, Group: "secret"}
	SettingsKey = store.Key{Kind: kindServer, Group: "settings"}
)

// SecretField is the only field of the secret.
const SecretField = "v"

// Secret implements session.Store. It returns an existing secret even if the store refuses writes.
func (s *Store) Secret(ctx context.Context, proposed session.Secret) (session.Secret, error) {
	if len(proposed) == 0 {
		return nil, errors.New("the proposed secret is empty")
	}
	if !s.checked.Load() { // Ping finds out whether the store is of this version
		if err := s.Ping(ctx); err != nil {
			return nil, err
		}
	}
	result, failed := s.store.Commit(ctx, store.Commit{
		Parts:  []store.Part{{Key: SecretKey, New: []store.Field{set(SecretField, string(proposed))}, Keep: store.Forever}},
		Return: []string{SecretField},
	})
	if failed == nil {
		return session.Secret(result.Fields[SecretField]), nil
	}
	rec, err := s.one(ctx, SecretKey, SecretField)
	if err != nil || !rec.Exists() {
		return nil, failed
	}
	return session.Secret(rec.Fields[SecretField]), nil
}

// Set implements session.Archive.
func (s *Store) Set(ctx context.Context, name string, value []byte) error {
	_, err := s.change(ctx, store.Part{Key: SettingsKey, Set: []store.Field{set(name, string(value))}, Keep: store.Forever})
	return err
}

// Settings implements session.Archive.
func (s *Store) Settings(ctx context.Context) (map[string][]byte, error) {
	rec, err := s.one(ctx, SettingsKey)
	all := make(map[string][]byte, len(rec.Fields))
	for name, value := range rec.Fields {
		all[name] = []byte(value)
	}
	return all, err
}
