package admin_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	bolt "go.etcd.io/bbolt"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// contents returns every record of the service's store but the totals, which are of no session. With the embedded store it compacts the file and restarts the service.
func (r *rig) contents() map[string]string {
	r.t.Helper()
	r.call(http.MethodGet, "/api/v1/requests/none") // writes what is recorded
	all := map[string]string{}
	if r.cfg.Store.Type == "redis" {
		client := redis.NewClient(&redis.Options{Addr: r.cfg.Store.Redis.Addrs[0]})
		defer client.Close()
		keys, err := client.Keys(r.t.Context(), "*").Result()
		must(r.t, err)
		for _, key := range keys {
			if strings.Contains(key, auditRecord) || strings.HasPrefix(key, "dp:g:") {
				continue
			}
			var value any
			switch kind := client.Type(r.t.Context(), key).Val(); kind {
			case "hash":
				value, err = client.HGetAll(r.t.Context(), key).Result()
			case "list":
				value, err = client.LRange(r.t.Context(), key, 0, -1).Result()
			default:
				value, err = client.Get(r.t.Context(), key).Result()
			}
			must(r.t, err)
			all[key] = fmt.Sprintf("%q", value)
		}
		return all
	}
	if a := r.call(http.MethodPost, "/api/v1/compact"); a.StatusCode != http.StatusNoContent {
		r.t.Errorf("compact: %d %s", a.StatusCode, a.body)
	}
	r.stop()
	db, err := bolt.Open(r.cfg.Store.Path, 0o600, &bolt.Options{ReadOnly: true})
	must(r.t, err)
	audits := uint64(0) // size of the audit log
	must(r.t, db.View(func(tx *bolt.Tx) error {
		return tx.ForEach(func(bucket []byte, b *bolt.Bucket) error {
			return b.ForEach(func(name, value []byte) error {
				if string(bucket) == "g" { // totals, which are of no session and not counted
					return nil
				}
				if bytes.Contains(name, []byte(auditRecord)) {
					audits += 2 * uint64(16+len(name)+len(value)) // as the store counts it
					return nil
				}
				all[string(bucket)+string(name)] = string(value)
				return nil
			})
		})
	}))
	must(r.t, db.Close())
	all[sizesRecord] = fmt.Sprint(binary.BigEndian.Uint64([]byte(all[sizesRecord])) - audits)
	r.app = nil
	r.restart()
	return all
}

// The audit log is meant to outlast what was deleted, so it is left out of what is compared.
const (
	auditRecord = "audit-"
	sizesRecord = "msizes" // the embedded store's count of its own size
)

// same checks that the store holds exactly the given records, apart from the audit log.
func (r *rig) same(before map[string]string) {
	r.t.Helper()
	now := r.contents()
	for key, value := range now {
		if before[key] != value {
			r.t.Errorf("left or changed: %q = %.400q, was %.400q", key, value, before[key])
		}
	}
	if len(now) != len(before) {
		r.t.Errorf("%d records, there were %d", len(now), len(before))
	}
}

// TestDeleteLeavesNothing deletes a whole agent run with forks, side requests, tool calls, answers, sub-agents' keys and
// condensations. It checks that the store is then as it was before, and that the next request starts a new session.
func TestDeleteLeavesNothing(t *testing.T) {
	for name, change := range stores() {
		t.Run(name, func(t *testing.T) {
			r := start(t, change(t))
			r.ask(turns("planes", 3), "X-Dewpoint-Session", "stays") // creates the store's secret as well
			before := r.contents()
			key := []string{"X-Dewpoint-Session", "goes"}
			r.up.Script(fakeupstream.Answer{Content: "A long first answer with a line that leaves a trace of its own.\nAnd another line, which is long enough as well to do so."})
			run := toolRun(10)
			p := r.grow(run, 2, key...)
			r.ask(append(run[:12:12], say("user", "Rather do something else.")), key...)
			r.ask(append(run[:len(run):len(run)], say("user", "Your task is to create a detailed summary of the conversation so far")), key...)
			r.ask([]string{say("system", "You are a title generator."), say("user", "Generate a title for this conversation: files")}, key...)
			r.condense(p)
			var one struct{ Threads []threadInfo }
			r.get("/api/v1/sessions/"+p.session, &one)
			if len(one.Threads) < 4 || one.Threads[0].Condensations == 0 || len(r.contents()) < len(before)+20 {
				t.Fatalf("the session is too small to prove anything: %+v", one)
			}
			if a := r.call(http.MethodDelete, "/api/v1/sessions/"+p.session); a.StatusCode != http.StatusNoContent {
				t.Fatalf("delete: %d %s", a.StatusCode, a.body)
			}
			r.call(http.MethodGet, "/api/v1/sessions/"+p.session).fails(t, http.StatusNotFound, "session_not_found")
			r.call(http.MethodGet, p.url("/events")).fails(t, http.StatusNotFound, "thread_not_found")
			r.call(http.MethodDelete, "/api/v1/sessions/"+p.session).fails(t, http.StatusNotFound, "session_not_found")
			r.same(before)

			calls := r.up.SummariserCalls()
			anew := r.ask(run[:20], key...)
			var thread threadInfo
			r.get(anew.url(""), &thread)
			if thread.Length != 19 || thread.Condensations == 0 || r.up.SummariserCalls() == calls {
				t.Errorf("it did not begin anew: %+v", thread)
			}
			r.compare(anew)
			r.call(http.MethodDelete, "/api/v1/sessions/"+anew.session)
			r.same(before)
		})
	}
}

