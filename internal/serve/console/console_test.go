package console

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var at = time.Date(2026, 11, 30, 14, 2, 11, 0, time.Local)

// screen is a console on a screen, whose clock the test moves.
type screen struct {
	*Console
	bytes.Buffer
	now time.Time
}

func open(columns int) *screen {
	s := &screen{now: at}
	onScreen := terminal.Emulated(&s.Buffer, func() int { return columns }, func(string) string { return "dumb" })
	s.Console = New(onScreen, true, func() time.Time { return s.now })
	s.release("")
	return s
}

// shown returns what was written since the last call.
func (s *screen) shown() string {
	defer s.Reset()
	return s.String()
}

// answered returns the record of a step that upstream has answered.
func answered(step, before, after int) *proxy.Record {
	return &proxy.Record{
		Tenant: "default", Asked: proxy.Asked{Model: "gpt-5.5", Path: "/v1/chat/completions"}, Model: "gpt-5-5", Status: 200,
		Times: proxy.Times{Ended: at}, Call: proxy.Call{Status: 200, Usage: &session.Usage{Input: after, Cached: after * 9 / 10}},
		Bill: &proxy.Bill{Usage: session.Usage{Input: after, Cached: after * 9 / 10}, Reported: true, Priced: true, Pico: 5e11},
		Turn: &proxy.TurnRecord{
			Session: "s", Step: step, Before: session.Size{Events: 9, Tokens: before}, After: session.Size{Events: 9, Tokens: after},
			Account: proxy.Account{Charged: 0.5, Saved: proxy.Saving{Tokens: before - after, NotSent: float64(before-after) / 1e6}},
		},
	}
}

func condensed() *proxy.Record {
	r := answered(41, 50_400, 24_000)
	r.Turn.Condensed = []session.Condensation{{
		Reason: session.ReasonEconomics, Forgotten: []session.Range{{From: 3, To: 40}, {From: 42, To: 50}}, SummaryTokens: 900,
	}}
	r.Turn.Saved.Rewritten = -0.061
	return r
}

// TestARequestIsOneLine shows steps at several widths: no line is wider than its screen.
func TestARequestIsOneLine(t *testing.T) {
	for columns, want := range map[int]string{
		140: `
14:02:11  gpt-5.5               step 1    12.2k tokens           cached 90%   new session
14:02:11  gpt-5.5               step 41   50.4k -> 24.0k tokens  cached 90%   cost $0.035 more (today -$0.035)
          condensed, because it pays: 45 messages became excerpts
14:02:11  gpt-5.5               step 42   51.0k -> 24.6k tokens  cached 90%   saved $0.026 (today -$0.008)
`,
		80: `
14:02:11  gpt-5.5           step 1    12.2k           cached 90%   new session
14:02:11  gpt-5.5           step 41   50.4k -> 24.0k  cached 90%
          condensed, because it pays: 45 messages became excerpts
          cost $0.035 more (today -$0.035)
14:02:11  gpt-5.5           step 42   51.0k -> 24.6k  cached 90%   saved $0.026
`,
		58: `
14:02  gpt-5.5       step 1    12.2k           new session
14:02  gpt-5.5       step 41   50.4k -> 24.0k
          condensed, because it pays: 45 messages became
          excerpts  cost $0.035 more (today -$0.035)
14:02  gpt-5.5       step 42   51.0k -> 24.6k
          saved $0.026
`,
	} {
		s := open(columns)
		first := answered(1, 12_200, 12_200)
		first.Turn.Begins, first.Turn.Saved = true, proxy.Saving{}
		s.Ended(first)
		s.Ended(condensed())
		s.Ended(answered(42, 51_000, 24_600))
		got := s.shown()
		if "\n"+got != want {
			t.Errorf("%d columns:\n%s\nwant%s", columns, got, want)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if len([]rune(line)) > columns {
				t.Errorf("%d columns: %q is wider", columns, line)
			}
		}
	}
}

