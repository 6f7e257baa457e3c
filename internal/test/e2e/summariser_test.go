package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// summariserFailures are the failures of a summariser. If its model does not exist, the request's own model is unaffected.
func summariserFailures(t *testing.T) map[string]fakeupstream.Answer {
	forGood := make(chan struct{})
	t.Cleanup(func() { close(forGood) })
	refused := func(status int, kind, code string) fakeupstream.Answer {
		return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: status, Message: "No.", Type: kind, Code: code}}
	}
	return map[string]fakeupstream.Answer{
		"down":             {Fault: fakeupstream.Fault{Break: fakeupstream.BreakReset, BreakAfter: -1}},
		"hanging":          {Fault: fakeupstream.Fault{HoldHeaders: forGood}},
		"no key":           refused(http.StatusUnauthorized, "invalid_request_error", "invalid_api_key"),
		"no model":         refused(http.StatusNotFound, "invalid_request_error", "model_not_found"),
		"limited":          fakeupstream.RateLimited("20"),
		"empty":            {},
		"ok":               {Content: "ok"},
		"refusal":          {Refusal: "I cannot help with that."},
		"cut off":          {Content: "CURRENT_STATE: the parcel", FinishReason: "length"},
		"leaked thinking":  {Content: "<think>\nCURRENT_STATE: they want a record, so I should"},
		"truncated stream": {Content: "CURRENT_STATE: the parcel is on its way", Fault: fakeupstream.Fault{Break: fakeupstream.BreakEnd, BreakAfter: 2}},
	}
}

// needs are the reasons for a condensation: our limit, or the model's window.
var needs = map[string]struct {
	condenser, model string
	upstream         int // its window; its counts are higher
}{
	"soft": {"max_size: 20, min_tokens: 0", "{context_window: 200000, max_output: 1000}", 400000},
	"hard": {"max_size: 10000", "{context_window: 4000, max_output: 400}", 8000},
}

// TestFailingSummarisers plays a run while its summariser fails, and after it has recovered. Nothing is hidden without a summary unless the window
// requires it, no request waits for a summariser that does not answer, and messages hidden in the meantime are summarised later.
func TestFailingSummarisers(t *testing.T) {
	t.Parallel()
	failures := summariserFailures(t)
	for name, failure := range failures {
		for need, settings := range needs {
			t.Run(name+" "+need, func(t *testing.T) {
				t.Parallel()
				a := newPatient(t, newSetting, failure, name == "no key" || name == "no model", settings.upstream)
				a.serve(name == "hanging", settings.model, settings.condenser)
				for range 30 {
					a.step(need == "hard")
				}
				if len(a.told) == 0 {
					t.Error("no client was told of a failure")
				}
				if a.ownIsWell {
					a.proxy.wantProbe("/readyz", http.StatusOK, `"summarisers":{"status":"degraded","detail":"cooling down: `+judge.Summariser)
				}
				a.recover(need == "hard")
			})
		}
	}
}

// longEnough is the size in bytes of a recorded run that does not fit the window of the test below.
const longEnough = 250 << 10

// TestRecordedFailures does the same as TestFailingSummarisers with recorded runs, another run for each failure and need.
func TestRecordedFailures(t *testing.T) {
	runs := slices.DeleteFunc(recorded(t), func(r playable) bool { return len(body(r.Messages)) < longEnough })
	if len(runs) == 0 {
		t.Fatal("no selected run is long enough")
	}
	failures, n := summariserFailures(t), 0
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		for _, settings := range [][3]string{
			{"soft", "{context_window: 2000000, max_output: 1000}", "trigger: limits, max_size: 40, min_tokens: 0"},
			{"hard", "{context_window: 40000, max_output: 1000}", "trigger: limits, max_size: 100000"},
		} {
			need := settings[0]
			n++
			if !judge.Selected(n) {
				continue
			}
			run := runs[n%len(runs)]
			t.Run(name+" "+need+" "+run.Name, func(t *testing.T) {
				t.Parallel()
				a := newPatient(t, newLenient, failures[name], name == "no key" || name == "no model", 0)
				a.record(run.Run)
				a.serve(name == "hanging", settings[1], settings[2])
				for steps := 0; len(a.rest) > 0 && (need == "hard" || steps < 60); steps++ {
					a.step(need == "hard")
				}
				if need == "hard" && len(a.condensations()) == 0 {
					t.Error("nothing was condensed")
				}
				a.recover(need == "hard")
			})
		}
	}
}

