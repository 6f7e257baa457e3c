package condense_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestWaits checks that a tool loop is open while results of its calls are the newest messages, with or without user texts
// next to them.
func TestWaits(t *testing.T) {
	kinds := map[rune]session.Kind{
		'u': session.User, 'a': session.Agent, 'A': session.Agent, 'c': session.Action, 'C': session.Action, 'r': session.Observation,
	}
	for history, want := range map[string]bool{ // upper case: sealed
		"": false, "u": false, "uA": false, "uC": false, "uCr": true, "ucr": false, "uCrcr": true, "uCrru": true, "uCrur": true,
		"uCruu": true, "uCrucr": true, "uCrAu": false, "uAucr": false, "uAucru": false, "uAuCru": true, "uCraucr": false, "uCracr": true,
		"uCrcrA": false, "r": false, "ur": false,
	} {
		var messages []session.Message
		for _, k := range history {
			messages = append(messages, session.Message{Kind: kinds[k], Sealed: k < 'a'})
		}
		in := condense.Input{View: &session.View{History: session.NewHistory(session.Hash{}, messages)}, NeedsReasoning: true}
		if (in.Loop() > 0) != want {
			t.Errorf("%s: waits: %t", history, !want)
		}
	}
}

// TestOnlyTheWindowCutsALoop checks that a condensation waits for the end of an open tool loop unless the request would not fit, or the reasoning
// of what stays is valid all the same.
func TestOnlyTheWindowCutsALoop(t *testing.T) {
	messages := []session.Message{{Kind: session.User}, {Kind: session.Action, Sealed: true}, {Kind: session.Observation}}
	view := session.Project(session.NewHistory(session.Hash{}, messages), nil)
	for window, want := range map[int]condense.Due{
		1000: {Obstacle: condense.ObstacleLoop}, 150: {Need: condense.Need{Reason: session.ReasonWindow, Hard: true}},
	} {
		in := condense.Input{View: &view, Total: 200, Window: window, NeedsReasoning: true, Measure: func(items []session.Item) []int { return make([]int, len(items)) }}
		if due := (condense.Settings{MaxTokens: 100}).Due(in); due.Need != want.Need || due.Obstacle != want.Obstacle {
			t.Errorf("a window of %d: due by %+v, kept %q", window, due.Need, due.Obstacle)
		}
		in.CutsLoops = true
		if due := (condense.Settings{MaxTokens: 100}).Due(in); due.Need.Reason == "" || due.Obstacle != "" {
			t.Errorf("a window of %d, loops may be cut: due by %+v, kept %q", window, due.Need, due.Obstacle)
		}
	}
}
