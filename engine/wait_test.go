package engine_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// hurrying returns a rig whose requests never wait for a model, and its summariser.
func hurrying(t *testing.T) (*rig, held) {
	t.Helper()
	summariser := held{asked: make(chan struct{}, 8), free: make(chan struct{})}
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
	}))
	r.tenant.Never, r.tenant.Ahead = true, true
	r.logged(r.begin(says(3), engine.WishNone)) // no summary is prepared for a history that was sent once
	return r, summariser
}

// TestSummariesArePrepared: a summary is written once, before it is due, and any replica shows it once it is due.
func TestSummariesArePrepared(t *testing.T) {
	r, summariser := hurrying(t)
	var told []engine.Attempt
	r.late = func(report engine.Report) { told = append(told, report.Attempts...) }
	early := says(17)
	for _, asked := range []*body{says(15), early, says(19)} {
		turn := r.begin(asked, engine.WishNone)
		if report := turn.Condense(t.Context()); len(report.Attempts) > 0 || !bytes.Equal(forwarded(turn), asked.bytes) {
			t.Errorf("%+v, %d bytes", report, len(forwarded(turn)))
		}
		r.logged(turn)
		if asked == early {
			<-summariser.asked
		}
	}
	r.clock = r.clock.Add(3 * time.Second)
	close(summariser.free)
	early.work.Wait()
	if len(told) != 1 || !told[0].Ahead || told[0].Err != nil || told[0].Made != nil || told[0].Cost.Calls != 1 || told[0].Cost.Took != 3*time.Second || told[0].Thread == "" {
		t.Errorf("told of %+v", told)
	}
	other := r.replica()
	due := other.begin(says(23), engine.WishNone)
	report := due.Condense(t.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || report.Attempts[0].Made.Provisional || len(summariser.asked) > 0 {
		t.Fatalf("%+v, asked %d times more", report, len(summariser.asked))
	}
	made, cost := report.Attempts[0].Made, session.Cost{Calls: 1, Took: 3 * time.Second, Used: session.Usage{Input: 100, Output: 5}, Nano: 2e6}
	if made.Before.Events != 23 || made.After.Events != 13 || made.Model != "cheap" || made.Cost != cost || made.Prompt == "" || report.Attempts[0].Cost != (session.Cost{}) {
		t.Errorf("%+v", made)
	}
	if saved, err := r.store.Saved(t.Context(), made.ID.Thread); err != nil || saved.Cost != cost {
		t.Errorf("the thread has saved %+v, %v", saved, err)
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

// TestExcerptsStandInForASummaryThatIsNotReady: if no summary is ready, excerpts stand in at once, even while one is being written. The next summary covers
// the same messages.
func TestExcerptsStandInForASummaryThatIsNotReady(t *testing.T) {
	r, summariser := hurrying(t)
	r.late = func(report engine.Report) { r.failed(report) }
	early := says(17)
	first := r.begin(early, engine.WishNone)
	first.Condense(t.Context())
	r.logged(first)
	<-summariser.asked
	next := says(23)
	second := r.begin(next, engine.WishNone)
	r.standsIn(second)
	r.logged(second)
	close(summariser.free)
	early.work.Wait()
	next.work.Wait() // until the missing summary is written, nothing else is prepared for the thread
	for n := 25; ; n += 2 {
		asked := says(n)
		turn := r.begin(asked, engine.WishNone)
		report := turn.Condense(t.Context())
		r.logged(turn)
		asked.work.Wait()
		if len(report.Attempts) == 0 {
			continue
		}
		if made := report.Attempts[0].Made; made == nil || made.Provisional || report.Attempts[0].Redeems != 1 {
			t.Errorf("%+v", report)
		}
		return
	}
}

// TestAMissingSummaryIsWrittenNext: if excerpts stand in while a summary is being written, which then fits them no longer, theirs is written
// next. So it is there at the next condensation, however soon that is due.
func TestAMissingSummaryIsWrittenNext(t *testing.T) {
	r, summariser := hurrying(t)
	r.late = func(report engine.Report) { r.failed(report) }
	var bodies []*body
	for _, n := range []int{17, 23, 35} {
		bodies = append(bodies, says(n))
		turn := r.begin(bodies[len(bodies)-1], engine.WishNone)
		if n == 17 {
			turn.Condense(t.Context())
			<-summariser.asked
		} else {
			r.standsIn(turn)
		}
		r.logged(turn)
	}
	close(summariser.free)
	for _, b := range bodies {
		b.work.Wait()
	}
	if asked := len(summariser.asked); asked != 1 {
		t.Errorf("asked for %d missing summaries", asked)
	}
	last := says(47)
	defer last.work.Wait()
	due := r.begin(last, engine.WishNone)
	report := due.Condense(t.Context())
	if len(report.Attempts) == 0 || report.Attempts[0].Redeems == 0 || !bytes.Contains(forwarded(due), []byte("the sea.")) {
		t.Errorf("%+v", report)
	}
}

// TestALateSummaryIsShownWhenTheCacheIsCold: a missing summary is written at once, and shown after a pause.
func TestALateSummaryIsShownWhenTheCacheIsCold(t *testing.T) {
	r, summariser := hurrying(t)
	r.late = func(report engine.Report) { r.failed(report) }
	close(summariser.free)
	asked := says(23)
	first := r.begin(asked, engine.WishNone)
	r.standsIn(first)
	r.logged(first)
	asked.work.Wait()
	<-summariser.asked
	second := r.begin(says(25), engine.WishNone)
	if report := second.Condense(t.Context()); len(report.Attempts) > 0 || bytes.Contains(forwarded(second), []byte("the sea.")) {
		t.Errorf("%+v: %s", report, forwarded(second))
	}
	r.logged(second)
	r.clock = time.Now().Add(2 * time.Hour)
	third := r.begin(says(27), engine.WishNone)
	report := third.Condense(t.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || report.Attempts[0].Redeems != 1 || len(summariser.asked) > 0 {
		t.Fatalf("%+v, asked %d times more", report, len(summariser.asked))
	}
	if got := forwarded(third); !bytes.Contains(got, []byte("the sea.")) || bytes.Contains(got, []byte("NOT_SUMMARISED")) || !bytes.Contains(got, []byte(`"26: The`)) {
		t.Errorf("%s", got)
	}
}

// TestALateSummaryDoesNotDelayTheNextCondensation: by price, a late summary is shown with the next condensation, not in its place. Results that
// are trimmed meanwhile change nothing.
func TestALateSummaryDoesNotDelayTheNextCondensation(t *testing.T) {
	for name, history := range map[string]func(n int) *body{
		"words": func(n int) *body { return says(2*n + 1) }, "trimmed results": func(n int) *body { return calls("now", n, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			summariser := held{asked: make(chan struct{}, 99), free: make(chan struct{})}
			close(summariser.free)
			prices := condense.Economics{Read: 0.1, Write: 1.25, Floor: 1000}
			r := newRig(t, condense.Pipeline{Stages: []condense.Condenser{condense.ToolOutputTrim{MaxEventLength: 200}, condense.NewLLM(condense.LLMSettings{
				Settings: condense.Settings{Economics: &prices, KeepFirst: 1}, Summariser: summariser, Model: "cheap",
			})}})
			r.tenant.Never, r.tenant.Ahead = true, true
			late := 0
			for n := 1; n < 400 && late < 3; n++ {
				asked := history(n)
				turn := r.begin(asked, engine.WishNone)
				report := turn.Condense(t.Context())
				r.logged(turn)
				asked.work.Wait()
				if !slices.ContainsFunc(report.Attempts, func(a engine.Attempt) bool { return a.Redeems > 0 }) {
					continue
				}
				late++
				if last := report.Attempts[len(report.Attempts)-1].Made; last == nil || last.Before.Events-last.After.Events < 10 {
					t.Errorf("step %d: %d attempts, the last of them hides too little", n, len(report.Attempts))
				}
			}
			if late < 3 {
				t.Errorf("%d late summaries", late)
			}
		})
	}
}

// TestRequestsAtThePriceGoOnUntilTheirSummaryIsWritten: what is due only by price is not condensed without the summary that is being written, and no
// request waits for it.
func TestRequestsAtThePriceGoOnUntilTheirSummaryIsWritten(t *testing.T) {
	summariser := held{asked: make(chan struct{}, 99), free: make(chan struct{})}
	prices := condense.Economics{Read: 0.1, Write: 1.25, Floor: 1000}
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{Economics: &prices, KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
	}))
	r.tenant.Never, r.tenant.Ahead = true, true
	var begun []*body
	preparing, summarised := 0, false
	for n := 1; n < 100 && !summarised; n++ {
		asked := says(2*n + 1)
		begun = append(begun, asked)
		turn := r.begin(asked, engine.WishNone)
		report := turn.Condense(t.Context())
		r.logged(turn)
		summarised = slices.ContainsFunc(report.Attempts, func(a engine.Attempt) bool { return a.Made != nil && !a.Made.Provisional })
		if report.Outcome != engine.Preparing {
			continue
		}
		if preparing++; len(report.Attempts) > 0 {
			t.Errorf("step %d: %+v", n, report)
		}
		if preparing == 5 {
			close(summariser.free)
			for _, b := range begun {
				b.work.Wait()
			}
		}
	}
	if preparing != 5 || !summarised || len(summariser.asked) != 1 {
		t.Errorf("%d requests went on, then a summary: %t; asked %d times", preparing, summarised, len(summariser.asked))
	}
}

// standsIn condenses a turn and checks that it gets excerpts.
func (r *rig) standsIn(t *request) {
	r.Helper()
	report := t.Condense(r.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || !report.Attempts[0].Made.Provisional || report.Attempts[0].Made.Cause != "at_once" {
		r.Fatalf("%+v", report)
	}
}

// failed fails the test if a report has anything but prepared summaries.
func (r *rig) failed(report engine.Report) {
	for _, a := range report.Attempts {
		if a.Err != nil || !a.Ahead {
			r.Errorf("%+v", a)
		}
	}
}

// replica returns a rig with another engine on the same store.
func (r *rig) replica() *rig {
	r.Helper()
	other := &rig{T: r.T, store: r.store, tenant: r.tenant, clock: r.clock}
	other.start()
	return other
}

// TestClientThatAsksForACondensationWaitsForIt: a client that asks for a condensation waits for it.
func TestClientThatAsksForACondensationWaitsForIt(t *testing.T) {
	r, summariser := hurrying(t)
	close(summariser.free)
	asked := r.begin(says(23), engine.WishNow)
	if report := asked.Condense(t.Context()); len(report.Attempts) != 1 || report.Attempts[0].Made == nil {
		t.Errorf("%+v", report)
	}
}

// TestSummariesArePreparedForOurOwnCount: where upstream counts fewer tokens, a history reaches the window by our own count. Its summary is
// prepared before that, too.
func TestSummariesArePreparedForOurOwnCount(t *testing.T) {
	summariser := held{asked: make(chan struct{}, 99), free: make(chan struct{})}
	close(summariser.free)
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
	}))
	r.tenant.Never, r.tenant.Ahead, r.window = true, true, 3000
	for range 40 { // separate requests
		r.step(21, func(ours int) session.Usage { return session.Usage{Input: ours * 6 / 10} })
	}
	for n := 23; n < 99; n += 2 {
		asked := says(n)
		turn := r.begin(asked, engine.WishNone)
		report := turn.Condense(t.Context())
		r.logged(turn)
		asked.work.Wait()
		if len(report.Attempts) > 0 {
			if made := report.Attempts[0].Made; made == nil || made.Provisional || made.Reason != session.ReasonWindow {
				t.Errorf("%+v", report)
			}
			return
		}
	}
	t.Error("nothing was due")
}