// TestTroubleIsSaidInWords: what went wrong is in the line of the request, with what upstream wants the client to do.
func TestTroubleIsSaidInWords(t *testing.T) {
	f := func(want string, change func(*proxy.Record)) {
		t.Helper()
		s := open(200)
		r := answered(7, 100, 100)
		r.Turn.Saved = proxy.Saving{}
		change(r)
		s.Ended(r)
		if got := s.shown(); !strings.HasSuffix(got, "  "+want+"\n") || strings.Count(got, "\n") != 1 {
			t.Errorf("%q, want %q", got, want)
		}
	}
	refused := func(status int, retry time.Duration) func(*proxy.Record) {
		return func(r *proxy.Record) {
			r.Status, r.Code, r.Call.Status, r.Call.Retry = status, proxy.CodeUpstream4xx, status, retry
		}
	}
	f("upstream has had too many requests (429), retry after 12 s: passed on", refused(429, 12*time.Second))
	f("upstream refused the key (401): passed on", refused(401, 0))
	f("upstream knows no such model or path (404): passed on", refused(404, 0))
	f("upstream failed (503): passed on", refused(503, 0))
	f("upstream cannot be reached", func(r *proxy.Record) {
		r.Status, r.Code, r.Call = 502, "upstream_unreachable", proxy.Call{}
	})
	f("refused: the budget is spent", func(r *proxy.Record) { r.Status, r.Code, r.Call = 429, "budget_spent", proxy.Call{} })
	f("refused with 418, a_code_to_come", func(r *proxy.Record) { r.Status, r.Code, r.Call = 418, "a_code_to_come", proxy.Call{} })
	f("upstream broke off its answer", func(r *proxy.Record) { r.Code = proxy.CodeBroken })
	f("not condensed: the summariser refused the key", func(r *proxy.Record) { r.Condensed.Did, r.Condensed.Whole = "failed:denied", "failed" })
	f("not condensed: the summariser rests after a failure", func(r *proxy.Record) { r.Condensed.Did, r.Condensed.Whole = "cooling", "cooling" })
	f("the store is away: forwarded unchanged", func(r *proxy.Record) { r.Turn, r.Condensed.Did = nil, "store_away" })
	f("POST /v1/messages     refused: its key belongs to no tenant", func(r *proxy.Record) {
		*r = proxy.Record{Status: 401, Code: "invalid_api_key", Asked: proxy.Asked{Method: "POST", Path: "/v1/messages"}, Times: r.Times}
	})
}

// TestWhatIsOnlyObservedIsNoSaving: the line says what condensing would save, and the day's sum is not of that.
func TestWhatIsOnlyObservedIsNoSaving(t *testing.T) {
	s := open(200)
	r := answered(9, 100, 100)
	r.Turn.Saved, r.Turn.Spare, r.Condensed.Whole = proxy.Saving{}, proxy.Saving{Tokens: 1000, NotSent: 0.25}, "observed"
	s.Ended(r)
	if got := s.shown(); !strings.HasSuffix(got, "  would save $0.25  would have been condensed; this is only observed\n") {
		t.Errorf("%q", got)
	}
}

// TestAFailedSummaryIsNamed: if excerpts stand in for a summary, the line says why, unless requests do not wait for summaries.
func TestAFailedSummaryIsNamed(t *testing.T) {
	for cause, want := range map[string]string{
		"denied": "45 messages became excerpts, because the summariser refused the key\n", "at_once": "45 messages became excerpts\n",
	} {
		s := open(200)
		r := condensed()
		r.Turn.Condensed[0].Provisional, r.Turn.Condensed[0].Cause = true, cause
		s.Ended(r)
		if got := s.shown(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", cause, got, want)
		}
	}
}

// TestQuietRequestsHaveNoLine: what no agent's step is passes silently unless it fails.
func TestQuietRequestsHaveNoLine(t *testing.T) {
	s := open(80)
	counting := answered(3, 100, 100)
	counting.Asked.Path = "/v1/messages/count_tokens"
	s.Ended(counting)
	s.Ended(&proxy.Record{Status: 200, Asked: proxy.Asked{Method: "GET"}, Times: proxy.Times{Ended: at}})
	if got := s.shown(); got != "" {
		t.Error(got)
	}
	s.End()
	if got := s.shown(); !strings.HasPrefix(got, "0 sessions, 0 steps, 0 condensations.") {
		t.Error(got)
	}
}

