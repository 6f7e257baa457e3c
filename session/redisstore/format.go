package redisstore

import (
	"context"
	"errors"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore/internal/nodes"
)

// errFormer means that the keys are of an earlier version.
var errFormer = errors.New("the keys in Redis are of an earlier version of dewpoint, which this one cannot read: delete them, or use another database")

// A check for keys of an earlier version looks at some keys only. If there are such keys, almost all of them are places and traces.
const (
	formatScans = 4   // on each server
	formatCount = 250 // approximate number of keys that one SCAN looks at
)

// formerHash is the length of the hash in the keys of places and traces of the version before. Those of this one have codec.ShortLen bytes.
const formerHash = len(session.Hash{})

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

// hasFormer looks for the secret of the version before and for its places and traces, whose keys are longer.
func (s *Store) hasFormer(ctx context.Context) (bool, error) {
	if n, err := s.client.Exists(ctx, s.keys.formerSecret()).Result(); err != nil || n > 0 {
		return n > 0, err
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

// former returns a pattern for the keys of places and traces of the version before.
func (k keys) former() string { return k.pattern() + "[cx]:" + strings.Repeat("?", formerHash) }