// TestAPreparedSummaryOutlivesTrims: results that are trimmed on arrival do not waste the summary that was prepared before.
func TestAPreparedSummaryOutlivesTrims(t *testing.T) {
	r, summariser := hurrying(t)
	close(summariser.free)
	r.tenant.Condenser = condense.Pipeline{Stages: []condense.Condenser{condense.ToolOutputTrim{MaxEventLength: 200}, r.tenant.Condenser}}
	r.isShownWhenDue(summariser, func(n int) *body { return calls("now", n, 0) })
}

// TestAPreparedSummaryIsCarriedOver: a client that changes its first message at each step pays for a summary once, and gets it.
func TestAPreparedSummaryIsCarriedOver(t *testing.T) {
	r, summariser := hurrying(t)
	close(summariser.free)
	r.isShownWhenDue(summariser, func(n int) *body { return calls(fmt.Sprint("It is ", n), n, 0) })
}

// TestAPostponedSummaryMayBeSwitchedOff: a summary that waits for another one is not begun once condensing is switched off.
func TestAPostponedSummaryMayBeSwitchedOff(t *testing.T) {
	r, summariser := hurrying(t)
	r.late = func(engine.Report) {}
	early, next := says(17), says(23)
	first := r.begin(early, engine.WishNone)
	first.Condense(t.Context())
	<-summariser.asked
	r.logged(first)
	second := r.begin(next, engine.WishNone)
	r.standsIn(second)
	r.logged(second)
	off := r.tenant
	off.Off = true
	r.engine.Swap(engine.Settings{Tenants: []*engine.Tenant{&off}, Dialects: r.settings.Dialects, Models: r.settings.Models})
	close(summariser.free)
	early.work.Wait()
	next.work.Wait()
	if n := len(summariser.asked); n != 0 {
		t.Errorf("%d summaries begun after condensing was switched off", n)
	}
}