// TestDeleteDuringRequests checks that sessions written by concurrent requests are complete and listed, and that
// nothing is left once they are deleted as well.
func TestDeleteDuringRequests(t *testing.T) {
	quick.Skip(t)
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	for name, change := range stores() {
		t.Run(name, func(t *testing.T) {
			r := start(t, change(t))
			r.ask(turns("planes", 1), "X-Dewpoint-Session", "stays")
			before := r.contents()
			for round := range rounds {
				p := r.grow(turns("ships", 11), 2, "X-Dewpoint-Session", "goes")
				var asking sync.WaitGroup
				for i := range 4 {
					asking.Go(func() {
						more := turns("ships", 19)
						for n := 12; n <= len(more); n += 2 {
							r.ask(append(more[:n-1:n-1], say("user", fmt.Sprintf("question %d of %d", n, i))), "X-Dewpoint-Session", "goes")
						}
					})
				}
				for range 3 {
					r.call(http.MethodDelete, "/api/v1/sessions/"+p.session)
				}
				asking.Wait()
				r.checkWhole()
				r.deleteKey("goes")
				if r.same(before); t.Failed() {
					t.Fatalf("round %d", round)
				}
			}
		})
	}
}

// checkWhole checks that every listed thread can be read completely.
func (r *rig) checkWhole() {
	r.t.Helper()
	var page sessionPage
	r.get("/api/v1/sessions?limit=500", &page)
	for _, s := range page.Sessions {
		var one struct{ Threads []threadInfo }
		r.get("/api/v1/sessions/"+s.ID, &one)
		for _, thread := range one.Threads {
			r.get(place{session: s.ID, thread: thread.ID}.url("/view"), new(any))
			r.get(place{session: s.ID, thread: thread.ID}.url("/condensations"), new(any))
		}
	}
}

// deleteKey deletes all sessions with a session key.
func (r *rig) deleteKey(key string) {
	r.t.Helper()
	var page sessionPage
	r.get("/api/v1/sessions?limit=500&key="+key, &page)
	for _, s := range page.Sessions {
		if a := r.call(http.MethodDelete, "/api/v1/sessions/"+s.ID); a.StatusCode != http.StatusNoContent {
			r.t.Errorf("delete: %d %s", a.StatusCode, a.body)
		}
	}
}

// TestDeletedSummaryIsNotShownAgain checks that a replica that has a deleted session's summary in memory does not use it for
// a new session with the same IDs.
func TestDeletedSummaryIsNotShownAgain(t *testing.T) {
	change := stores()["redis"](t)
	one := start(t, change)
	two := start(t, change)
	conversation := turns("ships", 13)
	p := one.grow(conversation[:12], 2)
	two.ask(conversation) // reads the summary
	one.call(http.MethodDelete, "/api/v1/sessions/"+p.session)
	one.up.Script(fakeupstream.Answer{Content: "Noted."})
	again := one.grow(conversation[:12], 4) // different requests: another summary under the same ID
	two.ask(conversation)
	if again.thread != p.thread {
		t.Fatalf("thread %s, it was %s", again.thread, p.thread)
	}
	two.compare(again)
}
