package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Probes reports whether the request only tries its history: it is no step of the conversation, and is not logged.
func (t *Turn) Probes() bool { return t.purpose == session.PurposeProbe }

// unabridged shows an agent that makes its own summary as much of its history as fits the window: all of it, or what the fewest of
// the condensations that apply leave, as legible reads them. What does not fit under all of them is condensed like any request that is
// too long. Where fewer are shown, no sealed reasoning is: what was answered after the others was bound to the condensed history.
func (t *Turn) unabridged(
	applied []session.Condensation, legible func([]session.Condensation) ([]session.Condensation, error),
) error {
	for n := range applied {
		fewer, err := legible(applied[:n])
		if err != nil {
			return fmt.Errorf("read condensations: %w", err)
		}
		t.show(t.project(fewer))
		t.show(t.reshaped(t.shown.view, math.MaxInt))
		if !overWindow(t.input(condense.Need{})) {
			return nil
		}
	}
	t.show(t.project(applied))
	return nil
}

// abridge shows what all condensations leave, where more was shown and upstream did not take it. It reports whether that was so.
func (t *Turn) abridge(ctx context.Context) bool {
	if t.purpose != session.PurposeCompaction {
		return false
	}
	applied, err := t.registry.Condensations(ctx, &t.place)
	if err != nil || len(applied) <= len(t.shown.applied) {
		return false
	}
	t.show(t.project(applied))
	t.relief.before, t.relief.trial = t.shown, nil
	return true
}
