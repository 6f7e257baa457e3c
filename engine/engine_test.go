package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/known/overflow"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// rig is an engine with its own store and one tenant.
type rig struct {
	*testing.T
	store    session.Store
	engine   *engine.Engine
	settings *engine.Settings
	tenant   engine.Tenant
	window   int
	late     func(engine.Report)
	client   string // its credential
	key      string // its session key
	upstream string

	configured bool      // the window is configured
	clock      time.Time // frozen at this time; zero: the real clock
}

func newRig(t *testing.T, condenser condense.Condenser) *rig {
	t.Helper()
	store, err := boltstore.Open(boltstore.Options{Path: filepath.Join(t.TempDir(), "store.db"), Content: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	r := &rig{T: t, store: store, tenant: engine.Tenant{Name: "a", Condenser: condenser}, clock: time.Unix(1_700_000_000, 0)}
	r.start()
	return r
}

// start starts an engine on the rig's store, as a further replica does.
func (r *rig) start() {
	r.Helper()
	var err error
	r.engine, err = engine.New(engine.Options{
		Sessions: sessions{r.store}, Tokens: &calibrated{}, Now: func() time.Time {
			if r.clock.IsZero() {
				return time.Now()
			}
			return r.clock
		},
	})
	must(r.T, err)
	r.settings = r.engine.Swap(engine.Settings{
		Tenants: []*engine.Tenant{&r.tenant}, Dialects: []dialect.Dialect{chat.New(chat.Options{})},
		Models: func(name string) engine.Model {
			return engine.Model{Name: name, Window: r.window, Configured: r.configured}
		},
	})
}

// begin begins the turn of a request.
func (r *rig) begin(b *body, wish engine.Wish) *request {
	r.Helper()
	t, err := r.tryBegin(b, wish)
	must(r.T, err)
	return t
}

func (r *rig) tryBegin(b *body, wish engine.Wish) (*request, error) {
	r.Helper()
	split, err := r.settings.Dialects[0].Split("", b.bytes)
	must(r.T, err)
	ctx, leave := context.WithCancel(r.Context())
	defer leave() // a turn outlives its client
	form, err := r.engine.Begin(ctx, engine.Input{
		Settings: r.settings, Tenant: &r.tenant, Wish: wish,
		Dialect: r.settings.Dialects[0], Split: split, Model: r.settings.Models(split.Model), Body: b, Late: r.late,
		Client: engine.Client{Credential: r.client, Header: r.header}, Upstream: condense.Endpoint{BaseURL: r.upstream, APIKey: r.client},
	})
	return &request{form}, err
}

// request goes from form to form.
type request struct{ *engine.Form }

func (r *request) Condense(ctx context.Context) (report engine.Report) {
	r.Form, report = r.Form.Condense(ctx)
	return report
}

// refuse has upstream refuse the request, and reports whether it is sent again in another form.
func (r *request) refuse(ctx context.Context, why overflow.Refusal) (report engine.Report, again bool) {
	why.Status = cmp.Or(why.Status, 400)
	r.Form, report = r.Form.Next(ctx, why)
	return report, report.Remedy != ""
}

func (r *request) overflow(ctx context.Context, over overflow.Overflow) (engine.Report, bool) {
	return r.refuse(ctx, overflow.Refusal{Overflow: &over})
}

// settle ends a request that upstream took, or refused once more.
func (r *request) settle(ctx context.Context, taken bool) (report engine.Report) {
	var why overflow.Refusal
	if !taken {
		why.Status = 400
	}
	r.Form, report = r.Form.Settle(ctx, taken, why)
	return report
}

func (r *request) Unanswered(ctx context.Context) (report engine.Report) {
	r.Form, report = r.Form.Unanswered(ctx)
	return report
}

func (r *request) Log() (write func(context.Context) (bool, error)) {
	r.Form, write = r.Form.Log()
	return write
}

func (r *request) LimitTo(tokens int) { r.Form = r.Form.LimitTo(tokens) }

// header returns the session key for the first of the headers that may name a session, and nothing for the others.
func (r *rig) header(name string) string {
	if name == agents.SessionHeaders()[0] {
		return r.key
	}
	return ""
}

// logged writes a turn's messages to the log.
func (r *rig) logged(t *request) {
	r.Helper()
	_, err := t.Log()(r.Context())
	must(r.T, err)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// sessions provides a store that is always available.
type sessions struct{ store session.Store }

var secret = session.Secret("a secret of thirty-two bytes, so")

func (s sessions) Registry(context.Context) (*session.Registry, session.Store, session.Secret, error) {
	return session.NewRegistry(s.store, secret), s.store, secret, nil
}

// quarters counts one token for every four bytes.
type quarters struct{}

func (quarters) Counter(string) engine.Counter   { return quarters{} }
func (quarters) Observe(string, int, int, bool)  {}
func (quarters) Adjust(_ string, n int) int      { return n }
func (quarters) Encoding() string                { return "quarters" }
func (quarters) Text(s string) int               { return (len(s) + 3) / 4 }
func (q quarters) Message(c session.Content) int { return 4 + q.Text(c.Text) }

// body counts its holders.
type body struct {
	bytes []byte
	held  atomic.Int32
	work  sync.WaitGroup // one for each hold
}

func (b *body) Hold() {
	b.held.Add(1)
	b.work.Add(1)
}

func (b *body) Release() {
	b.held.Add(-1)
	b.work.Done()
}

// says returns a request with n messages, the last of them the user's.
func says(n int) *body {
	var all []string
	for i := range n {
		role := []string{"user", "assistant"}[i%2]
		all = append(all, fmt.Sprintf(`{"role":%q,"content":"%d: %s"}`, role, i, strings.Repeat("The sea is deep. ", 20)))
	}
	return &body{bytes: []byte(`{"model":"m","messages":[` + strings.Join(all, ",") + `]}`)}
}

func forwarded(t *request) []byte { return bytes.Join(t.Body(), nil) }

func rolling() condense.Condenser {
	return condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}}
}

// TestTurn runs turns without a client or a connection: a condensation is made when it is due, and applies to the requests that follow.
func TestTurn(t *testing.T) {
	r := newRig(t, rolling())
	first := r.begin(says(9), engine.WishNone)
	if report := first.Condense(t.Context()); len(report.Attempts) != 0 || !first.Place().New {
		t.Errorf("nothing is due: %+v, new %t", report, first.Place().New)
	}
	if !bytes.Equal(forwarded(first), says(9).bytes) {
		t.Error("below every threshold the body is forwarded unchanged")
	}
	r.logged(first)
	must(t, first.Answered(dialect.Answer{Text: "Very."}, nil)(t.Context()))

	second := r.begin(says(21), engine.WishNone)
	if second.Place().New || second.Place().Thread.ID != first.Place().Thread.ID || second.Turn().Known() == 0 {
		t.Errorf("the thread is not recognised: %+v", second.Place())
	}
	report := second.Condense(t.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made == nil || len(second.Condensed()) != 1 {
		t.Fatalf("report %+v", report)
	}
	if before, sent := second.Turn().Before(), second.Sent(); sent.Tokens >= before.Tokens || before.Events != 21 {
		t.Errorf("before %+v, sent %+v", before, sent)
	}
	r.logged(second)

	third := r.begin(says(21), engine.WishNone)
	if third.Condense(t.Context()); !bytes.Equal(forwarded(third), forwarded(second)) {
		t.Error("the condensation does not hold for the next request")
	}
	if off := r.begin(says(21), engine.WishOff); !bytes.Equal(forwarded(off), says(21).bytes) {
		t.Error("a client that wants nothing condensed gets something condensed")
	}
}

// TestReportOfAFailure: the failure of a summariser is reported with its cost, and the request goes on unchanged.
func TestReportOfAFailure(t *testing.T) {
	away := errors.New("summariser away")
	r := newRig(t, nil)
	r.tenant.Condenser = condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Model: "cheap", Summariser: failing(func(ctx context.Context) error {
			r.clock = r.clock.Add(time.Second)
			limit.Bill(ctx, limit.Call{Model: "cheap", Failed: true})
			return away
		}),
	})
	turn := r.begin(says(21), engine.WishNone)
	report := turn.Condense(t.Context())
	if len(report.Attempts) != 1 || report.Attempts[0].Made != nil || !errors.Is(report.Attempts[0].Err, away) {
		t.Fatalf("report %+v", report)
	}
	cost := session.Cost{Calls: 1, Took: time.Second}
	if saved, err := r.store.Saved(t.Context(), turn.Place().Thread.ID); err != nil || saved.Cost != cost || report.Attempts[0].Cost != cost {
		t.Errorf("the thread has %+v, %v; the report %+v", saved, err, report.Attempts[0].Cost)
	}
	if !bytes.Equal(forwarded(turn), says(21).bytes) {
		t.Error("something was forgotten")
	}
}

