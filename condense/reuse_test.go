package condense

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// sentRequest is a request of which upstream has most in its cache.
type sentRequest struct {
	cached   int
	question string
	refuses  bool
}

func (s *sentRequest) Cached(*session.View) int { return s.cached }

func (s *sentRequest) Ask(question string, _ int) []byte {
	if s.question = question; s.refuses {
		return nil
	}
	return []byte("{}")
}

// replying returns its replies one after another and records the requests.
type replying struct {
	replies []Reply
	asked   []Request
}

func (a *replying) Summarise(_ context.Context, r Request) (Reply, error) {
	a.asked = append(a.asked, r)
	if len(a.asked) > len(a.replies) {
		return Reply{}, errors.New("asked too often")
	}
	return a.replies[len(a.asked)-1], nil
}

// TestPromptReuse checks that a summary is asked for behind the cached prompt if that is cheaper, and never if it could not cover
// everything that is hidden, has no room, or is not cached any more.
func TestPromptReuse(t *testing.T) {
	good := Reply{Text: "COMPLETED: the parser.\n**NEXT_STEP**: its tests.", Finish: "stop", Usage: session.Usage{Input: 9000, Cached: 8000, Output: 50}}
	paid := Reply{Text: "COMPLETED: the parser.", Finish: "stop", Usage: session.Usage{Input: 5000, Output: 50}}
	call, cut, goesOn := good, good, good
	call.Finish, cut.Finish, goesOn.Text = "tool_calls", "length", "**Running the tests now.**\n# Plan\nNEXT_STEP: push to main."
	economics := Economics{Read: 1, Write: 10, Answer: 50, In: 10, Out: 50, Life: 5 * time.Minute}
	for name, c := range map[string]struct {
		change  func(in *Input, s *LLMSettings, sent *sentRequest)
		replies []Reply
		reused  bool // the first call was behind the prompt
		want    session.Asked
	}{
		"warm":                        {nil, []Reply{good}, true, session.AskedCached},
		"a call of a tool":            {nil, []Reply{call, paid}, true, session.AskedCachedInVain},
		"the work goes on":            {nil, []Reply{goesOn, paid}, true, session.AskedCachedInVain},
		"the model has just reasoned": {func(in *Input, _ *LLMSettings, _ *sentRequest) { in.View = reasoned(in.View) }, []Reply{paid}, false, session.AskedCold},
		"cut off":                     {nil, []Reply{cut, paid}, true, session.AskedCachedInVain},
		"upstream reported no cache":  {func(_ *Input, _ *LLMSettings, s *sentRequest) { s.cached = 0 }, []Reply{paid}, false, session.AskedCold},
		"the cache has little of it":  {func(_ *Input, _ *LLMSettings, s *sentRequest) { s.cached = 1000 }, []Reply{paid}, false, session.AskedCold},
		"idle for less than its life": {func(in *Input, _ *LLMSettings, _ *sentRequest) { in.Thread.Idle = 4 * time.Minute }, []Reply{good}, true, session.AskedCached},
		"idle for longer than that":   {func(in *Input, _ *LLMSettings, _ *sentRequest) { in.Thread.Idle = 5 * time.Minute }, []Reply{paid}, false, session.AskedCold},
		"no room for the answer":      {func(in *Input, _ *LLMSettings, _ *sentRequest) { in.Window = in.Total + 1500 }, []Reply{paid}, false, session.AskedCold},
		"the request does not fit": {func(in *Input, _ *LLMSettings, _ *sentRequest) {
			in.Need = Need{Reason: session.ReasonOverflow, Hard: true}
		}, []Reply{paid}, false, session.AskedCold},
		"prices are not known":      {func(_ *Input, s *LLMSettings, _ *sentRequest) { s.Reuse = nil }, []Reply{paid}, false, session.AskedCold},
		"its answer cannot be text": {func(_ *Input, _ *LLMSettings, s *sentRequest) { s.refuses = true }, []Reply{paid}, false, session.AskedCold},
		"a cheap model": {func(_ *Input, s *LLMSettings, _ *sentRequest) {
			e := economics
			e.In, e.Out = .1, .4
			s.Reuse = NewPromptReuse(func(string, string) *Economics { return &e })
		}, []Reply{paid}, false, session.AskedCold},
		"excerpts stand in already":    {func(in *Input, _ *LLMSettings, _ *sentRequest) { in.View = standIn(in.View) }, []Reply{good}, true, session.AskedCached},
		"the view was never sent":      {func(in *Input, _ *LLMSettings, _ *sentRequest) { in.View = neverSent(in.View) }, []Reply{paid}, false, session.AskedCold},
		"there is no request to be it": {func(in *Input, _ *LLMSettings, _ *sentRequest) { in.Thread.Sent = nil }, []Reply{paid}, false, session.AskedCold},
	} {
		t.Run(name, func(t *testing.T) {
			sent, model := &sentRequest{cached: 1 << 20}, &replying{replies: c.replies}
			in := reuseInput(24)
			in.Thread.Sent = sent
			s := LLMSettings{Settings: Settings{MaxSize: 20, KeepFirst: 1}, Summariser: model, MaxOutput: 1000}
			s.Reuse = NewPromptReuse(func(string, string) *Economics { return &economics })
			if c.change != nil {
				c.change(&in, &s, sent)
			}
			d := NewLLM(s).Condense(in)
			if d.Job == nil {
				t.Fatal("nothing is due")
			}
			result, err := d.Job.Run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			made := result.Condensation
			made.Request = in.Model
			if reused := model.asked[0].Body != nil; reused != c.reused || made.Asked() != c.want || made.Calls != len(model.asked) {
				t.Errorf("reused %t, asked %q in %d calls", reused, made.Asked(), made.Calls)
			}
			if c.reused != (made.Reused == good.Usage) {
				t.Errorf("%+v was used behind the prompt", made.Reused)
			}
			if c.reused && (!strings.Contains(sent.question, "USER_CONTEXT") || !strings.Contains(sent.question, "messages stay")) {
				t.Errorf("the question is %q", sent.question)
			}
		})
	}
}

