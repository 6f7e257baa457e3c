package memory

import (
	"fmt"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// Dump returns everything that the store keeps, by key.
func (s *Store) Dump() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]string{}
	for key, r := range s.records {
		for name, value := range r.fields {
			all[fmt.Sprintf("%q %s", key, name)] = value
		}
		for log, entries := range r.logs {
			for i, e := range entries {
				all[fmt.Sprintf("%q %c %d", key, log, i)] = e
			}
		}
	}
	for key, value := range s.entries {
		all[string(key)] = value
	}
	return all
}

// Change makes change replace an entry of a log, for tests of damage.
func (s *Store) Change(key store.Key, log byte, number uint64, change func([]byte) []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := s.records[plain(key)].logs[log]
	entries[number-1] = string(change([]byte(entries[number-1])))
}

// TTL is the life of a record that has none of its own.
const TTL = time.Hour

// Life returns how long a record will be kept.
func (s *Store) Life(key store.Key) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.records[plain(key)].until)
}
