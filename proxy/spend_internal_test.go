package proxy

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestChargedUsageIsBounded: what upstream reports is charged within bounds, what it refused is free, and an answer without a report is estimated.
func TestChargedUsageIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer dialect.Answer
		used   session.Usage
		known  bool
	}{
		"a report":             {http.StatusOK, dialect.Answer{Usage: &session.Usage{Input: 7, Output: 8}, Wrote: 400}, session.Usage{Input: 7, Output: 8}, true},
		"a report of less":     {http.StatusOK, dialect.Answer{Usage: &session.Usage{Input: -7, Output: -8}}, session.Usage{}, true},
		"an absurd report":     {http.StatusOK, dialect.Answer{Usage: &session.Usage{Input: math.MaxInt, Output: math.MaxInt}}, session.Usage{Input: maxCharged, Output: maxCharged}, true},
		"a report of an error": {http.StatusBadRequest, dialect.Answer{Usage: &session.Usage{Input: 7}}, session.Usage{Input: 7}, true},
		"an error":             {http.StatusBadRequest, dialect.Answer{Wrote: 400}, session.Usage{}, true},
		"no report":            {http.StatusOK, dialect.Answer{Wrote: 400}, session.Usage{Input: 50, Output: 100}, false},
		"a redirection":        {399, dialect.Answer{}, session.Usage{Input: 50}, false},
	} {
		if used, known := usedBy(c.status, c.answer, 50); used != c.used || known != c.known {
			t.Errorf("%s: %+v, %t", name, used, known)
		}
	}
}

// TestBudgetsOfASession: without a known session only the tenant's own budget is spent.
func TestBudgetsOfASession(t *testing.T) {
	s := &Server{o: Options{Now: time.Now}}
	tenant := &Tenant{Limits: limit.Tenant{
		Budget:        limit.Budget{Tokens: 10, Period: limit.Period(time.Hour)},
		SessionBudget: limit.Budget{Tokens: 5, Period: limit.Period(time.Hour)},
	}}
	for id, want := range map[session.SessionID]int{"": 1, "a": 2} {
		all := s.accounts(tenant, id, ModelInfo{})
		if len(all) != want || all[0].key != "budget" || all[len(all)-1].limit != int64(15-5*want) {
			t.Errorf("session %q: %+v", id, all)
		}
		if id != "" && all[0].Account == all[1].Account {
			t.Errorf("session %q spends its tenant's account: %+v", id, all)
		}
	}
}