// TestFormsAreNotReused checks that records in the form of a function call or a schema are not asked for behind a client's
// prompt.
func TestFormsAreNotReused(t *testing.T) {
	filled := Reply{Arguments: `{"completed_tasks":"the parser"}`, Finish: "tool_calls", Usage: session.Usage{Input: 5000, Output: 50}}
	model, in := &replying{replies: []Reply{filled}}, reuseInput(24)
	in.Thread.Sent = &sentRequest{cached: 1 << 20}
	s := LLMSettings{Settings: Settings{MaxSize: 20, KeepFirst: 1}, Summariser: model, MaxOutput: 1000}
	s.Reuse = warmReuse()
	result, err := NewStructured(s).Condense(in).Job.Run(t.Context())
	if err != nil || model.asked[0].Body != nil || result.Condensation.Asked() != session.AskedCold {
		t.Errorf("%q, %v", result.Condensation.Asked(), err)
	}
}

// warmReuse returns prices at which a summary behind a cached prompt costs a tenth.
func warmReuse() *PromptReuse {
	return NewPromptReuse(func(string, string) *Economics { return &Economics{Read: 1, Write: 10, Answer: 50, In: 10, Out: 50} })
}

// condenseWarm runs the condensation of a request with a warm cache by a new condenser, as for each request.
func condenseWarm(t *testing.T, s LLMSettings, in Input) (session.Condensation, error) {
	t.Helper()
	s.Settings, s.MaxOutput = Settings{MaxSize: 20, KeepFirst: 1}, 1000
	if in.Thread.Sent == nil {
		in.Thread.Sent = &sentRequest{cached: 1 << 20}
	}
	d := NewLLM(s).Condense(in)
	if d.Job == nil {
		t.Fatalf("nothing is due: %s", d.Obstacle)
	}
	r, err := d.Job.Run(t.Context())
	return r.Condensation, err
}