// TestAnEditedMessageIsNotSummarised: so that a client that edits it at each step, and calls no tools, gets the one summary paid for too.
func TestAnEditedMessageIsNotSummarised(t *testing.T) {
	for name, head := range map[string]string{
		"third": `{"role":"user","content":"Sail."},{"role":"assistant","content":"Aye."}`,
		"fifth": `{"role":"user","content":"Sail."},{"role":"assistant","content":"Aye."},{"role":"user","content":"West."},{"role":"assistant","content":"Aye."}`,
	} {
		t.Run(name, func(t *testing.T) {
			summariser := held{asked: make(chan struct{}, 99), free: make(chan struct{})}
			close(summariser.free)
			r := newRig(t, condense.NewLLM(condense.LLMSettings{
				Settings: condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
			}))
			r.key, r.tenant.Never, r.tenant.Ahead = "k", true, true
			for n := range 40 {
				all := []string{head, fmt.Sprintf(`{"role":"user","content":"It is %d."}`, n)}
				for i := range n {
					all = append(all, fmt.Sprintf(`{"role":"assistant","content":"Step %d."}`, i), `{"role":"user","content":"`+strings.Repeat("The sea is deep. ", 20)+`"}`)
				}
				asked := &body{bytes: []byte(`{"model":"m","messages":[` + strings.Join(all, ",") + `]}`)}
				turn := r.begin(asked, engine.WishNone)
				turn.Condense(t.Context())
				r.logged(turn)
				asked.work.Wait()
				if sent := forwarded(turn); n > 15 && (!bytes.Contains(sent, []byte("the sea.")) || !bytes.Contains(sent, fmt.Appendf(nil, "It is %d.", n))) {
					t.Fatalf("step %d: %s", n, sent)
				}
			}
			if paid := len(summariser.asked); paid > 8 {
				t.Errorf("%d summaries were paid for", paid)
			}
		})
	}
}

