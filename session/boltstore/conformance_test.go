package boltstore_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func open(t testing.TB, o boltstore.Options) *boltstore.Store {
	t.Helper()
	s, err := boltstore.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformance(t *testing.T) { conform(t, nil) }

// TestConformanceSealed keeps content encrypted.
func TestConformanceSealed(t *testing.T) { conform(t, sessiontest.Keys(t, "k")) }

func conform(t *testing.T, keys *seal.Keys) {
	paths := map[session.Backend]string{}
	fresh := func(t *testing.T, content bool) session.Backend {
		path := filepath.Join(t.TempDir(), "store.db")
		s := open(t, boltstore.Options{Path: path, Content: content, Keys: keys, TTL: time.Hour, MaxSize: 1 << 30})
		paths[s] = path
		return s
	}
	sessiontest.Run(t, func(t *testing.T) session.Backend { return fresh(t, true) }, sessiontest.Hooks{
		Dump: func(t *testing.T, s session.Backend) map[string]string {
			return boltstore.Dump(t, s.(*boltstore.Store))
		},
		Damage: func(t *testing.T, s session.Backend, id session.ThreadID, seq uint64, change func([]byte) []byte) {
			boltstore.Damage(t, s.(*boltstore.Store), id, seq, change)
		},
		WithoutContent: func(t *testing.T) session.Backend { return fresh(t, false) },
		Reopen: func(t *testing.T, s session.Backend) session.Backend {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return open(t, boltstore.Options{Path: paths[s], Content: true, Keys: keys})
		},
	})
}
