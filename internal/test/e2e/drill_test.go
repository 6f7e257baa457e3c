package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// drill is a run with many kinds of failures (a bad day), and the facts that the test knows about it.
type drill struct {
	t       *testing.T
	s       *setting
	proxy   *process
	bad     atomic.Pointer[fakeupstream.Answer] // the summariser's answer; nil: a good one
	session string
	thread  map[string]string // by request: the thread in its answer's header
}

const drillConfig = `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: {type: embedded, path: %q, timeout: 1m}
llms: {cheap: {model: %s}}
models: {%s: {context_window: 12000, max_output: 400, price: {input: 2, cached_input: 1, cache_write: 2, output: 8}}}
condenser: {type: llm, llm_config: cheap, wait: deadline, deadline: 1m, background_at: 0, max_size: 20, max_tokens: 1000000, min_tokens: 0}
`

// play plays the run. Each request is named by its id.
func (d *drill) play() {
	history := make([]json.RawMessage, 61)
	for i := range history {
		history[i] = encode(map[string]string{"role": []string{"user", "assistant"}[i%2], "content": fmt.Sprintf("part-%02d %s", i, strings.Repeat("more of it ", 40))})
	}
	changed := func(n, at int) []json.RawMessage {
		edited := slices.Clone(history[:n])
		edited[at] = encode(map[string]string{"role": "user", "content": fmt.Sprintf("other-%02d", at)})
		return edited
	}
	const call = "call_drill_0123456789abcdef"
	history[1] = json.RawMessage(`{"role":"assistant","content":null,"tool_calls":[{"id":"` + call + `","type":"function","function":{"name":"read","arguments":"{\"file\":\"part-01 \"}"}}]}`)
	history[2] = encode(map[string]string{"role": "tool", "tool_call_id": call, "content": "part-02 " + strings.Repeat("more of it ", 40)})
	down := fakeupstream.ServerError()
	d.ask("below", history[:11], "")
	d.ask("first", history[:21], "")
	d.ask("second", history[:35], "")
	d.ask("off", history[:49], "off")
	d.bad.Store(&down)
	d.ask("failing", history[:51], "")
	d.ask("cooling", history[:53], "")
	d.bad.Store(&fakeupstream.Answer{Content: "ok"}) // not a summary, but charged
	history[54] = encode(map[string]string{"role": "user", "content": "part-54 " + strings.Repeat("a long file ", 2800)})
	d.ask("overlong", history[:55], "")
	d.ask("fork", changed(27, 24), "")
	d.ask("edited", changed(27, 0), "")
}

func (d *drill) ask(id string, messages []json.RawMessage, wish string) {
	d.t.Helper()
	a := send(d.t, d.proxy, body(messages), http.Header{"X-Request-Id": {id}, "X-Dewpoint-Session": {"drill"}, "X-Dewpoint-Condense": {wish}})
	ok(d.t, a.finish())
	if a.StatusCode != http.StatusOK {
		d.t.Fatalf("%s: %s", id, a.Status)
	}
	d.session, d.thread[id] = a.Header.Get("X-Dewpoint-Session"), a.Header.Get("X-Dewpoint-Thread")
}

// upstream returns the facts at the upstream: the agent's requests, and our own calls by success and failure.
func (d *drill) upstream() (asked map[string]fakeupstream.Request, prompts, own, failed int) {
	asked = map[string]fakeupstream.Request{}
	for _, r := range d.s.Upstream.Requests() {
		if id := r.Header.Get("X-Request-Id"); id != "" {
			asked[id], prompts = r, prompts+r.PromptTokens
		} else if r.Status == http.StatusOK {
			own += r.PromptTokens
		} else {
			failed++
		}
	}
	return asked, prompts, own, failed
}

// operator answers questions from the log, the metrics and the admin API only.
type operator struct {
	p       *process
	session string
}

// lines returns the lines with a message, oldest first.
func (o operator) lines(message string) (all []map[string]any) {
	for text := range strings.Lines(fmt.Sprint(o.p.log)) {
		var line map[string]any
		if json.Unmarshal([]byte(text), &line) == nil && line["msg"] == message {
			all = append(all, line)
		}
	}
	return all
}

// of returns a field of a request's line.
func (o operator) of(id, field string) any {
	for _, line := range o.lines("request") {
		if line["request_id"] == id {
			return line[field]
		}
	}
	return nil
}

// where returns the requests whose lines have a field, with its value.
func (o operator) where(field string) (found []string) {
	for _, line := range o.lines("request") {
		if value := line[field]; value != nil {
			found = append(found, fmt.Sprint(line["request_id"], ": ", value))
		}
	}
	return found
}

