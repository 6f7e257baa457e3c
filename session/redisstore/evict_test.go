package redisstore

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// told returns a history made of words: u.. is a user message, g.. an answer.
func told(words string) session.Query {
	scope := session.Scope{Tenant: "acme"}
	var messages []session.Message
	for _, w := range strings.Fields(words) {
		kind := session.Agent
		if w[0] == 'u' {
			kind = session.User
		}
		messages = append(messages, session.Message{Kind: kind, Raw: []byte(w), Digest: sha256.Sum256([]byte(w))})
	}
	return session.Query{Scope: scope, Purpose: session.PurposeMain, History: session.NewHistory(session.Secret("secret").Seed(scope), messages)}
}

// replica is a process that serves requests from a store.
type replica struct {
	t        testing.TB
	registry *session.Registry
}

func newReplica(t testing.TB, s *sessions) replica {
	t.Helper()
	r := session.NewRegistry(s, session.Secret("secret"))
	return replica{t, r}
}

// serve handles a request like the proxy and returns what it forwards.
func (r replica) serve(words string) (session.Resolution, string) {
	r.t.Helper()
	q := told(words)
	res, err := r.registry.Resolve(r.t.Context(), q)
	must(r.t, err)
	applied, err := r.registry.Condensations(r.t.Context(), &res)
	must(r.t, err)
	view := session.Project(q.History, applied)
	var forwarded []string
	for _, item := range view.Items {
		forwarded = append(forwarded, string(item.Raw)+item.Summary)
	}
	must(r.t, r.registry.Append(r.t.Context(), &res, tallyOf(&res, q)))
	return res, strings.Join(forwarded, " ")
}

func tallyOf(res *session.Resolution, q session.Query) *session.Tally {
	from := res.CountedFrom("test")
	t := &session.Tally{Encoding: "test", From: from, Cum: []int{res.Known.Tokens * min(from, 1)}}
	for range q.History.Len() - from {
		t.Cum = append(t.Cum, t.Cum[len(t.Cum)-1]+10)
	}
	return t
}

const (
	evictedWords = "u1 g1 u2 g2 u3"
	evictedFork  = "u1 g1 u2 g2 u9"
)

// evictable logs a thread in which g1 to u2 are summarised, and a fork that inherits the condensation.
func evictable(t *testing.T, s *sessions) {
	t.Helper()
	r := newReplica(t, s)
	first, _ := r.serve("u1 g1 u2")
	must(t, r.registry.Answered(t.Context(), &first, "", nil, nil)) // proves that the fork belongs to it
	res, _ := r.serve(evictedWords)
	q := told(evictedWords)
	view := session.Project(q.History, nil)
	must(t, second(r.registry.Condense(t.Context(), &res, &view, session.Condensation{
		Prefix: 3, Hash: q.History.Chain[3], Forgotten: []session.Range{{From: 2, To: 4}}, Offset: 2, Summary: "SUMMARY", SummaryTokens: 1,
	})))
	must(t, r.registry.Answered(t.Context(), &res, "an answer long enough to leave a trace behind", nil, nil))
	if _, got := r.serve(evictedFork); got != "u1 SUMMARY g2 u9" {
		t.Fatalf("the fork is forwarded as %q", got)
	}
}

// TestEachKeyEvicted deletes each key, one at a time, like a server that may evict any key. Another process serves the next
// request of the thread and of its fork with the summary or with the whole history, never with an empty summary or half a
// history, and the request after that finds everything repaired.
func TestEachKeyEvicted(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	server := sessiontest.StartRedis(t, "--appendfsync", "everysec")
	s := start(t, Options{Addrs: []string{server.Addr}, TTL: time.Hour, Timeout: 5 * time.Second})
	evictable(t, s)
	keys, err := s.under.client.Keys(t.Context(), "*").Result()
	must(t, err)
	if len(keys) < 12 {
		t.Fatalf("only %d keys: %q", len(keys), keys)
	}
	slices.Sort(keys)
	for _, key := range keys {
		for _, words := range []string{evictedWords, evictedFork} {
			server.Do("FLUSHALL")
			evictable(t, s)
			n, err := s.under.client.Del(t.Context(), key).Result()
			if err != nil || n != 1 {
				t.Fatalf("%q is not there again: %v", key, err)
			}
			wantServed(t, s, fmt.Sprintf("%q gone, %s", key, words), words)
		}
	}
}

// wantServed sends a history step by step.
func wantServed(t *testing.T, s *sessions, what, words string) {
	t.Helper()
	words += " g3 u4"
	first, got := newReplica(t, s).serve(words)
	whole, condensed := words, strings.Replace(words, "g1 u2", "SUMMARY", 1)
	if got != whole && got != condensed {
		t.Errorf("%s: forwarded %q", what, got)
	}
	words += " g4 u5"
	res, again := newReplica(t, s).serve(words)
	if again != words && again != strings.Replace(words, "g1 u2", "SUMMARY", 1) {
		t.Errorf("%s: then forwarded %q", what, again)
	}
	if res.Thread.ID != first.Thread.ID || res.Match != session.MatchEnd {
		t.Errorf("%s: was thread %s, then %s by %v", what, first.Thread.ID, res.Thread.ID, res.Match)
	}
	if strings.Contains(got, "SUMMARY") && !strings.Contains(again, "SUMMARY") {
		t.Errorf("%s: condensed, and then not: %q", what, again)
	}
}
