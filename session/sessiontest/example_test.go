package sessiontest_test

import (
	"path/filepath"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// A store's own test calls Run. Hooks are the operations that only the store's package can provide.
func ExampleRun() {
	at := func(t *testing.T, path string, content bool) session.Backend {
		store, err := boltstore.Open(boltstore.Options{Path: path, Content: content})
		if err != nil {
			t.Fatal(err)
		}
		return store
	}
	paths := map[session.Backend]string{} // where each is, to be opened again
	_ = func(t *testing.T) {              // this is TestConformance
		open := func(t *testing.T) session.Backend {
			path := filepath.Join(t.TempDir(), "dewpoint.db")
			store := at(t, path, true)
			paths[store] = path
			return store
		}
		sessiontest.Run(t, open, sessiontest.Hooks{
			Reopen: func(t *testing.T, s session.Backend) session.Backend {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				return at(t, paths[s], true)
			},
			WithoutContent: func(t *testing.T) session.Backend { return at(t, filepath.Join(t.TempDir(), "dewpoint.db"), false) },
		})
	}
}