// TestClientsCannotWriteToTheTerminal: what clients and servers send reaches the terminal as printable text.
func TestClientsCannotWriteToTheTerminal(t *testing.T) {
	const hostile = "gpt\x1b[2J\x1b]52;c;eA==\a\r\n\u202e\u009b1m"
	s := open(80)
	r := condensed()
	r.Asked.Model, r.Turn.Condensed[0].Model = hostile, hostile
	s.Ended(r)
	r.Turn = nil
	r.Code, r.Asked.Method, r.Asked.Path = hostile, hostile, hostile
	s.Ended(r)
	log := zap.New(s.Core(zap.InfoLevel))
	log.Warn("a message", zap.Error(errors.New(hostile)), zap.String("name", hostile))
	got := s.shown()
	if regexp.MustCompile(`[^\n\x20-\x7e]`).MatchString(strings.ReplaceAll(got, "…", "")) || !strings.Contains(got, "gpt?[2J") {
		t.Errorf("%q", got)
	}
}

// TestTheTotalIsHonest: own calls are subtracted, losses are named, and what has no price is counted in tokens.
func TestTheTotalIsHonest(t *testing.T) {
	f := func(want string, records []*proxy.Record, calls ...limit.Call) {
		t.Helper()
		s := open(1000)
		for _, r := range records {
			s.Ended(r)
		}
		for _, c := range calls {
			s.Called(c)
		}
		s.shown()
		s.End()
		if got := s.shown(); got != want+"\n" {
			t.Errorf("%q, want %q", got, want)
		}
	}
	saved := answered(2, 500_000, 200_000) // 0.30 USD
	other := answered(3, 500_000, 200_000)
	other.Turn.Session = "other"
	unpriced := answered(2, 50_000, 40_000)
	unpriced.Turn.Charged, unpriced.Turn.Saved, unpriced.Bill = 0, proxy.Saving{Tokens: 10_000}, &proxy.Bill{Reported: true}
	failed := answered(4, 10, 10)
	failed.Status, failed.Code, failed.Call.Status, failed.Bill = 429, proxy.CodeUpstream4xx, 429, nil
	observed := answered(2, 100, 100)
	observed.Turn.Saved, observed.Turn.Spare = proxy.Saving{}, proxy.Saving{Tokens: 1000, NotSent: 0.25}
	call := limit.Call{Model: "m", Input: 10, USD: 0.1, Pico: 1e11, Known: true}
	f("No requests.", nil)
	f("2 sessions, 2 steps, 0 condensations. Saved $0.60 of $1.60 (37%).", []*proxy.Record{saved, other})
	f("1 session, 1 step, 0 condensations. Saved $0.20 of $0.80 (25%). Calls of Dewpoint's own cost $0.10, which is counted.",
		[]*proxy.Record{saved}, call, limit.Call{Failed: true})
	f("1 session, 1 step, 0 condensations. Cost $0.10 more than without Dewpoint: $0.90 instead of $0.80. Calls of Dewpoint's own cost $0.40, "+
		"which is counted.", []*proxy.Record{saved}, call, call, call, call)
	f("1 session, 1 step, 0 condensations. Where tokens have no known price: 40.0k prompt tokens instead of 50.0k, 20% fewer.", []*proxy.Record{unpriced})
	f("1 session, 1 step, 0 condensations. Spent $0.50, with nothing saved. Condensing would have saved about $0.25; it was only observed.",
		[]*proxy.Record{observed})
	reckoned := answered(2, 500_000, 200_000)
	reckoned.Bill.Reported = false
	f("1 session, 1 step, 0 condensations. Saved $0.30 of $0.80 (37%). Upstream did not report what 1 request used, so its cost is by Dewpoint's count.",
		[]*proxy.Record{reckoned})
	plan := answered(2, 500_000, 200_000)
	plan.Asked.Plan = true
	f("1 session, 1 step, 0 condensations. Where tokens have no known price: 200k prompt tokens instead of 500k, 60% fewer.", []*proxy.Record{plan})
	f("0 sessions, 0 steps, 0 condensations. 1 request failed.", []*proxy.Record{failed})
	f("0 sessions, 0 steps, 0 condensations. 1 call of Dewpoint's own went to models without a known price, and are not counted: set models.NAME.price.",
		[]*proxy.Record{{Status: 200}}, limit.Call{Input: 5})
}