var (
	reusedWell = Reply{Text: "COMPLETED: the parser.\nNEXT_STEP: its tests.", Finish: "stop", Usage: session.Usage{Input: 12000, Cached: 11000, Output: 50}}
	wentCold   = Reply{Text: "COMPLETED: the parser.", Finish: "stop", Usage: session.Usage{Input: 5000, Output: 50}}
)

// TestVainReuseIsRemembered checks that a thread whose call behind its prompt was useless makes no such call for a while:
// a minute if the call gave no reply, else an hour. Other threads make none either once a second thread had a useless reply
// as well, but never because of a call without a reply. Calls that were not made, and those of other models, do not count.
func TestVainReuseIsRemembered(t *testing.T) {
	tool, missed, half, less := reusedWell, reusedWell, reusedWell, reusedWell
	tool.Finish, missed.Usage.Cached = "tool_calls", 1000
	half.Usage.Cached, less.Usage.Cached = 11_500/2, 11_500/2-1 // of the tokens before the newest message
	type outcome struct {
		reply   Reply
		kind    Failure
		refuses bool
		rests   time.Duration
	}
	for name, c := range map[string]outcome{
		"well":                  {reply: reusedWell},
		"a call of a tool":      {reply: tool, rests: time.Hour},
		"not in the cache":      {reply: missed, rests: time.Hour},
		"half in the cache":     {reply: half},
		"less than half":        {reply: less, rests: time.Hour},
		"rejected":              {kind: FailureRejected, rests: time.Hour},
		"denied":                {kind: FailureDenied, rests: time.Minute},
		"it could not be asked": {refuses: true},
		"not called":            {kind: FailureLimited},
		"too many requests":     {kind: FailureRateLimited, rests: time.Minute},
		"server error":          {kind: FailureServer, rests: time.Minute},
		"unreachable":           {kind: FailureUnreachable, rests: time.Minute},
		"timeout":               {kind: FailureTimeout, rests: time.Minute},
		"deadline":              {kind: FailureDeadline, rests: time.Minute},
		"canceled":              {kind: FailureCanceled, rests: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reuse := warmReuse()
				asks := func(thread, model string, o outcome) (reused bool) {
					in := reuseInput(24)
					in.Thread.Name, in.Model = thread, model
					in.Thread.Sent = &sentRequest{cached: 1 << 20, refuses: o.refuses}
					summariser := answering(func(_ context.Context, r Request) (Reply, error) {
						if r.Body == nil {
							return wentCold, nil
						}
						if reused = true; o.kind != "" {
							return Reply{}, &CallError{Kind: o.kind}
						}
						return o.reply, nil
					})
					if _, err := condenseWarm(t, LLMSettings{Summariser: summariser, Reuse: reuse}, in); err != nil {
						t.Fatal(err)
					}
					return reused
				}
				well := outcome{reply: reusedWell}
				for range 2 { // twice in one thread is still one thread
					asks("one", "own", c)
					if again := asks("one", "own", well); again != (c.rests == 0) {
						t.Errorf("the thread asks again: %t", again)
					}
					if !asks("two", "own", well) || !asks("one", "another", well) {
						t.Error("another thread or model is not asked")
					}
					if time.Sleep(c.rests); !asks("one", "own", well) {
						t.Error("it is not asked any more")
					}
				}
				asks("one", "own", c)
				asks("two", "own", c)
				if asked := asks("three", "own", well); asked != (c.rests < time.Hour) || !asks("three", "another", well) {
					t.Errorf("a third thread asks after two in vain: %t", asked)
				}
				if time.Sleep(c.rests); !asks("three", "own", well) {
					t.Error("a third thread does not ask any more")
				}
			})
		})
	}
}