// TestCostOfAFailure: a call that the server may charge although it gave no reply counts in the savings and in the holdout.
func TestCostOfAFailure(t *testing.T) {
	const share = 1e-9 // of sessions held out: practically none
	r := newRig(t, condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Model: "cheap", Summariser: failing(func(ctx context.Context) error {
			limit.Bill(ctx, limit.Call{Model: "cheap", Input: 100, USD: 0.002, Known: true, Failed: true})
			return errors.New("summariser stalled")
		}),
	}))
	r.tenant.Holdout.Share = share
	first := r.begin(says(9), engine.WishNone)
	r.logged(first)
	must(t, first.Compare(t.Context(), 0, true))
	turn := r.begin(says(21), engine.WishNone)
	turn.Condense(t.Context())
	cost := session.Cost{Calls: 1, Used: session.Usage{Input: 100}, Nano: 2e6}
	if saved, err := r.store.Saved(t.Context(), turn.Place().Thread.ID); err != nil || saved.Cost != cost {
		t.Errorf("the thread has %+v, %v", saved, err)
	}
	held, err := r.engine.Experiment(t.Context(), r.tenant.Name, session.Holdout{Share: share})
	must(t, err)
	var nano int64
	for _, group := range held.Arms[session.Treated] {
		nano += group.Nano
	}
	if nano != cost.Nano {
		t.Errorf("the holdout has %+v", held)
	}
}

