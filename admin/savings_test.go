package admin_test

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

type moneyShown struct {
	NotSent  float64 `json:"not_sent"`
	Rewrites float64 `json:"cache_rewrites"`
	Own      float64 `json:"own_calls"`
	Net      float64
}

type savingsShown struct {
	Condensations int
	Calls         int
	Own           struct{ Input int } `json:"own_calls"`
	Seconds       float64
	Tokens        int `json:"tokens_not_sent"`
	USD           *moneyShown
	Unpriced      []string
}

func near(a, b moneyShown) bool {
	const much = 1e-12
	return math.Abs(a.NotSent-b.NotSent) < much && math.Abs(a.Rewrites-b.Rewrites) < much &&
		math.Abs(a.Own-b.Own) < much && math.Abs(a.Net-b.Net) < much
}

// readSavings reads a thread's savings from an API that has only a store.
func readSavings(t *testing.T, store *boltstore.Store) (out savingsShown) {
	t.Helper()
	api := admin.New(admin.Options{Store: store, Archive: store, Settings: noSettings{}, Metrics: http.NotFoundHandler(), Health: http.NotFoundHandler(), MaxBytes: 1 << 20})
	w := httptest.NewRecorder()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/v1/sessions/s/threads/t/savings", nil)
	req.Host = "localhost"
	api.ServeHTTP(w, req)
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	must(t, json.Unmarshal(w.Body.Bytes(), &out))
	return out
}

// TestSavingsAreSums checks that a thread's savings are the sums stored for it, and that USD is null if a price is not known.
func TestSavingsAreSums(t *testing.T) {
	store, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db"})
	must(t, err)
	defer store.Close()
	must(t, store.Append(t.Context(), session.Batch{Thread: session.Thread{ID: "t", Session: "s"}}))
	calls := session.Cost{Calls: 2, Took: time.Second, Used: session.Usage{Input: 2000, Cached: 500, Output: 50}, Nano: 3e6}
	_, err = store.Condense(t.Context(), "t", session.Condensation{Reason: session.ReasonEvents, Making: session.Making{Cost: calls}})
	must(t, err)
	_, err = store.Condense(t.Context(), "t", session.Condensation{Reason: session.ReasonEvents, Making: session.Making{Cost: session.Cost{Took: 250 * time.Millisecond}}})
	must(t, err)
	rejected := session.Cost{Calls: 1, Took: 2 * time.Second, Used: session.Usage{Input: 1000, Output: 10}, Nano: 1e6}
	for _, more := range []session.Savings{
		{Cost: calls}, {Cost: rejected}, {Tokens: 500, NotSent: 5e6, Rewritten: -2e6}, {Tokens: -20, NotSent: -1e6},
	} {
		must(t, store.Save(t.Context(), "t", more))
	}
	got, want := readSavings(t, store), moneyShown{NotSent: 0.004, Rewrites: -0.002, Own: -0.004, Net: -0.002}
	if got.Tokens != 480 || got.Condensations != 2 || got.Calls != 3 || got.Own.Input != 3000 || got.Seconds != 3.25 || got.USD == nil || !near(*got.USD, want) {
		t.Errorf("%+v %+v", got, got.USD)
	}
	must(t, store.Save(t.Context(), "t", session.Savings{Tokens: 20, Cost: session.Cost{Unpriced: "odd"}}))
	if got := readSavings(t, store); got.USD != nil || len(got.Unpriced) != 1 || got.Unpriced[0] != "odd" || got.Tokens != 500 {
		t.Errorf("with an unknown price: %+v", got)
	}
}

// TestSavingsOfASession checks that a session's savings are the sum of its threads', and that inherited condensations cost a fork nothing.
func TestSavingsOfASession(t *testing.T) {
	r := start(t, nil)
	conversation := turns("ships", 21)
	p := r.grow(conversation, 2)
	fork := r.ask(append(conversation[:20:20], say("user", "Something else.")))
	var all struct {
		savingsShown
		Threads []savingsShown
	}
	var main, side savingsShown
	sessiontest.Eventually(t, "the fork's savings are written", func() error { // they are written after the answer
		if r.get(fork.url("/savings"), &side); side.Tokens <= 0 {
			return fmt.Errorf("%+v", side)
		}
		return nil
	})
	r.get("/api/v1/sessions/"+p.session+"/savings", &all)
	r.get(p.url("/savings"), &main)
	if main.Condensations < 2 || main.Tokens <= 0 || main.USD == nil || main.USD.Own >= 0 || main.USD.Rewrites >= 0 {
		t.Errorf("main %+v %+v", main, main.USD)
	}
	if side.Condensations != 0 || side.USD == nil || side.USD.Own != 0 {
		t.Errorf("fork %+v %+v", side, side.USD)
	}
	if len(all.Threads) != 2 || all.Tokens != main.Tokens+side.Tokens || math.Abs(all.USD.Net-main.USD.Net-side.USD.Net) > 1e-12 {
		t.Errorf("all %+v", all)
	}
}
