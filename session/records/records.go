// Package records says what threads, sessions, places, condensations, accounts, notices and settings are in a store, and what may follow what. A
// store itself knows records, logs and index entries only.
//
// A thread is a record with the fields r (the thread as it was appended), l (its length), b (when it was created, which distinguishes it from a
// thread with the same id that was deleted), m (how often it was appended to), c (the list of condensations), k (for a fork, all ancestors whose
// logs it shares), q (the log entry of a pending request for a condensation), p (the prepared condensation), v... (savings), and one s<seq> for
// each summary. Its log e holds the events, and its log x answers and the traces that last. A session is a record with the fields r and v (what
// version r is), m, a log u of the threads for which r has no room, and a log j, its journal. Places and traces are index entries.
package records

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/lru"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// Options say how content is kept.
type Options struct {
	Content bool       // keep payloads of events
	Keys    *seal.Keys // encrypt payloads and summaries; nil to store them in clear
}

// Store is a session.Backend over a store. All methods may be called concurrently.
type Store struct {
	store    store.Store
	content  codec.Content
	sessions lru.Cache[session.SessionID, joined]
	checked  atomic.Bool // a Ping has succeeded

	mu     sync.Mutex
	begins map[string]time.Time // when experiments began
}

var _ session.Backend = (*Store)(nil)

// New returns the sessions of a store, which it closes.
func New(s store.Store, o Options) *Store {
	return &Store{
		store: s, content: codec.NewContent(o.Content, o.Keys),
		sessions: lru.New[session.SessionID, joined](maxKnown), begins: map[string]time.Time{},
	}
}

// Encrypts implements session.Store.
func (s *Store) Encrypts() bool { return s.content.Keys.Seals() }

// Ping implements session.Backend.
func (s *Store) Ping(ctx context.Context) error {
	err := s.store.Ping(ctx)
	if err == nil {
		s.checked.Store(true)
	}
	return err
}

// Close implements session.Store.
func (s *Store) Close() error { return s.store.Close() }

// Compact implements session.Archive. Most stores have nothing to compact.
func (s *Store) Compact(ctx context.Context) error {
	if c, ok := s.store.(interface{ Compact(context.Context) error }); ok {
		return c.Compact(ctx)
	}
	return nil
}

// Buckets returns the rate limits that replicas share in the store, nil if only one process can open it.
func (s *Store) Buckets() session.Buckets {
	shared, _ := s.store.(session.Buckets)
	return shared
}

// The kinds of records.
const (
	kindThread     = 't'
	kindSession    = 's'
	kindAccount    = 'b'
	kindOutbox     = 'o'
	kindExperiment = 'a'
	kindServer     = 'm' // settings and the secret
	kindNames      = 'n' // of a journal's entries
	kindTotals     = 'g'
)

// The kinds of index entries.
const (
	kindPlace = 'p'
	kindTrace = 'i'
)

func threadKey(id session.ThreadID) store.Key {
	return store.Key{Kind: kindThread, Group: string(id), Logs: threadLogs}
}

// sessionKey leaves out the journal, which appends do not touch: what writes the journal extends its life.
func sessionKey(id session.SessionID) store.Key {
	return store.Key{Kind: kindSession, Group: string(id), Logs: string(logThreads)}
}

// journaledKey names a session with its journal.
func journaledKey(id session.SessionID) store.Key {
	key := sessionKey(id)
	key.Logs += string(logJournal)
	return key
}

func entryKey(kind byte, short string) store.EntryKey { return store.EntryKey(string(kind) + short) }

func placeKey(h session.Hash) store.EntryKey { return entryKey(kindPlace, codec.Short(h)) }

func traceKey(h session.Hash) store.EntryKey { return entryKey(kindTrace, codec.Short(h)) }

// one reads one record.
func (s *Store) one(ctx context.Context, key store.Key, fields ...string) (store.Record, error) {
	found, err := s.store.Read(ctx, store.Query{Records: []store.Select{{Key: key, Fields: fields}}})
	if err != nil {
		return store.Record{}, err
	}
	return found.Records[0], nil
}

// change commits parts that need no index entries, and returns ErrNotFound if their conditions do not hold.
func (s *Store) change(ctx context.Context, parts ...store.Part) (store.Result, error) {
	result, err := s.store.Commit(ctx, store.Commit{Parts: parts})
	if err == nil && !result.OK() {
		err = session.ErrNotFound
	}
	return result, err
}

// there is the condition that a thread exists.
func there() store.Cond { return store.Cond{Field: "r", Test: store.Exists} }

func is(field, value string) store.Cond {
	return store.Cond{Field: field, Test: store.Is, Value: value}
}

func set(name, value string) store.Field { return store.Field{Name: name, Value: value} }

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64) // 0 if there is none
	return n
}

// maxTries is how often a change is tried again that was computed from a record which has changed meanwhile.
const maxTries = 100

// errBusy means that a record changed each time before a change of it arrived.
var errBusy = fmt.Errorf("%w: the record changes all the time", session.ErrUnavailable)