// TestTodayEndsAtMidnight: the day's sum begins anew, that of the end does not.
func TestTodayEndsAtMidnight(t *testing.T) {
	s := open(200)
	r := answered(2, 500_000, 200_000)
	s.Ended(r)
	late := *r
	late.Times.Ended = at.Add(10 * time.Hour)
	s.Ended(&late)
	if got := s.shown(); strings.Count(got, "saved $0.30 (today $0.30)") != 2 {
		t.Error(got)
	}
	s.End()
	if got := s.shown(); !strings.Contains(got, "Saved $0.60 of $1.60") {
		t.Error(got)
	}
}

// TestWarningsAreSaidOnce: a warning that repeats is said again only much later; changes of state, which are errors, always are.
func TestWarningsAreSaidOnce(t *testing.T) {
	s := open(200)
	log := zap.New(s.Core(zap.InfoLevel))
	say := func() {
		log.Warn("not condensed", zap.String("session", "s"), zap.String("tenant", "default"), zap.Error(errors.New("call summariser: denied")))
		log.Error("store unavailable: requests are forwarded unchanged", zap.Error(errors.New("timeout")))
		log.Info("request", zap.String("model", "m"))
		log.Info("condensed", zap.String("model", "m"))
		log.Info("the store answers again")
		log.Debug("a detail")
	}
	say()
	say()
	const warning = "  warning: not condensed: call summariser: denied\n"
	got := s.shown()
	if strings.Count(got, warning) != 1 || strings.Count(got, "  error: store unavailable: requests are forwarded unchanged: timeout\n") != 2 ||
		strings.Count(got, "  the store answers again\n") != 2 || strings.Count(got, "\n") != 5 {
		t.Error(got)
	}
	s.now = s.now.Add(repeatAfter)
	say()
	if got := s.shown(); strings.Count(got, warning) != 1 {
		t.Error(got)
	}
}

// TestTheBannerComesFirst: what is logged during the start stands below it.
func TestTheBannerComesFirst(t *testing.T) {
	var out bytes.Buffer
	c := New(terminal.Emulated(&out, func() int { return 80 }, func(string) string { return "dumb" }), true, time.Now)
	zap.New(c.Core(zap.InfoLevel)).With(zap.String("key", "condenser.max_tokens")).
		Warn("configuration warning", zap.String("warning", "is 75 tokens"), zap.String("origin", "line 1"))
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
	cfg := config.Default()
	cfg.Upstream.BaseURL = "https://me:secret@models.example/v1?key=secret"
	c.Start(Banner{
		Version: "1.2.3", Config: cfg, Listen: "127.0.0.1:8080", Admin: "127.0.0.1:9090", Store: filepath.Join("/home", "ada", "state.db"),
		Home: filepath.Join("/home", "ada"), Kept: "12 sessions",
	})
	got := out.String()
	for _, says := range []string{
		"Dewpoint 1.2.3\n", "  agents    http://127.0.0.1:8080\n", "            export OPENAI_BASE_URL=http://127.0.0.1:8080/v1\n",
		"            export ANTHROPIC_BASE_URL=http://127.0.0.1:8080\n", "  look      http://127.0.0.1:9090\n",
		"  upstream  https://models.example/v1, with each client's own key\n",
		"  state     " + filepath.Join("~", "state.db") + " (12 sessions)\n", "warning: condenser.max_tokens: is 75 tokens (line 1)\n",
	} {
		if !strings.Contains(got, says) {
			t.Errorf("%q is not in\n%s", says, got)
		}
	}
	if strings.Contains(got, "secret") || strings.Index(got, "warning") < strings.Index(got, "state") {
		t.Error(got)
	}
	out.Reset()
	failed := New(terminal.Emulated(&out, func() int { return 80 }, func(string) string { return "dumb" }), true, time.Now)
	zap.New(failed.Core(zap.InfoLevel)).Warn("a warning")
	failed.End() // the start has failed
	if got := out.String(); !strings.HasSuffix(got, "  warning: a warning\n") || strings.Contains(got, "requests") {
		t.Errorf("%q", got)
	}
}

