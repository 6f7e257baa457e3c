package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

// calls returns a request with n calls and their results, the oldest of which the client has cut.
func calls(task string, n, cut int) *body {
	all := []string{fmt.Sprintf(`{"role":"user","content":%q}`, task)}
	for i := range n {
		text := strings.Repeat("The sea is deep. ", 20)
		if i < cut {
			text = "[cut]"
		}
		all = append(all,
			fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"call_of_step_%d","type":"function","function":{"name":"f","arguments":"{}"}}]}`, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_of_step_%d","content":%q}`, i, text))
	}
	return &body{bytes: []byte(`{"model":"m","messages":[` + strings.Join(all, ",") + `]}`)}
}

// TestCountsStayRightWhenCondensationsAreCarriedOver: counts stay right if a client cuts hidden messages, or changes its first message.
func TestCountsStayRightWhenCondensationsAreCarriedOver(t *testing.T) {
	r := newRig(t, rolling())
	first := r.begin(calls("now 1", 8, 0), engine.WishNone)
	if report := first.Condense(t.Context()); len(report.Attempts) != 1 {
		t.Fatalf("%+v", report)
	}
	r.logged(first)
	for name, b := range map[string]*body{
		"cut": calls("now 1", 8, 3), "changed": calls("now 2", 8, 0), "both": calls("now 3", 8, 2),
	} {
		turn := r.begin(b, engine.WishNone)
		if report := turn.Condense(t.Context()); len(report.Attempts) > 0 || turn.Sent().Events == turn.Turn().Before().Events {
			t.Errorf("%s: condensed again, or not at all: %+v", name, report)
		}
		same := newRig(t, condense.Noop{}).begin(&body{bytes: forwarded(turn)}, engine.WishNone)
		if got, want := turn.Sent(), same.Turn().Before(); got != want {
			t.Errorf("%s: %+v are counted, %+v were forwarded", name, got, want)
		}
		r.logged(turn)
	}
}