// metric returns the sum of the series whose names begin with a prefix.
func (o operator) metric(prefix string) (sum float64) {
	for _, line := range o.p.metrics() {
		if i := strings.LastIndexByte(line, ' '); i > 0 && strings.HasPrefix(line, prefix) {
			n, err := strconv.ParseFloat(line[i+1:], 64)
			ok(o.p.t, err)
			sum += n
		}
	}
	return sum
}

func (o operator) admin(path string, into any) {
	ok(o.p.t, json.Unmarshal(o.p.administer(http.MethodGet, "/sessions/"+o.session+path, http.StatusOK), into))
}

// sum returns the sum of a field over lines.
func sum(lines []map[string]any, field string) (total float64) {
	for _, line := range lines {
		n, _ := line[field].(float64)
		total += n
	}
	return total
}

// condensed returns the lines of all condensations, whatever their outcome.
func (o operator) condensed() []map[string]any {
	return slices.Concat(o.lines("condensed"), o.lines("condensed without a summary"), o.lines("not condensed"))
}

type savingsTold struct {
	Tokens float64                         `json:"tokens_not_sent"`
	Own    struct{ Input, Output float64 } `json:"own_calls"`
	USD    *struct {
		Own float64 `json:"own_calls"`
	} `json:"usd"`
}

// settled waits until everything is written that is written after the answers.
func (o operator) settled(requests int) {
	sessiontest.Eventually(o.p.t, "the accounts of the run are written", func() error {
		var told savingsTold
		o.admin("/savings", &told)
		if n := len(o.lines("request")); n < requests || told.Tokens != o.saved() {
			return fmt.Errorf("%d requests, %v tokens not sent, %v by the metrics", n, told.Tokens, o.saved())
		}
		return nil
	})
}

// saved returns the tokens not forwarded, by the metrics.
func (o operator) saved() float64 {
	const tokens = `dewpoint_tokens_total{model="` + judge.Model + `",stage=`
	return o.metric(tokens+`"in"`) - o.metric(tokens+`"forwarded"`)
}

// question is one of the ten questions of a bad day: how an operator answers it, and the true answer. docs/troubleshooting.md has
// the same ten.
type question struct {
	ask    string
	answer func(o operator) any
	truth  any
}

