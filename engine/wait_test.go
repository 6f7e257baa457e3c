package engine_test

import (
	"bytes"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
)

// hurrying is a rig whose requests wait for no model, and its summariser.
func hurrying(t *testing.T) (*rig, held) {
	t.Helper()
	summariser := held{asked: make(chan struct{}, 8), free: make(chan struct{})}
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Summariser: summariser, Model: "cheap",
	}))
	r.tenant.Never = true
	return r, summariser
}

// TestNoRequestWaits: what is due goes upstream as it is while the summary is written, and is condensed once that is there. A summary
// that is asked for meanwhile is not written twice.
func TestNoRequestWaits(t *testing.T) {
	r, summariser := hurrying(t)
	ended := make(chan engine.Report, 2)
	r.late = func(report engine.Report) { ended <- report }
	first := r.begin(says(13), engine.WishNone)
	if report := first.Condense(t.Context()); len(report.Attempts) > 0 || !bytes.Equal(forwarded(first), says(13).bytes) {
		t.Errorf("%+v, %d bytes", report, len(forwarded(first)))
	}
	r.logged(first)
	<-summariser.asked
	second := r.begin(says(15), engine.WishNone)
	if report := second.Condense(t.Context()); len(report.Attempts) > 0 || !bytes.Equal(forwarded(second), says(15).bytes) {
		t.Errorf("%+v, %d bytes", report, len(forwarded(second)))
	}
	r.logged(second)
	close(summariser.free)
	report := <-ended
	for len(report.Attempts) == 0 { // of the second, which finds the lock taken
		report = <-ended
	}
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || report.Attempts[0].Made.Provisional || len(summariser.asked) > 0 {
		t.Fatalf("%+v", report)
	}
	third := r.begin(says(17), engine.WishNone)
	if report := third.Condense(t.Context()); len(report.Attempts) > 0 || !bytes.Contains(forwarded(third), []byte("the sea.")) {
		t.Errorf("%+v, %s", report, forwarded(third))
	}
}

// TestWhatIsHardWaitsForNoModel: where the window is in danger, excerpts stand in at once, although a summary is being written.
func TestWhatIsHardWaitsForNoModel(t *testing.T) {
	r, summariser := hurrying(t)
	ended := make(chan engine.Report, 2)
	r.late = func(report engine.Report) { ended <- report }
	first := r.begin(says(13), engine.WishNone)
	first.Condense(t.Context())
	r.logged(first)
	<-summariser.asked
	r.window, r.configured = 600, true
	second := r.begin(says(41), engine.WishNone)
	report := second.Condense(t.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || !report.Attempts[0].Made.Provisional || report.Attempts[0].Made.Cause != "at_once" {
		t.Fatalf("%+v", report)
	}
	close(summariser.free)
	if report := <-ended; len(report.Attempts) > 1 || len(report.Attempts) == 1 && report.Attempts[0].Made != nil {
		t.Errorf("the summary of what is condensed already: %+v", report)
	}
}

// TestAWishIsWaitedFor: a client that asks for a condensation gets it.
func TestAWishIsWaitedFor(t *testing.T) {
	r, summariser := hurrying(t)
	close(summariser.free)
	asked := r.begin(says(13), engine.WishNow)
	if report := asked.Condense(t.Context()); len(report.Attempts) != 1 || report.Attempts[0].Made == nil {
		t.Errorf("%+v", report)
	}
}
