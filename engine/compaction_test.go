package engine_test

import (
	"bytes"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
)

// summarised returns a request by which an agent has its own history summarised.
func summarised(b *body) *body {
	const instruction = `,{"role":"user","content":"Summarise the conversation so far, with all decisions."}]}`
	return &body{bytes: append(bytes.TrimSuffix(b.bytes, []byte("]}")), instruction...)}
}

// TestACompactionSeesItsWholeHistory: an agent that summarises its history sees all of it, unless it does not fit.
func TestACompactionSeesItsWholeHistory(t *testing.T) {
	r := newRig(t, rolling())
	main := r.begin(calls("build it", 8, 0), engine.WishNone)
	main.Condense(t.Context())
	r.logged(main)
	condensed := main.Sent()

	compaction := func() *request {
		t.Helper()
		turn := r.begin(summarised(calls("build it", 8, 0)), engine.WishNone)
		if report := turn.Condense(t.Context()); len(report.Attempts) > 0 {
			t.Errorf("it was condensed: %+v", report)
		}
		if at := turn.Place().Thread; at.Parent != main.Place().Thread.ID || at.ID == main.Place().Thread.ID {
			t.Errorf("it is in %+v", at)
		}
		return turn
	}
	whole := compaction()
	if whole.Sent() != whole.Turn().Before() {
		t.Errorf("of %+v only %+v are sent", whole.Turn().Before(), whole.Sent())
	}
	r.window = main.Turn().Before().Tokens / 2
	if narrow := compaction(); narrow.Sent().Events != condensed.Events+1 {
		t.Errorf("%+v are sent to a window of %d, %+v by the run itself", narrow.Sent(), r.window, condensed)
	}
	r.window = 0
	refused := compaction()
	_, smaller := refused.overflow(t.Context(), overflow.Overflow{Limit: main.Turn().Before().Tokens / 2})
	if !smaller || refused.Sent().Events != condensed.Events+1 {
		t.Errorf("%+v are sent after an overflow", refused.Sent())
	}
	r.logged(whole)
	onward := r.begin(calls("build it", 9, 0), engine.WishNone)
	if onward.Place().Thread.ID != main.Place().Thread.ID || onward.Sent().Events != condensed.Events+2 {
		t.Errorf("the run goes on in %+v with %+v", onward.Place().Thread, onward.Sent())
	}
}

// sealed returns a request whose answers carry reasoning that is bound to the messages before it.
func sealed(b *body) *body {
	const bare, thought = `"assistant",`, `"assistant","thinking_blocks":[{"type":"thinking","thinking":"Hm.","signature":"s"}],`
	return &body{bytes: bytes.ReplaceAll(b.bytes, []byte(bare), []byte(thought))}
}

// TestACompactionSeesNoSealedReasoning: answers after a condensation are bound to the condensed history, so upstream would refuse them in the
// whole one.
func TestACompactionSeesNoSealedReasoning(t *testing.T) {
	r := newRig(t, rolling())
	before := r.begin(summarised(sealed(calls("plan it", 3, 0))), engine.WishNone)
	if !bytes.Equal(forwarded(before), summarised(sealed(calls("plan it", 3, 0))).bytes) {
		t.Error("a history that was never condensed was changed")
	}
	main := r.begin(sealed(calls("build it", 8, 0)), engine.WishNone)
	if report := main.Condense(t.Context()); len(report.Attempts) != 1 {
		t.Fatalf("%+v", report)
	}
	r.logged(main)
	turn := r.begin(summarised(sealed(calls("build it", 9, 0))), engine.WishNone)
	turn.Condense(t.Context())
	got := forwarded(turn)
	if turn.Sent().Events != turn.Turn().Before().Events || bytes.Contains(got, []byte("thinking_blocks")) {
		t.Errorf("%+v of %+v are sent: %s", turn.Sent(), turn.Turn().Before(), got)
	}
	if _, again := turn.refuse(t.Context(), overflow.Refusal{}); !again {
		t.Error("there is no last resort")
	}
}

// TestReliefOfACompactionBuildsOnEarlierCondensations: its condensation builds on all earlier ones of its thread.
func TestReliefOfACompactionBuildsOnEarlierCondensations(t *testing.T) {
	r := newRig(t, rolling())
	main := r.begin(calls("build it", 8, 0), engine.WishNone)
	condensed := main.Condense(t.Context()).Attempts
	r.logged(main)
	refused := r.begin(summarised(calls("build it", 16, 0)), engine.WishNone)
	r.logged(refused)
	if _, smaller := refused.overflow(t.Context(), overflow.Overflow{Limit: 500}); !smaller {
		t.Fatalf("%+v are sent after an overflow", refused.Sent())
	}
	report := refused.settle(t.Context(), true)
	if len(condensed) != 1 || len(report.Attempts) != 1 || report.Attempts[0].Made == nil {
		t.Fatalf("%+v, then %+v", condensed, report)
	}
	if base := report.Attempts[0].Made.Base; base != condensed[0].Made.ID {
		t.Errorf("it builds on %+v, not on %+v", base, condensed[0].Made.ID)
	}
	r.window = 500
	if again := r.begin(summarised(calls("build it", 16, 0)), engine.WishNone); again.Sent() != refused.Sent() {
		t.Errorf("%+v are sent at once, %+v were after the overflow", again.Sent(), refused.Sent())
	}
}

// TestRequestThatLosesARaceReportsNoFailure: a request whose thread another one is condensing goes on without, and reports no failure.
func TestRequestThatLosesARaceReportsNoFailure(t *testing.T) {
	r := newRig(t, rolling())
	first := r.begin(calls("build it", 3, 0), engine.WishNone)
	r.logged(first)
	lease, err := r.store.Lock(t.Context(), first.Place().Thread.ID, engine.DefaultLimits().CondenseLease)
	must(t, err)
	defer lease.Release()
	turn := r.begin(calls("build it", 8, 0), engine.WishNone)
	if report := turn.Condense(t.Context()); len(report.Attempts) > 0 {
		t.Errorf("%+v", report.Attempts)
	}
	if turn.Sent() != turn.Turn().Before() {
		t.Errorf("%+v are sent", turn.Sent())
	}
}
