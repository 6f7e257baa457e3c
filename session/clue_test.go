package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestRepeatedCallIDsLinkNothing: a call id links no history to a session if several calls have it or another result is known for it.
func TestRepeatedCallIDsLinkNothing(t *testing.T) {
	anyone := session.Scope{Tenant: "t"}
	for name, c := range map[string]struct {
		first, second, later string // histories of two runs, and one that may belong to the first run's session
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
		d := newFixture(t)
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

// TestRelayedCallLinksItsHistory: a call without a logged result links a history to the answer that made it, unless several answers
// made a call with the same id.
func TestRelayedCallLinksItsHistory(t *testing.T) {
	anyone := session.Scope{Tenant: "t"}
	for name, runs := range map[string][]string{"one run": {"u1"}, "two runs": {"u1", "u2"}} {
		d := newFixture(t)
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

// TestCallOfTwoRunsLinksNothing: if two runs got a call with the same id and the same result, it links no history to either.
func TestCallOfTwoRunsLinksNothing(t *testing.T) {
	anyone := session.Scope{Tenant: "t"}
	for name, c := range map[string]struct {
		relays  bool
		history []string
	}{
		"both logged the result":         {false, []string{"u1", "u1 a1 o1", "u2", "u2 a1 o1"}},
		"both logged it, once more":      {true, []string{"u1", "u1 a1 o1", "u2", "u2 a1 o1", "u1 a1 o1 a2 o2", "u2 a1 o1 a3 o3"}},
		"one logged it":                  {true, []string{"u1", "u1 a1 o1", "u2"}},
		"one logged it, the other began": {true, []string{"u2", "u1", "u1 a1 o1"}},
	} {
		d, sessions := newFixture(t), map[session.SessionID]bool{}
		for _, words := range c.history {
			res := d.send(d.registry, query(anyone, words))
			sessions[res.Thread.Session] = true
			var calls []string
			if c.relays && len(words) == 2 {
				calls = []string{"call-of-a1-123456"}
			}
			must(t, d.registry.Answered(t.Context(), &res, "", calls, nil))
		}
		if len(sessions) != 2 {
			t.Errorf("%s: two runs are %d sessions", name, len(sessions))
		}
		if later := d.send(d.another(), query(anyone, "u9 a1 o1")); sessions[later.Thread.Session] {
			t.Errorf("%s: a third history is linked to one of them", name)
		}
	}
}

// TestCondensationsAreNotCarriedToAnotherRun: a condensation is not carried over to a history with the same calls but other results,
// even in the same session. Shorter results belong to another run too, if a run has received them.
func TestCondensationsAreNotCarriedToAnotherRun(t *testing.T) {
	for name, c := range map[string]struct {
		key    string
		others string // the first results of the other run; o.. is shorter than p..
		first  string // the first results of the run that is condensed
		steps  int
		slides bool // in its last request, the other run's client leaves out the oldest step
		early  bool // the condensation is made before the other run begins
		once   bool // the other run sends all its steps in one request
	}{
		"longer, in one request":       {key: "k", first: "o1 o2", others: "p1x p2x", steps: 4, once: true},
		"longer":                       {key: "k", first: "o1 o2", others: "p1x p2x", steps: 4},
		"shorter":                      {key: "k", first: "p1x p2x", others: "o1 o2", steps: 4},
		"shorter, later":               {key: "k", first: "p1x p2x", others: "o1 o2", steps: 4, early: true},
		"shorter, no key":              {first: "p1x p2x", others: "o1 o2", steps: 4},
		"shorter, no key, later":       {first: "p1x p2x", others: "o1 o2", steps: 4, early: true},
		"shorter, the oldest left out": {key: "k", first: "p1x p2x", others: "o1 o2", steps: 4, slides: true},
		"longer, old":                  {key: "k", first: "o1 o2", others: "p1x o2", steps: 24},
		"shorter, old":                 {key: "k", first: "p1x o2", others: "o1 o2", steps: 24},
		"shorter, old, one left out":   {key: "k", first: "o1 p2x", others: "o1 o2", steps: 24, slides: true},
	} {
		scope, d := session.Scope{Tenant: "t", Key: c.key}, newFixture(t)
		condense := func() {
			words := "u1" + steps(c.first, c.steps)
			d.condensed(query(scope, words), "secret", session.Range{From: 2, To: 2*c.steps - 2})
		}
		other := func(n int) string { // its client edits its first message at each step
			words := steps(c.others, n)
			if c.slides && n == c.steps {
				words = words[len(steps(c.others, 1)):]
			}
			return "u9" + string(rune('a'+n)) + words
		}
		if c.early {
			condense()
		}
		for n := range c.steps {
			if c.once {
				break
			}
			d.send(d.registry, query(scope, other(n)))
		}
		if !c.early {
			condense()
		}
		if got := d.shown(query(scope, other(c.steps))); got != other(c.steps) {
			t.Errorf("%s: shown %s", name, got)
		}
	}
}

// steps returns n calls with their results, which are the given ones followed by results that all runs have in common.
func steps(results string, n int) (words string) {
	given := strings.Fields(results)
	for i := range n {
		result := fmt.Sprintf("o%d", i+1)
		if i < len(given) {
			result = given[i]
		}
		words += fmt.Sprintf(" a%d %s", i+1, result)
	}
	return words
}