// failing is a summariser that never replies.
type failing func(ctx context.Context) error

func (f failing) Summarise(ctx context.Context, _ condense.Request) (condense.Reply, error) {
	return condense.Reply{}, f(ctx)
}

// TestReportOfAnObservingTenant: the report says what would have been condensed, and nothing is.
func TestReportOfAnObservingTenant(t *testing.T) {
	r := newRig(t, rolling())
	r.tenant.Observe = true
	turn := r.begin(says(21), engine.WishNone)
	if report := turn.Condense(t.Context()); report.Due != session.ReasonEvents || len(report.Attempts) != 0 {
		t.Errorf("report %+v", report)
	}
	if !bytes.Equal(forwarded(turn), says(21).bytes) || turn.Sent() != turn.Turn().Before() {
		t.Error("something else than the body is forwarded")
	}
}

// TestMayRetry: a request that is never changed is sent once.
func TestMayRetry(t *testing.T) {
	for _, c := range []struct {
		condenser condense.Condenser
		wish      engine.Wish
		want      bool
	}{
		{rolling(), engine.WishNone, true},
		{rolling(), engine.WishOff, false},
		{condense.Noop{}, engine.WishNone, false},
	} {
		if got := newRig(t, c.condenser).begin(says(9), c.wish).MayRetry(); got != c.want {
			t.Errorf("%s, wish %v: %t", c.condenser.Name(), c.wish, got)
		}
	}
}