// patient is a run whose summariser fails at first.
type patient struct {
	t         *testing.T
	s         *setting
	proxy     *process
	well      atomic.Bool
	ownIsWell bool // the request's own model writes summaries in the meantime
	messages  []json.RawMessage
	rest      []json.RawMessage // the remaining messages of a recorded run
	at        place
	told      map[string]bool // the reasons for failed condensations in the response headers
}

// serve starts the proxy, with a short timeout for a summariser that hangs.
func (a *patient) serve(hangs bool, model, condenser string) {
	a.t.Helper()
	deadline, silence := "20s", "1h"
	if hangs {
		deadline, silence = "1s", "2s"
	}
	a.proxy = serve(a.t, "--config", writeFile(a.t, a.t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s, timeout: %s}}
models: {%s: %s}
condenser: {type: llm, llm_config: cheap, wait: deadline, background_at: 0, deadline: %s, %s}
shutdown: {delay: 0s, timeout: 1m}
`, a.s.url, embedded(newStore(a.t)), judge.Summariser, silence, judge.Model, model, deadline, condenser)))
}

// record plays a recorded run first.
func (a *patient) record(run replay.Run) {
	first := slices.IndexFunc(run.Messages, speaks)
	a.messages, a.rest = slices.Clone(run.Messages[:first]), run.Messages[first:]
}

func speaks(message json.RawMessage) bool { return assistants.Match(message) }

// more returns the next step: an answer, and the agent's next message.
func (a *patient) more() (next []json.RawMessage) {
	if len(a.rest) > 0 {
		end := 1 + slices.IndexFunc(a.rest[1:], speaks)
		if end == 0 {
			end = len(a.rest)
		}
		next, a.rest = a.rest[:end], a.rest[end:]
		return next
	}
	id := fmt.Sprintf("call_%d", len(a.messages))
	return []json.RawMessage{
		encode(map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]string{"name": "look", "arguments": "{}"},
		}}}),
		encode(map[string]string{"role": "tool", "tool_call_id": id, "content": a.finding(len(a.messages)) + strings.Repeat(" the parcel is not here", 20)}),
	}
}

func newPatient(
	t *testing.T, upstream func(testing.TB, fakeupstream.Options) *setting, failure fakeupstream.Answer, ownIsWell bool, window int,
) *patient {
	a := &patient{t: t, ownIsWell: ownIsWell, told: map[string]bool{}, messages: []json.RawMessage{
		encode(map[string]string{"role": "system", "content": "You look after parcels."}),
		encode(map[string]string{"role": "user", "content": "Find out where the parcels are."}),
	}}
	a.s = upstream(t, fakeupstream.Options{
		ContextWindow: window,
		IsSummary:     func(r *fakeupstream.Request) bool { return strings.Contains(r.Text(), "You keep the record of") },
		Summarise: func(r *fakeupstream.Request) fakeupstream.Answer {
			if a.well.Load() || ownIsWell && r.Model != judge.Summariser {
				return fakeupstream.Extract(r)
			}
			return failure
		},
	})
	return a
}

// finding is the text by which a message of the run is found.
func (a *patient) finding(n int) string { return fmt.Sprintf("finding-%03d", n) }

// step sends the next step of the run, and checks the forwarded request.
func (a *patient) step(hard bool, header ...string) {
	a.t.Helper()
	n := len(a.messages)
	a.messages = append(a.messages, a.more()...)
	headers := http.Header{}
	for i := 0; i < len(header); i += 2 {
		headers.Set(header[i], header[i+1])
	}
	sent := body(a.messages)
	answer := send(a.t, a.proxy, sent, headers)
	ok(a.t, answer.finish())
	a.at = placeOf(exchange{}, answer.Response)
	for _, why := range answer.Header.Values("X-Dewpoint-Condense-Failed") {
		a.told[why] = true
	}
	for _, condensed := range answer.Header.Values("X-Dewpoint-Condensed") {
		forced := !strings.HasPrefix(condensed, "events; ") && !strings.HasPrefix(condensed, "tokens; ")
		if !strings.HasSuffix(condensed, "; summary") && !(hard && forced) {
			a.t.Errorf("step %d: shortened for %q", n, condensed)
		}
	}
	if got := a.forwarded(); len(got.Body) < len(sent) && len(a.condensations()) == 0 {
		a.t.Errorf("step %d: shortened without a condensation", n)
	}
}

// forwarded returns the newest forwarded request that is not the summariser's.
func (a *patient) forwarded() fakeupstream.Request {
	for _, r := range slices.Backward(a.s.Upstream.Requests()) {
		if !r.Summary {
			return r
		}
	}
	a.t.Fatal("nothing was forwarded")
	return fakeupstream.Request{}
}

// condensed is a condensation in the admin API.
type condensed struct {
	Provisional, Model string
	Hidden             []struct{ From, To int }
}

func (a *patient) condensations() []condensed {
	var page struct{ Condensations []condensed }
	path := "/sessions/" + a.at.Session + "/threads/" + a.at.Thread + "/condensations?limit=50"
	ok(a.t, json.Unmarshal(a.proxy.administer(http.MethodGet, path, http.StatusOK), &page))
	return page.Condensations
}

// The texts that identify messages.
var (
	assistants = regexp.MustCompile(`"role": ?"assistant"`)
	answers    = regexp.MustCompile(`"tool_call_id": ?"([^"]+)"`)
)