// slides returns the body at step n of a client that sends the first message and the 30 newest ones.
func slides(n int) *body {
	all := []string{`{"role":"user","content":"Sail."}`}
	for i := max(n-15, 0); i < n; i++ {
		all = append(all,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"call_%024d","type":"function","function":{"name":"look","arguments":"{}"}}]}`, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":"call_%024d","content":"%s"}`, i, strings.Repeat("The sea is deep. ", 20)))
	}
	return &body{bytes: []byte(`{"model":"m","messages":[` + strings.Join(all, ",") + `]}`)}
}

// TestASummaryIsPreparedOnceForASlidingWindow: a client that stays just below its limit has a summary prepared, but not one for each request.
func TestASummaryIsPreparedOnceForASlidingWindow(t *testing.T) {
	summariser := held{asked: make(chan struct{}, 99), free: make(chan struct{})}
	close(summariser.free)
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 34, KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
	}))
	r.tenant.Never, r.tenant.Ahead = true, true
	for n := range 30 {
		asked := slides(n)
		turn := r.begin(asked, engine.WishNone)
		turn.Condense(t.Context())
		r.logged(turn)
		asked.work.Wait()
	}
	if paid := len(summariser.asked); paid < 1 || paid > 5 {
		t.Errorf("%d summaries were paid for", paid)
	}
}

