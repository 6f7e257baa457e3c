package condense

import "github.com/dewpoint-proxy/dewpoint/session"

// lastSealed is the last position whose message carries sealed reasoning, 0 if none does. A condensation changes what such
// reasoning was bound to, so from then on it is left out of every message up to there. What the model answers afterwards is
// bound to the condensed prefix, and stays.
func lastSealed(h *session.History) int {
	for p := h.Len(); p > 0; p-- {
		if h.Message(p).Sealed {
			return p
		}
	}
	return 0
}

// openLoop reports whether the history ends in a tool loop in which a message carries sealed reasoning. Texts of the user next to
// tool results do not end a loop.
func openLoop(h *session.History) bool {
	results, said := false, false
	for p := h.Len(); p > 0; p-- {
		switch m := h.Message(p); {
		case m.Kind == session.User || m.Kind == session.Observation:
			results = m.Kind == session.Observation || results && !said
			said = false
		case !results:
			return false
		case m.Sealed:
			return true
		default:
			said = true
		}
	}
	return false
}

// Waits reports whether a condensation has to wait for the end of the open tool loop, because its API takes no loop without
// the loop's reasoning.
func (in Input) Waits() bool { return in.NeedsReasoning && openLoop(in.View.History) }
