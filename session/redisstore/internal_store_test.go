package redisstore

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// sessions are the sessions of a store.
type sessions struct {
	*records.Store
	under *Store
}

// start opens the sessions of a server, with content.
func start(t testing.TB, o Options) *sessions { return startWith(t, o, records.Options{Content: true}) }

func startWith(t testing.TB, o Options, r records.Options) *sessions {
	t.Helper()
	under := Open(o)
	s := &sessions{records.New(under, r), under}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func threadKey(id session.ThreadID) store.Key {
	return store.Key{Kind: 't', Group: string(id), Logs: "ex"}
}

// The keys of a thread and a session.
func (s *sessions) thread(id session.ThreadID) string       { return s.under.keys.record(threadKey(id)) }
func (s *sessions) log(id session.ThreadID) string          { return s.under.keys.log(threadKey(id), 'e') }
func (s *sessions) left(id session.ThreadID) string         { return s.under.keys.log(threadKey(id), 'x') }
func (s *sessions) threadKeys(id session.ThreadID) []string { return s.under.keys.all(threadKey(id)) }
func (s *sessions) session(id session.SessionID) string {
	return s.under.keys.record(store.Key{Kind: 's', Group: string(id), Logs: "u"})
}