// TestASummaryOutlivesASlidingWindow: a client that sends the first message and the newest ones gets the summaries that are paid for,
// whether it waits for them or not, in front of what they do not stand for.
func TestASummaryOutlivesASlidingWindow(t *testing.T) {
	for name, waits := range map[string]bool{"waits": true, "does not wait": false} {
		t.Run(name, func(t *testing.T) {
			summariser := held{asked: make(chan struct{}, 99), free: make(chan struct{})}
			close(summariser.free)
			r := newRig(t, condense.NewLLM(condense.LLMSettings{
				Settings: condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
			}))
			r.tenant.Never, r.tenant.Ahead = !waits, true
			for n := range 60 {
				asked := slides(n)
				turn := r.begin(asked, engine.WishNone)
				turn.Condense(t.Context())
				r.logged(turn)
				asked.work.Wait()
				sent := string(forwarded(turn))
				head, _, _ := strings.Cut(sent, "the sea.")
				if n > 10 && (len(head) == len(sent) || strings.Count(head, `"role"`) > 2 || turn.Sent().Events > 20) {
					t.Fatalf("step %d: %s", n, sent)
				}
			}
			if paid := len(summariser.asked); paid > 12 {
				t.Errorf("%d summaries were paid for", paid)
			}
		})
	}
}

// TestSummariesThatAreLostAreNotPaidForAtEachStep: a client may change what a summary hides before each request. Once it goes on with what
// it sent before, a summary is written.
func TestSummariesThatAreLostAreNotPaidForAtEachStep(t *testing.T) {
	for name, waits := range map[string]bool{"waits": true, "does not wait": false} {
		t.Run(name, func(t *testing.T) {
			summariser := held{asked: make(chan struct{}, 99), free: make(chan struct{})}
			close(summariser.free)
			r := newRig(t, condense.NewLLM(condense.LLMSettings{
				Settings: condense.Settings{MaxSize: 20, KeepFirst: 1, BackgroundAt: 0.8}, Summariser: summariser, Model: "cheap",
			}))
			r.key, r.tenant.Never, r.tenant.Ahead = "k", !waits, true
			all := []string{`{"role":"user","content":"Sail."}`}
			step := func(n int) string {
				all = append(all, fmt.Sprintf(`{"role":"assistant","content":"Step %d."}`, n), `{"role":"user","content":"`+strings.Repeat("The sea is deep. ", 20)+`"}`)
				asked := &body{bytes: []byte(`{"model":"m","messages":[` + strings.Join(all, ",") + `]}`)}
				turn := r.begin(asked, engine.WishNone)
				turn.Condense(t.Context())
				r.logged(turn)
				asked.work.Wait()
				if turn.Sent().Events > 20 {
					t.Errorf("step %d: %d messages are forwarded", n, turn.Sent().Events)
				}
				return string(forwarded(turn))
			}
			for n := range 40 {
				all[0] = fmt.Sprintf(`{"role":"user","content":"It is %d."}`, n)
				if n > 0 {
					all[2] = fmt.Sprintf(`{"role":"user","content":"The wind is %d."}`, n)
				}
				step(n)
			}
			if paid := len(summariser.asked); paid > 6 {
				t.Errorf("%d summaries were paid for", paid)
			}
			for n := 40; !strings.Contains(step(n), "the sea."); n++ {
				if n == 60 {
					t.Fatal("there is no summary although the history does not change any more")
				}
			}
		})
	}
}

// isShownWhenDue sends a growing history until it is condensed, and checks that it then has the one summary that was paid for.
func (r *rig) isShownWhenDue(summariser held, history func(calls int) *body) {
	r.Helper()
	for n := 2; n < 20; n++ {
		asked := history(n)
		turn := r.begin(asked, engine.WishNone)
		turn.Condense(r.Context())
		r.logged(turn)
		asked.work.Wait()
		if turn.Sent().Events == turn.Turn().Before().Events {
			continue
		}
		if paid := len(summariser.asked); paid != 1 || !bytes.Contains(forwarded(turn), []byte("the sea.")) {
			r.Errorf("%d summaries were paid for, %d calls, shown: %s", paid, n, forwarded(turn))
		}
		return
	}
	r.Error("nothing was condensed")
}
