package session_test

import (
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestReplacedNotesAreHiddenWithTheirSteps: a note that a later one replaces is hidden together with the message before it.
func TestReplacedNotesAreHiddenWithTheirSteps(t *testing.T) {
	q := query(session.Scope{Tenant: "t"}, "s0 u1 a1 o1 s1 s2 a2 o2 s3 a3 o3 s4")
	for i := range q.History.Messages {
		if m := &q.History.Messages[i]; strings.Contains("s1 s3 s4", strings.Trim(string(m.Raw), `"`)) {
			m.Note = 1
		}
	}
	v := session.Project(q.History, []session.Condensation{{
		Prefix: 3, Hash: q.History.Chain[3], Forgotten: []session.Range{{From: 2, To: 4}}, Offset: 2, Summary: "sum",
	}})
	var shown []string
	for _, item := range v.Items {
		shown = append(shown, strings.Trim(string(item.Raw), `"`)+item.Summary)
	}
	if got, want := strings.Join(shown, " "), "s0 u1 sum s2 a2 o2 s3 a3 o3 s4"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
