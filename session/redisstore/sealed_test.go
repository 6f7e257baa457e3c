package redisstore_test

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/records"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
	"github.com/dewpoint-proxy/dewpoint/session/seal"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

func TestSealed(t *testing.T) {
	addr := sessiontest.StartRedis(t).Addr
	sessiontest.Sealed(t, func(t *testing.T, keys *seal.Keys) session.Backend {
		return open(t, redisstore.Options{Addrs: []string{addr}, Timeout: 10 * time.Second}, records.Options{Content: true, Keys: keys})
	}, func(t *testing.T) []byte {
		var all []byte
		for key, value := range dump(t, redisstore.Options{Addrs: []string{addr}}, "") {
			all = append(append(all, key...), value...)
		}
		return all
	})
}

// TestSealedIsBoundToItsThread swaps the records of two threads of different tenants in the server.
func TestSealedIsBoundToItsThread(t *testing.T) {
	addr := sessiontest.StartRedis(t).Addr
	s := open(t, redisstore.Options{Addrs: []string{addr}, Timeout: 10 * time.Second}, records.Options{Content: true, Keys: sessiontest.Keys(t, "k")})
	defer s.Close()
	ids := map[session.ThreadID]session.CondensationID{}
	for _, id := range []session.ThreadID{"a", "b"} {
		b := session.Batch{Thread: session.Thread{ID: id, Tenant: string(id), Len: 1}, Events: []session.Event{{Pos: 1, Kind: session.User, Payload: []byte("of " + id)}}}
		must(t, s.Append(t.Context(), b))
		condensation, err := s.Condense(t.Context(), id, session.Condensation{Prefix: 1, Summary: "of " + string(id)})
		must(t, err)
		ids[id] = condensation.ID
	}
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	must(t, c.Rename(t.Context(), "dp:t:{a}/e", "spare").Err())
	must(t, c.Rename(t.Context(), "dp:t:{b}/e", "dp:t:{a}/e").Err())
	must(t, c.Rename(t.Context(), "spare", "dp:t:{b}/e").Err())
	summaries := map[string]string{"dp:t:{a}": c.HGet(t.Context(), "dp:t:{b}", "s2").Val(), "dp:t:{b}": c.HGet(t.Context(), "dp:t:{a}", "s2").Val()}
	for key, text := range summaries {
		if text == "" {
			t.Fatal("there is no summary to exchange")
		}
		must(t, c.HSet(t.Context(), key, "s2", text).Err())
	}
	for thread, id := range ids {
		if text, err := s.Summary(t.Context(), id); !errors.Is(err, session.ErrUnreadable) || text != "" {
			t.Errorf("summary of %s: %q, %v", thread, text, err)
		}
		if all, err := s.Events(t.Context(), thread, 1, 10); err != nil || len(all) != 2 || all[0].Payload != nil {
			t.Errorf("events of %s: %v, %v", thread, all, err)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
