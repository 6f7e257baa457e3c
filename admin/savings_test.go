package admin_test

import (
	"encoding/json"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

type moneyShown struct {
	NotSent  float64 `json:"not_sent"`
	Rewrites float64 `json:"cache_rewrites"`
	Own      float64 `json:"own_calls"`
	Net      float64
}

type savingsShown struct {
	Condensations int
	Tokens        int `json:"tokens_not_sent"`
	USD           *moneyShown
	Unpriced      []string
}

func near(a, b moneyShown) bool {
	const much = 1e-12
	return math.Abs(a.NotSent-b.NotSent) < much && math.Abs(a.Rewrites-b.Rewrites) < much &&
		math.Abs(a.Own-b.Own) < much && math.Abs(a.Net-b.Net) < much
}

// readSavings asks an API over a store alone.
func readSavings(t *testing.T, store *boltstore.Store, p prices) (out savingsShown) {
	t.Helper()
	api := admin.New(admin.Options{Store: store, Archive: store, Settings: p, Metrics: http.NotFoundHandler()})
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

// TestSavingsOfASession: a session's are those of its threads together; what a fork inherited cost it nothing.
func TestSavingsOfASession(t *testing.T) {
	r := start(t, nil)
	conversation := turns("ships", 21)
	p := r.grow(conversation, 2)
	fork := r.ask(append(conversation[:20:20], say("user", "Something else.")))
	var all struct {
		savingsShown
		Threads []savingsShown
	}
	r.get("/api/v1/sessions/"+p.session+"/savings", &all)
	var main, side savingsShown
	r.get(p.url("/savings"), &main)
	r.get(fork.url("/savings"), &side)
	if main.Condensations < 2 || main.Tokens <= 0 || main.USD == nil || main.USD.Own >= 0 || main.USD.Rewrites >= 0 {
		t.Errorf("main %+v %+v", main, main.USD)
	}
	if side.Condensations != 0 || side.Tokens <= 0 || side.USD == nil || side.USD.Own != 0 || side.USD.Rewrites != 0 {
		t.Errorf("fork %+v %+v", side, side.USD)
	}
	if len(all.Threads) != 2 || all.Tokens != main.Tokens+side.Tokens || math.Abs(all.USD.Net-main.USD.Net-side.USD.Net) > 1e-12 {
		t.Errorf("all %+v", all)
	}
}