func (d *drill) questions() []question {
	asked, prompts, own, failed := d.upstream()
	shown := func(id string) (texts []string) { // the beginning of each forwarded message
		for _, m := range asked[id].Messages {
			var message struct{ Content string }
			ok(d.t, json.Unmarshal(m, &message))
			texts = append(texts, message.Content[:min(len(message.Content), 8)])
		}
		return texts
	}
	return []question{
		{
			"What was condensed, and why?",
			func(o operator) any { return o.where("condensed") },
			[]string{"first: [events]", "second: [events]", "overlong: [window]"},
		},
		{
			"What went without the summary that was due, and why?",
			func(o operator) any {
				var list struct {
					Condensations []struct{ Outcome, Provisional string }
				}
				o.admin("/threads/"+fmt.Sprint(o.of("overlong", "thread"))+"/condensations", &list)
				line := o.lines("condensed without a summary")[0]
				return []any{line["request_id"], line["cause"], list.Condensations, o.metric(`dewpoint_condensations_total{condenser="llm",outcome="fallback"`)}
			},
			[]any{"overlong", "malformed", "[{condensed } {condensed } {fallback malformed}]", 1},
		},
		{
			"What was left whole although it was over a limit, and why?",
			func(o operator) any {
				return []any{o.where("not_condensed"), o.metric(`dewpoint_over_limit_whole_total`)}
			},
			[]any{"[off: off failing: failed cooling: cooling]", 3},
		},
		{
			"Why did a condensation fail, and is its summariser left alone?",
			func(o operator) any {
				line := o.lines("not condensed")[0]
				return []any{line["request_id"], line["cause"], line["thread"] == o.of("failing", "thread"), o.of("failing", "condense"), o.metric(`dewpoint_summariser_failures_total{kind="server"`), o.metric("dewpoint_summariser_cooling")}
			},
			[]any{"failing", "server", true, "failed:server", failed, 0}, // it has answered since
		},
		{
			"Where did the conversation split, and what differed?",
			func(o operator) any {
				return []any{o.of("fork", "relation"), o.of("fork", "parent"), o.of("fork", "fork_at"), o.of("fork", "cause")}
			},
			[]any{"fork", d.thread["below"], 24, "user_changed"},
		},
		{
			"Which session does a changed beginning belong to?",
			func(o operator) any {
				return []any{o.of("edited", "relation"), o.of("edited", "cause"), o.of("edited", "parent"), o.of("edited", "session")}
			},
			[]any{"link", "user_changed", d.thread["below"], d.session},
		},
		{
			"How many tokens were not sent?",
			func(o operator) any {
				var told savingsTold
				o.admin("/savings", &told)
				lines, saved := o.lines("request"), o.saved()
				return []any{
					saved > 0, told.Tokens == saved, sum(lines, "tokens")-sum(lines, "tokens_forwarded") == saved, sum(lines, "tokens_forwarded"),
					o.metric("dewpoint_saved_tokens_total")-o.metric(`dewpoint_spent_tokens_total{kind="request"`) == saved,
					o.of("off", "tokens") == o.of("off", "tokens_forwarded"), o.of("cooling", "tokens") != nil,
				}
			},
			[]any{true, true, true, prompts, true, true, true},
		},
		{
			"What did summaries cost, rejected ones included?",
			func(o operator) any {
				var told savingsTold
				o.admin("/savings", &told)
				usd := o.metric(`dewpoint_spent_usd_total{kind="summariser"`)
				agree := told.USD != nil && math.Abs(told.USD.Own+usd) < 1e-8 && math.Abs(sum(o.condensed(), "usd")-usd) < 1e-8
				tokens := o.metric(`dewpoint_spent_tokens_total{kind="summariser"`)
				return []any{told.Own.Input, sum(o.condensed(), "prompt_tokens"), told.Own.Input+told.Own.Output == tokens, usd > 0, agree}
			},
			[]any{own, own, true, true, true},
		},
		{
			"What did upstream see at a request?",
			func(o operator) any {
				var view struct {
					Items []struct{ Message struct{ Content string } }
				}
				o.admin("/threads/"+fmt.Sprint(o.of("second", "thread"))+"/view?request=second", &view)
				var texts []string
				for _, item := range view.Items {
					texts = append(texts, item.Message.Content[:min(len(item.Message.Content), 8)])
				}
				return texts
			},
			shown("second"),
		},
		{
			"Which messages are hidden, and by what?",
			func(o operator) any {
				var diff struct {
					Events []struct {
						Status   string
						Position int
						By       *struct{ Seq uint64 } `json:"hidden_by"`
					}
				}
				o.admin("/threads/"+fmt.Sprint(o.of("overlong", "thread"))+"/diff?request=overlong", &diff)
				made := map[uint64]any{}
				for _, line := range slices.Concat(o.lines("condensed"), o.lines("condensed without a summary")) {
					seq, _ := line["seq"].(float64)
					made[uint64(seq)] = line["request_id"]
				}
				var hidden []string
				for _, e := range diff.Events {
					if e.By != nil {
						hidden = append(hidden, fmt.Sprintf("part-%02d by %v", e.Position-1, cmp.Or(made[e.By.Seq], any("nothing in the log"))))
					}
				}
				return hidden
			},
			d.hidden(asked),
		},
	}
}

// hidden returns the messages missing from the last forwarded request of the thread, by the first request without them.
func (d *drill) hidden(asked map[string]fakeupstream.Request) (hidden []string) {
	for i := range 55 {
		mark := fmt.Sprintf("\"part-%02d ", i)
		if strings.Contains(string(asked["overlong"].Body), mark) {
			continue
		}
		by := "overlong"
		for _, id := range []string{"second", "first"} {
			if !strings.Contains(string(asked[id].Body), mark) && (id == "second" && i < 35 || i < 21) {
				by = id
			}
		}
		hidden = append(hidden, fmt.Sprintf("part-%02d by %s", i, by))
	}
	return hidden
}

// TestDrill: after a bad day, the log, the metrics and the admin API alone answer its ten questions correctly.
func TestDrill(t *testing.T) {
	t.Parallel()
	d := &drill{t: t, thread: map[string]string{}}
	d.s = newSetting(t, fakeupstream.Options{Summarise: func(r *fakeupstream.Request) fakeupstream.Answer {
		if bad := d.bad.Load(); bad != nil {
			return *bad
		}
		return fakeupstream.Extract(r)
	}})
	file := writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(drillConfig, d.s.url, newStore(t), judge.Summariser, judge.Model))
	d.proxy = serve(t, "--config", file)
	d.play()
	o := operator{d.proxy, d.session}
	o.settled(len(d.thread))
	page, err := os.ReadFile("../../../docs/troubleshooting.md")
	ok(t, err)
	for _, q := range d.questions() {
		t.Run(q.ask, func(t *testing.T) {
			if got, want := fmt.Sprint(q.answer(o)), fmt.Sprint(q.truth); got != want {
				t.Errorf("the operator says\n%s\nand it was\n%s", got, want)
			}
			if !strings.Contains(string(page), "| "+q.ask+" |") {
				t.Error(errors.New("docs/troubleshooting.md does not say where the answer is"))
			}
		})
	}
}
