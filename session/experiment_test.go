package session_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestAssignment: whether a session is held out depends only on the secret and the session, and it stays held out when the share grows.
func TestAssignment(t *testing.T) {
	const sessions = 100_000
	held, other := 0, 0
	var groups [session.Groups]int
	for i := range sessions {
		id := session.SessionID(fmt.Sprint(i))
		assignment := session.Secret("s").Assign(id, 0.05)
		if assignment != session.Secret("s").Assign(id, 0.05) {
			t.Fatalf("%s has two assignments", id)
		}
		groups[assignment.Group]++
		if assignment.Arm == session.HeldOut {
			held++
			if session.Secret("s").Assign(id, 0.1).Arm != session.HeldOut {
				t.Errorf("%s is held out at a twentieth and not at a tenth", id)
			}
			other += int(session.Secret("another").Assign(id, 0.05).Arm)
		}
	}
	if math.Abs(float64(held)-0.05*sessions) > 0.005*sessions || float64(other) > 0.1*float64(held) {
		t.Errorf("%d of %d are held out, %d of them under another secret, too", held, sessions, other)
	}
	for group, n := range groups {
		if n < sessions/session.Groups*4/5 || n > sessions/session.Groups*6/5 {
			t.Errorf("group %d has %d sessions of %d", group, n, sessions)
		}
	}
	if session.Secret("s").Assign("x", 0).Arm != session.Treated {
		t.Error("one is held out of none")
	}
	if session.Secret("s").Experiment("a", session.Holdout{Share: 0.05}) == session.Secret("s").Experiment("a", session.Holdout{Share: 0.05, Variant: "b"}) {
		t.Error("another condenser of the arm continues the experiment")
	}
	if session.Secret("s").Experiment("a", session.Holdout{Share: 0.05}) == session.Secret("s").Experiment("a", session.Holdout{Share: 0.1}) {
		t.Error("two shares have one account")
	}
}
