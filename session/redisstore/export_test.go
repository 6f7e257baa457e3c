package redisstore

import (
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/store"
)

// Hasten makes Forget wait less for late writes, which in tests go over loopback.
func Hasten(s *Store) { s.lateWrites = 20 * time.Millisecond }

// Life returns how long a record and its logs will be kept.
func Life(t *testing.T, s store.Store, key store.Key) (life time.Duration) {
	t.Helper()
	under := s.(*Store)
	for i, name := range under.keys.all(key) {
		left, err := under.client.PTTL(t.Context(), name).Result()
		must(t, err)
		switch {
		case i == 0:
			life = left
		case left != -2 && max(life-left, left-life) > time.Second: // not -2, for which there is no log
			t.Errorf("%q is kept for %v, its record for %v", name, left, life)
		}
	}
	return life
}