// recover lets the summariser answer, and continues until a summary covers everything that was hidden without one.
func (a *patient) recover(hard bool) {
	a.t.Helper()
	before := a.condensations()
	provisional := map[string]bool{}
	for _, c := range before {
		if c.Provisional == "" {
			continue
		}
		for _, h := range c.Hidden {
			for p := h.From; p <= h.To; p++ {
				if found := answers.FindSubmatch(a.messages[p]); found != nil {
					provisional[string(found[1])] = true
				}
			}
		}
	}
	if (a.ownIsWell || !hard) && len(provisional) > 0 {
		a.t.Errorf("%v were hidden without a summary, and did not have to be", slices.Sorted(maps.Keys(provisional)))
	}
	since := len(a.s.Upstream.Requests())
	a.well.Store(true)
	for range 200 {
		a.step(hard, "X-Dewpoint-Condense", "now")
		all := a.condensations()
		if len(all) > len(before) && all[len(all)-1].Provisional == "" && all[len(all)-1].Model != "" {
			a.summarised(provisional, since)
			return
		}
	}
	a.t.Error("the summariser is well, and no summary was made")
}

// summarised checks that the summariser was sent the hidden messages since a given request.
func (a *patient) summarised(hidden map[string]bool, since int) {
	a.t.Helper()
	var shown strings.Builder
	for _, r := range a.s.Upstream.Requests() {
		if r.Summary && r.Index >= since {
			shown.WriteString(r.Text())
		}
	}
	for found := range hidden {
		if !strings.Contains(shown.String(), found) {
			a.t.Errorf("%s was hidden, and never summarised", found)
		}
	}
}

// TestSummariserWithSmallWindow: a summariser's server has a smaller window than the model's documented one, and refuses a prompt. From then on
// every prompt fits, whatever is to be summarised, and no condensation lacks a summary.
func TestSummariserWithSmallWindow(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Windows: map[string]int{judge.Summariser: 6000}})
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s}}
condenser: {type: llm, llm_config: cheap, max_size: 16, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), judge.Summariser)))
	messages := []json.RawMessage{encode(map[string]string{"role": "user", "content": "Begin."})}
	condensed := 0
	for n := range 40 {
		a := send(t, p, body(messages))
		ok(t, a.finish())
		if why := a.Header.Get("X-Dewpoint-Condense-Failed"); why != "" {
			t.Errorf("request %d: the condensation failed: %s", n, why)
		}
		if strings.HasSuffix(a.Header.Get("X-Dewpoint-Condensed"), "; summary") {
			condensed++
		}
		messages = append(messages, encode(map[string]string{"role": "assistant", "content": fmt.Sprintf("Answer %d. %s", n, strings.Repeat("more of it ", 300))}),
			encode(map[string]string{"role": "user", "content": fmt.Sprint("Go on ", n)}))
	}
	refused := 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			refused++
		}
	}
	if condensed < 3 || refused != 1 {
		t.Errorf("%d condensations with a summary, %d refused prompts, want at least 3, and 1", condensed, refused)
	}
}
