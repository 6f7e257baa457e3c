package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// sessionsShown is what the admin API lists of sessions, and of one.
type sessionsShown struct {
	Sessions []sessionShown
	Deleted  int
}

type sessionShown struct {
	ID, Key  string
	Names    []string
	Requests int
}

type sessionDetailShown struct {
	Threads []struct {
		ID, Parent, Purpose string
		Requests            int
	}
}

// askAdmin calls the admin API and decodes its answer.
func askAdmin[T any](p *process, method, path string) (answer T) {
	p.t.Helper()
	ok(p.t, json.Unmarshal(p.administer(method, path, http.StatusOK), &answer))
	return answer
}

// sessionBy waits until the log of the session with a key has a number of requests, and returns the session.
func sessionBy(p *process, key string, requests int) (found sessionShown) {
	p.t.Helper()
	sessiontest.Eventually(p.t, "the requests are logged", func() error {
		all := askAdmin[sessionsShown](p, http.MethodGet, "/sessions?key="+key).Sessions
		if len(all) != 1 || all[0].Requests != requests {
			return fmt.Errorf("by %s: %+v", key, all)
		}
		found = all[0]
		return nil
	})
	return found
}

// TestASessionKeepsItsKey: a session can be found and deleted by the key that began it and by those of its sub-agents, whichever key the latest
// request had.
func TestASessionKeepsItsKey(t *testing.T) {
	t.Parallel()
	redis := inRedis(sessiontest.StartRedis(t).Addr)
	for name, store := range map[string]string{"embedded": embedded(newStore(t)), "redis": redis} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{})
			p := proxyTo(t, s.url, store, "", operatorToken+"=an-operators-token")
			say := func(n int, header http.Header) string {
				t.Helper()
				var history []json.RawMessage
				for i := range n {
					history = append(history, spoken(i))
				}
				a := send(t, p, body(history), header)
				ok(t, a.finish())
				return a.Header.Get("X-Dewpoint-Thread")
			}
			main := http.Header{"X-Dewpoint-Session": {"S1"}}
			child := http.Header{"X-Dewpoint-Session": {"C1"}, "X-Parent-Session-Id": {"S1"}}
			for _, by := range []string{"S1", "C1"} {
				first := say(1, main)
				say(3, main)
				sessionBy(p, "S1", 2)
				other := say(1, child)
				say(3, child)
				say(5, child)
				found := sessionBy(p, by, 5)
				if found.Key != "S1" || !slices.Equal(found.Names, []string{"C1"}) {
					t.Errorf("by %s: %+v", by, found)
				}
				one := askAdmin[sessionDetailShown](p, http.MethodGet, "/sessions/"+found.ID)
				if len(one.Threads) != 2 {
					t.Fatalf("%+v", one)
				}
				if m, c := one.Threads[0], one.Threads[1]; m.ID != first || m.Parent != "" || m.Requests != 2 ||
					c.ID != other || c.Parent != first || c.Requests != 3 || c.Purpose != "main" {
					t.Errorf("threads %+v", one.Threads)
				}
				if gone := askAdmin[sessionsShown](p, http.MethodDelete, "/sessions?key="+by); gone.Deleted != 1 {
					t.Errorf("by %s: %d deleted", by, gone.Deleted)
				}
				if left := askAdmin[sessionsShown](p, http.MethodGet, "/sessions").Sessions; len(left) > 0 {
					t.Errorf("left %+v", left)
				}
			}
		})
	}
}