// TestOverflowMakesTheRequestSmaller: an overflow makes the request smaller, and the window is learnt once it is certain that the request was too long.
func TestOverflowMakesTheRequestSmaller(t *testing.T) {
	r := newRig(t, condense.AmortizedForgetting{Settings: condense.Settings{KeepFirst: 1}})
	r.window = 100_000
	turn := r.begin(says(21), engine.WishNone)
	r.logged(turn)
	before := turn.Sent().Tokens
	if _, smaller := turn.overflow(t.Context(), overflow.Overflow{ByOutput: true}); smaller {
		t.Error("a shorter history does not help where the answer is too long")
	}
	report, smaller := turn.overflow(t.Context(), overflow.Overflow{})
	if !smaller || turn.Sent().Tokens >= before || report.Window != 0 {
		t.Errorf("report %+v, %d tokens of %d", report, turn.Sent().Tokens, before)
	}
	if report := turn.settle(t.Context(), true); report.Window != before || len(report.Attempts) == 0 || report.Attempts[0].Made == nil {
		t.Errorf("%d tokens were too many, learnt %+v", before, report)
	}
	for _, taken := range []bool{false, true} {
		named := r.begin(says(41), engine.WishNone)
		r.logged(named)
		if report, smaller := named.overflow(t.Context(), overflow.Overflow{Limit: 600}); !smaller {
			t.Fatalf("upstream told of its window: %+v", report)
		}
		report, want := named.settle(t.Context(), taken), 0
		if taken {
			want = 600
		}
		if report.Window != want || len(report.Attempts) == 0 || (report.Attempts[0].Made != nil) != taken {
			t.Errorf("taken %t: %+v", taken, report)
		}
	}
}

// TestAcceptedCondensationIsLogged: an accepted condensation is logged even if its client has left and another request holds the thread's lock. If
// upstream did not answer, only condensations made by a model are.
func TestAcceptedCondensationIsLogged(t *testing.T) {
	r := newRig(t, condense.AmortizedForgetting{Settings: condense.Settings{KeepFirst: 1}})
	for _, answered := range []bool{false, true} {
		turn := r.begin(says(41), engine.WishNone)
		r.logged(turn)
		if _, smaller := turn.overflow(t.Context(), overflow.Overflow{Limit: 600}); !smaller {
			t.Fatal("nothing was condensed")
		}
		lease, err := r.store.Lock(t.Context(), turn.Place().Thread.ID, time.Hour)
		must(t, err)
		gone, leave := context.WithCancel(t.Context())
		leave()
		var report engine.Report
		if answered {
			report = turn.settle(gone, true)
		} else {
			report = turn.Unanswered(gone)
		}
		lease.Release()
		if kept := len(report.Attempts) == 1 && report.Attempts[0].Made != nil; kept != answered {
			t.Errorf("answered %t: %+v", answered, report)
		}
	}
	if next := r.begin(says(41), engine.WishNone); next.Sent() == next.Turn().Before() {
		t.Error("the next request is forwarded as it came")
	}
}

// TestAlternationIsForgottenAfterTheLastRefusal: roles alternate for hours after upstream last refused others, not after it last accepted alternating ones.
func TestAlternationIsForgottenAfterTheLastRefusal(t *testing.T) {
	r := newRig(t, rolling())
	asked := func() bool { // reports whether upstream's refusal changes anything
		turn := r.begin(says(21), engine.WishNone)
		turn.Condense(t.Context())
		r.logged(turn)
		_, news := turn.refuse(t.Context(), overflow.Refusal{Status: 429, Alternates: true}) // for which there is no other remedy
		turn.settle(t.Context(), true)
		return news
	}
	if !asked() || asked() {
		t.Fatal("it is not learnt")
	}
	r.clock = r.clock.Add(4 * time.Hour)
	late := r.begin(says(21), engine.WishNone)
	if asked() {
		t.Error("it is forgotten at once")
	}
	r.clock = r.clock.Add(3 * time.Hour)
	late.settle(t.Context(), true)
	if !asked() {
		t.Error("it is never forgotten")
	}
}

// TestBodyIsHeldForTheLog: a turn holds its body until its messages are logged, even if its request ends earlier.
func TestBodyIsHeldForTheLog(t *testing.T) {
	r := newRig(t, condense.Noop{})
	b := says(3)
	b.Hold() // by the request
	turn := r.begin(b, engine.WishNone)
	write := turn.Log()
	b.Release()
	if n := b.held.Load(); n != 1 {
		t.Errorf("%d hold the body while the log waits", n)
	}
	if wrote, err := write(t.Context()); !wrote || err != nil || b.held.Load() != 0 {
		t.Errorf("wrote %t, %v, %d hold the body", wrote, err, b.held.Load())
	}
}

