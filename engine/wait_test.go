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
		Settings: condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
	}))
	r.tenant.Never, r.tenant.Ahead = true, true
	return r, summariser
}

// TestSummariesArePrepared: the summary is written before it is due, once, and shown, by whichever replica, once it is.
func TestSummariesArePrepared(t *testing.T) {
	r, summariser := hurrying(t)
	ended := make(chan engine.Report, 16)
	r.late = func(report engine.Report) { ended <- report }
	for _, n := range []int{15, 17, 19} {
		turn := r.begin(says(n), engine.WishNone)
		if report := turn.Condense(t.Context()); len(report.Attempts) > 0 || !bytes.Equal(forwarded(turn), says(n).bytes) {
			t.Errorf("%d messages: %+v, %d bytes", n, report, len(forwarded(turn)))
		}
		r.logged(turn)
		if n == 17 {
			<-summariser.asked
		}
	}
	close(summariser.free)
	if report := <-ended; len(report.Attempts) > 0 {
		t.Fatalf("%+v", report)
	}
	other := &rig{T: t, store: r.store, tenant: r.tenant, clock: r.clock}
	other.start()
	due := other.begin(says(23), engine.WishNone)
	report := due.Condense(t.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || report.Attempts[0].Made.Provisional || len(summariser.asked) > 0 {
		t.Fatalf("%+v, asked %d times more", report, len(summariser.asked))
	}
	if made := report.Attempts[0].Made; made.Before.Events != 23 || made.After.Events != 13 || made.Model != "cheap" {
		t.Errorf("%+v", made)
	}
	if !bytes.Contains(forwarded(due), []byte("the sea.")) {
		t.Errorf("%s", forwarded(due))
	}
	other.logged(due)
	next := r.begin(says(25), engine.WishNone)
	if next.Condense(t.Context()); !bytes.Contains(forwarded(next), []byte("the sea.")) {
		t.Errorf("%s", forwarded(next))
	}
}

// TestWhatIsNotReadyIsNotWaitedFor: where no summary is ready, excerpts stand in at once, although one is being written.
func TestWhatIsNotReadyIsNotWaitedFor(t *testing.T) {
	r, summariser := hurrying(t)
	ended := make(chan engine.Report, 16)
	r.late = func(report engine.Report) { ended <- report }
	first := r.begin(says(17), engine.WishNone)
	first.Condense(t.Context())
	r.logged(first)
	<-summariser.asked
	second := r.begin(says(23), engine.WishNone)
	report := second.Condense(t.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || !report.Attempts[0].Made.Provisional || report.Attempts[0].Made.Cause != "at_once" {
		t.Fatalf("%+v", report)
	}
	r.logged(second)
	close(summariser.free)
	if report := <-ended; len(report.Attempts) > 0 {
		t.Errorf("of the summary that came too late: %+v", report)
	}
	var shown []byte
	for n := 25; n < 45 && !bytes.Contains(shown, []byte("the sea.")); n += 2 {
		asked := says(n)
		turn := r.begin(asked, engine.WishNone)
		turn.Condense(t.Context())
		r.logged(turn)
		if shown = forwarded(turn); asked.held.Load() > 0 {
			<-ended
		}
	}
	if !bytes.Contains(shown, []byte("the sea.")) {
		t.Errorf("no summary took the place of the excerpts: %s", shown)
	}
}

// TestAWishIsWaitedFor: a client that asks for a condensation gets it.
func TestAWishIsWaitedFor(t *testing.T) {
	r, summariser := hurrying(t)
	close(summariser.free)
	asked := r.begin(says(23), engine.WishNow)
	if report := asked.Condense(t.Context()); len(report.Attempts) != 1 || report.Attempts[0].Made == nil {
		t.Errorf("%+v", report)
	}
}
