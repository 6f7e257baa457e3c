package session_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestRepeatedIDsProveNothing: an id that several calls have, or for which another result is known, links no history to a session.
func TestRepeatedIDsProveNothing(t *testing.T) {
	anyone := session.Scope{Tenant: "t"}
	for name, c := range map[string]struct {
		first, second, later string // histories of two runs, and one that is compared with the first
		same                 bool
	}{
		"one id":                      {"u1 a1 o1 a2 o2", "", "u9 a2 o2", true},
		"each call has it":            {"u1 k1 q1 k2 q2", "", "u9 k2 q2", false},
		"a later call has it, too":    {"u1 k1 q1", "u1 k1 q1 k2 q2", "u9 k1 q1", false},
		"each call of another run":    {"u1 a1 o1", "u2 k1 q1 k2 q2", "u9 k1 q1", false},
		"another result":              {"u1 a1 o1", "", "u9 a1 p1x", false},
		"another result, logged":      {"u1 a1 o1", "u2 a1 p1x", "u9 a1 p1x", false},
		"the first of two results":    {"u1 a1 o1", "u2 a1 p1x", "u9 a1 o1", true},
		"the same answer before":      {"u1 a1 o1", "", "u1 a1 p1x", false},
		"and the same results after":  {"u1 a1 o1 a2 o2", "", "u1 a1 p1x a2 o2", true},
		"and other results after":     {"u1 a1 o1 a2 o2", "", "u1 a1 p1x a2 p2x", false},
		"a shared call with a result": {"u1 a1 o1 a2 o2", "", "u1 a1 o1 a2 p2x", true},
	} {
		d := newDesk(t)
		opening := d.send(d.registry, query(anyone, c.first[:2]))
		if err := d.registry.Answered(t.Context(), &opening, "", nil, nil); err != nil {
			t.Fatal(err)
		}
		first := d.send(d.registry, query(anyone, c.first))
		var second session.Resolution
		if c.second != "" {
			second = d.send(d.registry, query(anyone, c.second))
		}
		later := d.send(d.another(), query(anyone, c.later))
		if later.Thread.Session == second.Thread.Session {
			t.Errorf("%s: it is linked to the second run", name)
		}
		if same := later.Thread.Session == first.Thread.Session; same != c.same {
			t.Errorf("%s: the session is the same: %t", name, same)
		}
	}
}

// TestRelayedCallsProveTheirRun: a call without a logged result links a history to the answer that made it, unless several answers did.
func TestRelayedCallsProveTheirRun(t *testing.T) {
	anyone := session.Scope{Tenant: "t"}
	for name, runs := range map[string][]string{"one run": {"u1"}, "two runs": {"u1", "u2"}} {
		d := newDesk(t)
		var last session.Resolution
		for _, words := range runs {
			last = d.send(d.registry, query(anyone, words))
			if err := d.registry.Answered(t.Context(), &last, "", []string{"call-of-a1-123456"}, nil); err != nil {
				t.Fatal(err)
			}
		}
		later := d.send(d.another(), query(anyone, "u9 a1 o1"))
		if same := later.Thread.Session == last.Thread.Session; same != (len(runs) == 1) {
			t.Errorf("%s: the session is the same: %t", name, same)
		}
	}
}

// TestAnotherRunsResultsAreNotCarried: a condensation is not carried over to a history with the same calls and other results, even in the
// same session.
func TestAnotherRunsResultsAreNotCarried(t *testing.T) {
	scope := session.Scope{Tenant: "t", Key: "k"}
	d := newDesk(t)
	d.condensed(query(scope, "u1 a1 o1 a2 o2 a3 o3 a4 o4"), "secret", session.Range{From: 2, To: 6})
	const other = "u9 a1 p1x a2 p2x a3 o3 a4 o4"
	if got := d.shown(query(scope, other)); got != other {
		t.Errorf("shown %s", got)
	}
}