// watching is a Health that counts the calls of its methods.
type watching struct {
	Health
	began int
	ended []error
}

func (w *watching) Ready(Attempt) bool   { return true }
func (w *watching) Missing(Attempt) bool { return false }
func (w *watching) Window(Attempt) int   { return 0 }

func (w *watching) Begin(Attempt) bool {
	w.began++
	return true
}

func (w *watching) End(_ Attempt, err error) { w.ended = append(w.ended, err) }

// TestPromptReuseTellsNothingOfTheSummariser checks that a call behind the prompt is not reported to the configured model's health,
// whether it succeeds or fails.
func TestPromptReuseTellsNothingOfTheSummariser(t *testing.T) {
	for name, c := range map[string]struct {
		replies []Reply
		told    int
	}{"it reused": {[]Reply{reusedWell}, 0}, "in vain": {[]Reply{{Text: "No.", Finish: "stop"}, wentCold}, 1}} {
		h := &watching{}
		if _, err := condenseWarm(t, LLMSettings{Summariser: &replying{replies: c.replies}, Model: "cheap", Health: h, Reuse: warmReuse()}, reuseInput(24)); err != nil {
			t.Fatal(err)
		}
		if h.began != c.told || len(h.ended) != c.told || c.told > 0 && h.ended[0] != nil {
			t.Errorf("%s: began %d times, ended with %v", name, h.began, h.ended)
		}
	}
}

// answering is a Summariser that calls a function.
type answering func(context.Context, Request) (Reply, error)

func (a answering) Summarise(ctx context.Context, r Request) (Reply, error) { return a(ctx, r) }

// TestPromptReuseLeavesTheSummariserTime checks that a call behind the prompt gets half of the time, and the summariser the rest.
func TestPromptReuseLeavesTheSummariserTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		model := answering(func(ctx context.Context, r Request) (Reply, error) {
			if r.Body == nil {
				return wentCold, ctx.Err()
			}
			<-ctx.Done()
			return Reply{}, &CallError{Kind: FailureDeadline, Err: ctx.Err()}
		})
		in := reuseInput(24)
		in.Thread.Sent = &sentRequest{cached: 1 << 20}
		s := LLMSettings{Settings: Settings{MaxSize: 20, KeepFirst: 1}, Summariser: model, MaxOutput: 1000, Reuse: warmReuse()}
		r, err := NewLLM(s).Condense(in).Job.Run(ctx)
		if took := time.Since(begun); err != nil || r.Condensation.Calls != 2 || took != 30*time.Second {
			t.Errorf("%d calls in %s, %v", r.Condensation.Calls, took, err)
		}
	})
}

// TestNoModelIsAskedInVain checks that no call is made if the user's own words leave no room for a record.
func TestNoModelIsAskedInVain(t *testing.T) {
	in := reuseInput(24)
	for i := range in.View.History.Messages {
		if m := &in.View.History.Messages[i]; i > 0 && i < len(in.View.History.Messages)-2 { // short messages, the user's own words, and the newest answer
			m.Kind, m.Raw = session.User, fmt.Appendf(nil, "%d: leave %s alone", i, strings.Repeat("that one ", 3+i%2))
		}
	}
	view := session.Project(session.NewHistory(session.Hash{1}, in.View.History.Messages), nil)
	in.View = &view
	in.Measure = func(items []session.Item) []int {
		out := make([]int, len(items))
		for i := range items {
			out[i] = len(items[i].Raw) / 4
		}
		return out
	}
	model := &replying{replies: []Reply{reusedWell}}
	_, err := condenseWarm(t, LLMSettings{Summariser: model, Reuse: warmReuse()}, in)
	if bad, _ := errors.AsType[*SummaryError](err); bad == nil || bad.Kind != FaultCrowded || len(model.asked) > 0 {
		t.Errorf("%v after %d calls", err, len(model.asked))
	}
}