// TestBodyIsHeldForTheAnswer: if upstream keeps the history, the log is written after the answer, and may still need the request's body
// when the request has ended.
func TestBodyIsHeldForTheAnswer(t *testing.T) {
	r := newRig(t, condense.Noop{})
	r.settings = r.engine.Swap(engine.Settings{
		Tenants: []*engine.Tenant{&r.tenant}, Dialects: []dialect.Dialect{responses.New(split.Options{})}, Models: r.settings.Models,
	})
	const system = `{"role":"system","content":"Be brief."}`
	b := &body{bytes: []byte(`{"model":"m","previous_response_id":"resp_1","input":[` + system + `,{"role":"user","content":"And on."}]}`)}
	b.Hold() // by the request
	turn := r.begin(b, engine.WishNone)
	r.logged(turn)
	mark := turn.Answered(dialect.Answer{ID: "resp_2", Text: "Very."}, nil)
	b.Release()
	if n := b.held.Load(); n != 1 {
		t.Errorf("%d hold the body while the answer waits to be logged", n)
	}
	if b.held.Load() == 0 {
		clear(b.bytes) // another request has the buffer
	}
	must(t, mark(t.Context()))
	if n := b.held.Load(); n != 0 {
		t.Errorf("%d hold the body after that", n)
	}
	events, err := r.store.Events(t.Context(), turn.Place().Thread.ID, 1, 10)
	must(t, err)
	if len(events) == 0 || string(events[0].Payload) != system {
		t.Errorf("logged %+v, want the system message first", events)
	}
}

// TestShow: a logged history is shown as it would be forwarded, without a request.
func TestShow(t *testing.T) {
	r := newRig(t, rolling())
	turn := r.begin(says(21), engine.WishNone)
	report := turn.Condense(t.Context())
	split, err := r.settings.Dialects[0].Split("", says(21).bytes)
	must(t, err)
	history := session.NewHistory(secret.Seed(session.Scope{Tenant: "a"}), split.Messages)
	past := engine.Past{Tenant: "a", Condensations: []session.Condensation{*report.Attempts[0].Made}}
	for p := 1; p <= history.Len(); p++ {
		past.Messages, past.Chain = append(past.Messages, history.Message(p).Raw), append(past.Chain, history.Chain[p])
	}
	shown, err := r.engine.Show(past)
	must(t, err)
	if got := bytes.Join(shown.Messages, []byte{','}); !bytes.Contains(forwarded(turn), got) || shown.After != turn.Sent() {
		t.Errorf("shown %+v, forwarded %+v: %s", shown.After, turn.Sent(), got)
	}
	r.engine.Swap(engine.Settings{Models: r.settings.Models})
	if _, err := r.engine.Show(past); err == nil {
		t.Error("shown without a dialect")
	}
}

// TestCloseOfAnIdleEngine: closing succeeds even if no time is left, since no condensation is cancelled.
func TestCloseOfAnIdleEngine(t *testing.T) {
	r := newRig(t, condense.Noop{})
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		must(t, r.engine.Close(over))
	}
}

// TestClientThatOptedOutIsToldWhatWasDue: a client that opted out gets no condensation, and is told what was due.
func TestClientThatOptedOutIsToldWhatWasDue(t *testing.T) {
	r := newRig(t, rolling())
	turn := r.begin(says(21), engine.WishOff)
	if report := turn.Condense(t.Context()); report.Overall() != engine.Off || report.Supposed.Due != session.ReasonEvents || len(report.Attempts) != 0 {
		t.Errorf("%+v", report)
	}
	if !bytes.Equal(forwarded(turn), says(21).bytes) {
		t.Error("the body is changed")
	}
}

// TestLowestLimitAsksForACondensation: a budget that saves asks for a condensation of what exceeds its limit, and only of that. The lowest limit counts.
func TestLowestLimitAsksForACondensation(t *testing.T) {
	for above, condenses := range map[int]bool{-1: true, 0: false, 1: false} {
		r := newRig(t, condense.AmortizedForgetting{Settings: condense.Settings{MaxSize: 1000, KeepFirst: 1}})
		turn := r.begin(says(21), engine.WishNone)
		turn.LimitTo(turn.Sent().Tokens + above)
		turn.LimitTo(turn.Sent().Tokens + 100)
		if report := turn.Condense(t.Context()); (len(report.Attempts) == 1) != condenses {
			t.Errorf("a limit %+d above the request: %+v", above, report)
		}
	}
}