func TestTheCondenserIsDescribed(t *testing.T) {
	f := func(want string, change func(*config.Config)) {
		t.Helper()
		cfg := config.Default()
		cfg.LLMs = map[string]config.LLM{"cheap": {Model: "small", BaseURL: "https://cheap.example/v1"}, "same": {Model: "other"}}
		change(cfg)
		if got := Condensing(cfg); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	set := func(c config.Condenser) func(*config.Config) { return func(cfg *config.Config) { cfg.Condenser = c } }
	const excerpts = "with excerpts; no model is called. Summaries: set condenser.llm_config (dewpoint init)"
	f("by price, "+excerpts, set(config.Condenser{Type: "excerpts", Trigger: "economics"}))
	f("above its limits, "+excerpts, set(config.Condenser{Type: "excerpts", Trigger: "limits"}))
	f("by price, with summaries by small at https://cheap.example/v1", set(config.Condenser{Type: "llm", Trigger: "economics", LLMConfig: "cheap"}))
	f("by price, with summaries by other", set(config.Condenser{Type: "structured_summary", Trigger: "economics", LLMConfig: "same"}))
	f("above its limits, with summaries by each request's own model, with the client's key", set(config.Condenser{Type: "llm"}))
	f("above its limits, with summaries by each request's own model", func(cfg *config.Config) {
		cfg.Condenser, cfg.Upstream.APIKey = config.Condenser{Type: "llm"}, "k"
	})
	f("never", set(config.Condenser{Type: "noop"}))
	f("cuts the middle out of long tool results; then by price, "+excerpts, set(config.Condenser{Type: "pipeline", Condensers: []config.Condenser{
		{Type: "tool_output_trim"}, {Type: "excerpts", Trigger: "economics"},
	}}))
	f("only observed, nothing is changed: masks old tool results", func(cfg *config.Config) {
		cfg.Condenser, cfg.Observe = config.Condenser{Type: "observation_masking"}, true
	})
	f("as each of 2 tenants has it", func(cfg *config.Config) {
		cfg.Tenants = []config.Tenant{{Name: "a", Condenser: &config.Condenser{Type: "noop"}}, {Name: "b", Condenser: &config.Condenser{Type: "llm"}}}
	})
}

// TestSilentMessagesExist: what the console leaves out or words in its own way is still logged under that message.
func TestSilentMessagesExist(t *testing.T) {
	var source strings.Builder
	for _, pattern := range []string{"../../../proxy/*.go", "../app/*.go", "../observe/*.go", "../../command/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			source.Write(text)
		}
	}
	for _, message := range append(slices.Clone(silent), "configuration warning", "stopping") {
		if !strings.Contains(source.String(), `"`+message+`"`) {
			t.Errorf("nothing logs %q", message)
		}
	}
}

func TestFigures(t *testing.T) {
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1.0k", 50_449: "50.4k", 99_949: "99.9k", 99_950: "100k", 999_499: "999k", 999_500: "1.00M", 1_234_567: "1.23M"} {
		if got := count(n); got != want {
			t.Errorf("%d tokens: %q, want %q", n, got, want)
		}
	}
	for usd, want := range map[float64]string{0: "$0", 0.0001: "<$0.001", -0.0001: "-<$0.001", 0.0114: "$0.011", 0.0994: "$0.099", 0.0996: "$0.10", 12.345: "$12.35", -1.5: "-$1.50"} {
		if got := dollars(usd); got != want {
			t.Errorf("%g: %q, want %q", usd, got, want)
		}
	}
}