// TestPromptReuseIsPriced checks when a condensation is due by price in a run that has earned a summary. If it would be asked for behind the
// request, the price of that counts; if not, because little is cached, that of the summariser's own prompts counts.
func TestPromptReuseIsPriced(t *testing.T) {
	e := Economics{Read: .1, Write: 1, Answer: 5, In: 1, Out: 5, Floor: 5000}
	s := LLMSettings{Settings: Settings{Economics: &e, KeepFirst: 1}, Reuse: NewPromptReuse(func(string, string) *Economics { return &e })}
	first := func(cached int, change func(*session.View) *session.View) int {
		for n := 12; n < 400; n += 2 {
			in := reuseInput(n)
			in.Thread.Sent, in.View = &sentRequest{cached: cached}, change(in.View)
			if d := NewLLM(s).Condense(in); d.Job != nil {
				return n
			}
		}
		return 0
	}
	cold := first(0, paidFor)
	if warm := first(1<<20, paidFor); warm == 0 || warm >= cold || e.Cached != 0 {
		t.Errorf("due at %d messages where the cache has them, else at %d", warm, cold)
	}
	if partly := first(1000, paidFor); partly != cold {
		t.Errorf("due at %d messages where the cache has little, else at %d", partly, cold)
	}
}

// TestSummariesAreEarned: by price, a run gets excerpts without a call until they have saved what a summary costs, and summaries from then on. Limits
// ask for one at once, and nothing is prepared by price for a run that has not earned it.
func TestSummariesAreEarned(t *testing.T) {
	e := Economics{Read: .1, Write: 1, Answer: 5, In: .2, Out: 1, Floor: 5000}
	condenser := func(limit int) *LLM {
		return NewLLM(LLMSettings{Settings: Settings{Economics: &e, KeepFirst: 1, BackgroundAt: .8, MaxSize: limit}, Summariser: &replying{}, Model: "cheap"})
	}
	in := reuseInput(200)
	for name, c := range map[string]struct {
		view  *session.View
		ahead bool
		limit int
		asks  bool
		none  bool
	}{
		"nothing saved yet":         {view: in.View},
		"saved too little":          {view: condensedView(in.View, saved(100))},
		"paid for":                  {view: paidFor(in.View), asks: true},
		"a limit":                   {view: in.View, limit: 20, asks: true},
		"ahead, nothing saved":      {view: in.View, ahead: true, none: true},
		"ahead, nothing saved, but": {view: in.View, ahead: true, limit: 20, asks: true},
		"ahead, paid for":           {view: paidFor(in.View), ahead: true, asks: true},
	} {
		own := in
		own.View, own.Need.Ahead = c.view, c.ahead
		l := condenser(c.limit)
		if c.limit > 0 {
			l.s.Economics = new(e)
			l.s.Economics.Target = 1 << 20 // not due by price
		}
		d := l.Condense(own)
		if c.none != (d.Job == nil) || d.Job != nil && d.Job.Asks() != c.asks {
			t.Errorf("%s: %+v", name, d)
		}
		if d.Job == nil || c.asks {
			continue
		}
		made, err := d.Job.Run(t.Context())
		if err != nil || !made.Condensation.Provisional || !errors.Is(made.Fallback, ErrUnearned) || made.Later != nil || Cause(made.Fallback) != "unearned" {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
	}
}

// TestDueByMoreTokens checks that a condensation that is due remains due with more tokens, whatever the prices, the window
// and the cache.
func TestDueByMoreTokens(t *testing.T) {
	quick.Alone(t)
	random := rand.New(rand.NewPCG(1, 2))
	byPrice := 0
	for range 500 {
		e := Economics{Read: []float64{.05, .1, .25, .5, 1}[random.IntN(5)], Write: 1 + random.Float64()/4, Answer: 5, Floor: 2000 + random.IntN(8000)}
		e.In = []float64{0, .05, .3, 1}[random.IntN(4)]
		e.Out = 5 * e.In
		s := LLMSettings{Settings: Settings{Economics: &e, KeepFirst: 1, BackgroundAt: .8}, MaxOutput: 1000 + random.IntN(8000)}
		s.Reuse = NewPromptReuse(func(string, string) *Economics { return &e })
		in := reuseInput(12 + 2*random.IntN(40))
		in.Window, in.Need.Ahead = []int{0, 32_000, 200_000}[random.IntN(3)], random.IntN(2) == 0
		in.Thread.Sent = &sentRequest{cached: []int{0, random.IntN(in.Total), in.Total}[random.IntN(3)]}
		if random.IntN(2) == 0 {
			in.View = condensedView(in.View, saved(random.IntN(50_000)))
		}
		l, due := NewLLM(s), session.Reason("")
		for most := 3 * in.Total; in.Total < most; in.Total += 200 {
			next := session.Reason("")
			if in.Need.Ahead {
				next = l.pricedSettings(in).Due(in).Need.Reason
			} else if d := l.Condense(in); d.Job != nil || d.Obstacle != "" {
				next = session.ReasonEconomics
			}
			if due != "" && next == "" {
				t.Fatalf("due by %s with fewer tokens than %d, prices %+v, window %d, output %d", due, in.Total, e, in.Window, l.s.MaxOutput)
			}
			if due = next; due == session.ReasonEconomics {
				byPrice++
			}
		}
	}
	if byPrice == 0 {
		t.Error("nothing is due by price")
	}
}

// reuseInput returns the input for a history of that many messages, the last of which is new.
func reuseInput(n int) Input {
	messages := make([]session.Message, n)
	for i := range messages {
		kind := []session.Kind{session.User, session.Agent}[i%2]
		messages[i] = session.Message{Kind: kind, Raw: fmt.Appendf(nil, "%d: %s", i, strings.Repeat("more of it ", 190))}
		messages[i].Digest[0], messages[i].Digest[1] = byte(i), 1
	}
	view := session.Project(session.NewHistory(session.Hash{1}, messages), nil)
	in := Input{View: &view, Window: 200_000, Model: "own", Codec: plainCodec{}, Count: func(s string) int { return len(s) / 4 }}
	in.Measure = func(items []session.Item) []int {
		out := make([]int, len(items))
		for i := range out {
			out[i] = 500
		}
		return out
	}
	in.Total = 500 * n
	return in
}

// condensedView returns a view after a condensation that hid its second to fourth messages.
func condensedView(v *session.View, c session.Condensation) *session.View {
	c.Prefix, c.Forgotten, c.ForgottenTokens = 4, []session.Range{{From: 2, To: 5}}, 1500
	out := *v
	out.Items = slices.Delete(slices.Clone(v.Items), 1, 4)
	out.Applied = []session.Condensation{c}
	return &out
}

// saved is a condensation with excerpts since which each request saved that many tokens.
func saved(tokens int) session.Condensation {
	return session.Condensation{Provisional: true, Before: session.Size{Tokens: 5000 + tokens}, After: session.Size{Tokens: 5000}}
}

// paidFor returns a view after excerpts that have saved more than any summary costs.
func paidFor(v *session.View) *session.View { return condensedView(v, saved(1_000_000)) }

func standIn(v *session.View) *session.View {
	return condensedView(v, session.Condensation{Provisional: true})
}

func neverSent(v *session.View) *session.View {
	return condensedView(v, session.Condensation{Model: "m", SummaryTokens: 10, After: session.Size{Events: len(v.Items)}})
}

// reasoned returns a view whose newest answer carries sealed reasoning.
func reasoned(v *session.View) *session.View {
	h := *v.History
	h.Messages = slices.Clone(h.Messages)
	for i := len(h.Messages) - 1; i >= 0; i-- {
		if h.Messages[i].Kind == session.Action || h.Messages[i].Kind == session.Agent {
			h.Messages[i].Sealed = true
			break
		}
	}
	own := *v
	own.History = &h
	return &own
}
