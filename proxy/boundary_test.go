package proxy_test

import (
	"context"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// tripwire panics at a given place, and counts how often it is passed.
type tripwire struct {
	at    string
	count atomic.Int64
}

func (w *tripwire) pass(at string) {
	if w.at == at {
		w.count.Add(1)
		panic("at " + at)
	}
}

// wiredDialect is a dialect with a tripwire before each method.
type wiredDialect struct {
	dialect.Dialect
	*tripwire
}

func (d wiredDialect) Split(path string, body []byte) (*dialect.Request, error) {
	d.pass("Split")
	return d.Dialect.Split(path, body)
}

func (d wiredDialect) Read(raw []byte) (session.Content, error) {
	d.pass("Read")
	return d.Dialect.Read(raw)
}

func (d wiredDialect) Note(text string) []byte {
	d.pass("Note")
	return d.Dialect.Note(text)
}

func (d wiredDialect) Reply(text string) []byte {
	d.pass("Reply")
	return d.Dialect.Reply(text)
}

func (d wiredDialect) Merge(first, second []byte) ([]byte, error) {
	d.pass("Merge")
	return d.Dialect.Merge(first, second)
}

func (d wiredDialect) Rewrite(raw []byte, text string) ([]byte, error) {
	d.pass("Rewrite")
	return d.Dialect.Rewrite(raw, text)
}

func (d wiredDialect) StripReasoning(raw []byte) ([]byte, error) {
	d.pass("StripReasoning")
	return d.Dialect.StripReasoning(raw)
}

func (d wiredDialect) Join(r *dialect.Request, messages [][]byte) [][]byte {
	d.pass("Join")
	return d.Dialect.Join(r, messages)
}

func (d wiredDialect) Tee(streamed bool) dialect.Tee {
	d.pass("Tee")
	return d.Dialect.Tee(streamed)
}

func (d wiredDialect) Opening([]byte) bool {
	d.pass("Opening")
	return false
}

// wiredTokens is a counter with tripwires.
type wiredTokens struct {
	quarters
	*tripwire
}

func (w wiredTokens) Counter(string) engine.Counter { return w }

func (w wiredTokens) Text(s string) int {
	w.pass("Text")
	return w.quarters.Text(s)
}

func (w wiredTokens) Message(c session.Content) int {
	w.pass("Message")
	return w.quarters.Message(c)
}

func (w wiredTokens) Observe(source string, counted, actual int, estimated bool) {
	w.pass("Observe")
	w.quarters.Observe(source, counted, actual, estimated)
}

func (w wiredTokens) Adjust(source string, counted int) int {
	w.pass("Adjust")
	return w.quarters.Adjust(source, counted)
}

// wiredCondenser is a condenser with tripwires before and in its jobs.
type wiredCondenser struct {
	condense.Condenser
	*tripwire
}

func (w wiredCondenser) Condense(in condense.Input) condense.Decision {
	w.pass("Condense")
	d := w.Condenser.Condense(in)
	if d.Job != nil {
		d.Job = wiredJob{d.Job, w.tripwire}
	}
	return d
}

type wiredJob struct {
	condense.Job
	*tripwire
}

func (w wiredJob) Asks() bool {
	w.pass("Asks")
	return w.Job.Asks()
}

func (w wiredJob) Run(ctx context.Context) (condense.Result, error) {
	w.pass("Run")
	return w.Job.Run(ctx)
}

// wiredSummariser panics instead of answering.
type wiredSummariser struct{ *tripwire }

func (w wiredSummariser) Summarise(context.Context, condense.Request) (condense.Reply, error) {
	w.pass("Summarise")
	return condense.Reply{}, context.Canceled
}

// wired is a rig with one tripwire at all boundaries of a request. Its condenser trims results and summarises.
func wired(t *testing.T, wire *tripwire) *rig {
	condenser := condense.Pipeline{Stages: []condense.Condenser{
		condense.ToolOutputTrim{MaxEventLength: 200}, llm(0, "", patience),
	}}
	if wire.at == "Summarise" {
		condenser.Stages[1] = condense.NewLLM(condense.LLMSettings{
			Settings: condense.Settings{MaxSize: 10, KeepFirst: 1}, Summariser: wiredSummariser{wire}, Model: cheapModel,
		})
	}
	r := condensing(t, setup{
		condenser: wiredCondenser{condenser, wire}, tokens: wiredTokens{tripwire: wire},
		dialect: wiredDialect{chat.New(chat.Options{Fields: agents.SessionFields(), Remember: 8 << 20}), wire},
		models: func(name string) proxy.ModelInfo {
			wire.pass("models")
			return proxy.ModelInfo{Model: engine.Model{Name: name}}
		},
	})
	delete(r.final, "dewpoint_panics_total")
	return r
}

// TestPanicAtEachBoundary has each call from the proxy and the engine to something else panic, every time. The request is still answered,
// and forwarded unchanged if it is not condensed.
func TestPanicAtEachBoundary(t *testing.T) {
	boundaries := []string{
		"", "Split", "Read", "Note", "Rewrite", "StripReasoning", "Join", "Tee", "Opening", "models",
		"Text", "Message", "Observe", "Adjust", "Condense", "Asks", "Run", "Summarise",
	}
	apart := []string{ // said elsewhere, or never called for a request to this upstream
		"Name", "Reply", "Merge", "Compose", "Failure", "Event", "Key", "CanHideTools", "Offer", "Result", "FilterAnswers", "CacheTTL", "Reuse",
		"Question", "Place", "Servers", // of summarisers, which panic as a whole at "Summarise"
	}
	for method := range reflect.TypeFor[dialect.Dialect]().Methods() {
		if !slices.Contains(boundaries, method.Name) && !slices.Contains(apart, method.Name) {
			t.Errorf("%s is not tried", method.Name)
		}
	}
	for _, at := range boundaries {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			wire := &tripwire{at: at}
			r := wired(t, wire)
			history := []string{say("system", "You help.")}
			for step := range 9 {
				result := `{"role":"tool","tool_call_id":"c` + string(rune('0'+step)) + `","content":"` + strings.Repeat("it is so ", 60) + `"}`
				history = append(history, say("user", "and then?"+strings.Repeat(" more", 20)),
					`{"role":"assistant","content":null,"thinking_blocks":[{"type":"thinking","thinking":"So.","signature":"s"}],"tool_calls":[{"id":"c`+string(rune('0'+step))+`","type":"function","function":{"name":"look","arguments":"{}"}}]}`,
					result)
				for _, stream := range []string{"", `"stream":true,`} {
					body := strings.Replace(messages(history...), "{", "{"+stream, 1)
					resp, answer := r.ask(body)
					if resp.StatusCode != http.StatusOK || !strings.Contains(answer, "Unders") {
						t.Fatalf("step %d: %s, %s", step, resp.Status, answer)
					}
					if got := r.forwarded(); string(got.Body) != body && len(got.Body) >= len(body) {
						t.Errorf("step %d: forwarded %s", step, got.Body)
					}
				}
			}
			if at != "" && wire.count.Load() == 0 {
				t.Error("it was never called")
			}
		})
	}
}
