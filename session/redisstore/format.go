package redisstore

import (
	"context"
	"errors"

	"github.com/dewpoint-proxy/dewpoint/session/redisstore/internal/nodes"
)

// errFormer means that the keys are of an earlier version.
var errFormer = errors.New("the keys in Redis are of an earlier version of dewpoint, which this one cannot read: delete them, or use another database")

// A check for keys of an earlier version looks at some keys only. If there are such keys, almost all of them are places and traces.
const (
	formatScans = 4   // on each server
	formatCount = 250 // approximate number of keys that one SCAN looks at
)

// checkFormat returns errFormer if the server has keys of an earlier version. Once it has found none, it does not look again. It needs no secret
// in Redis, because there is none if the secret is configured.
func (s *Store) checkFormat(ctx context.Context) error {
	if s.checked.Load() {
		return nil
	}
	former, err := s.hasFormer(ctx)
	if err == nil && former {
		err = errFormer
	}
	s.checked.Store(err == nil)
	return err
}

// hasFormer looks for the secrets of earlier versions and for their places and traces.
func (s *Store) hasFormer(ctx context.Context) (bool, error) {
	for _, secret := range s.keys.formerSecrets() {
		if n, err := s.client.Exists(ctx, secret).Result(); err != nil || n > 0 {
			return n > 0, err
		}
	}
	masters, err := nodes.Masters(ctx, s.client)
	for _, node := range masters {
		var keys []string
		cursor := uint64(0)
		for range formatScans {
			if keys, cursor, err = node.Client.Scan(ctx, cursor, s.keys.former(), formatCount).Result(); err != nil || len(keys) > 0 {
				return len(keys) > 0, err
			}
			if cursor == 0 {
				break
			}
		}
	}
	return false, err
}
