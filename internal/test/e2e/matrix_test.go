package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	configsource "github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// matrixVariable is the environment variable with the recorded runs, files or folders, to play in all combinations. 'make matrix'
// sets it.
const matrixVariable = "DEWPOINT_MATRIX"

// kind is a condenser of the matrix.
type kind struct {
	name, config string
	shapes       bool // it changes the view at each step, without a condensation
	plain        bool // it makes no records
	asked        bool // it condenses only on a client's request
}

// kinds returns a condenser of each type in the catalogue but noop and those that need a service, which condense at a number of messages, and a
// pipeline.
func kinds(size int) (all []kind) {
	values := map[string]string{
		"max_size": fmt.Sprint(size), "min_tokens": "0", "max_events": fmt.Sprint(size), "attention_window": "4", "stride": "10",
		"llm_config": "cheap", "wait": "deadline", "deadline": "1m", "background_at": "0",
	}
	configs := map[string]string{}
	for _, e := range catalogue.Entries() {
		if e.Type == catalogue.TypeNoop || e.Wraps() || e.Has("url") {
			continue
		}
		text := "{type: " + e.Type
		for _, k := range catalogue.Keys() {
			value, given := values[k.Name]
			byDefault, counts := e.Default(k).(int)
			switch {
			case !e.Has(k.Name), e.Rolling() && (k.Name == "keep_first" || k.Name == "max_event_length"):
			case given:
				text += ", " + k.Name + ": " + value
			case counts: // In the Responses API an answer that is kept first could not be distinguished from the one after it.
				text += fmt.Sprintf(", %s: %d", k.Name, max(1, byDefault/16))
			}
		}
		configs[e.Type] = text + "}"
		all = append(all, kind{
			name: e.Type, config: configs[e.Type],
			shapes: e.Shapes, plain: e.Unrecorded || !e.Forgets(), asked: e.Forgets() && !e.Rolling(),
		})
	}
	return append(all, kind{name: "pipeline", config: "{type: pipeline, condensers: [" + configs[catalogue.TypeToolOutputTrim] + ", " + configs[catalogue.TypeLLM] + "]}"})
}

// TestKindsAreValid checks the configurations of the matrix, which is played only with recorded runs.
func TestKindsAreValid(t *testing.T) {
	for _, k := range kinds(24) {
		file := writeFile(t, t.TempDir(), "dewpoint.yaml", "llms: {cheap: {model: m}}\ncondenser: "+k.config)
		if _, err := configsource.Load(configsource.Input{File: file}); err != nil {
			t.Errorf("%s: %v", k.config, err)
		}
	}
}

// sealing selects the answers with sealed reasoning, and its form.
type sealing struct {
	form      fakeupstream.Seal // empty: without
	steps     string
	when      func(step int) bool
	protocols []string
}

func sealings() (all []sealing) {
	all = append(all, sealing{steps: "no", protocols: []string{"messages", "responses"}},
		sealing{steps: "no", protocols: []string{"gemini", "gemini without ids"}})
	for _, s := range []sealing{
		{steps: "each", when: func(int) bool { return true }}, {steps: "some", when: func(n int) bool { return n%3 == 1 }},
		{steps: "first", when: func(n int) bool { return n == 0 }},
	} {
		all = append(all, sealing{fakeupstream.SealThinkingBlocks, s.steps, s.when, []string{"messages", "messages by hand"}},
			sealing{fakeupstream.SealResponsesDetails, s.steps, s.when, []string{"responses"}},
			sealing{fakeupstream.SealClaudeDetails, s.steps, s.when, []string{"responses"}},
			sealing{fakeupstream.SealThoughtSignature, s.steps, s.when, []string{"gemini"}})
	}
	return all
}

// TestMatrix plays recorded runs in all protocols but Chat Completions, under every kind of condenser and with reasoning sealed in every form, over two replicas on one Redis, of which one is killed and restarted in the middle of each run. No
// request is refused, no answer altered, the prefix is stable, a run is one thread, and the reported savings match upstream's
// counts.
func TestMatrix(t *testing.T) {
	list := strings.Fields(os.Getenv(matrixVariable))
	if len(list) == 0 {
		t.Skip("SKIPPED: set " + matrixVariable + " to recorded runs; runs of our own prove the same in internal/test/judge")
	}
	paths, err := replay.Paths(list)
	ok(t, err)
	eachCell(t, kinds(40), func(t *testing.T, m *matrix, protocol string, _ int) {
		for _, path := range paths {
			run, err := replay.Load(path)
			ok(t, err)
			m.play(t, run, protocol)
		}
	})
}

// TestRecordedProtocols does the same as TestMatrix, but plays only the beginning of one recorded run in each cell, in rotation, so that each run
// is played in each protocol.
func TestRecordedProtocols(t *testing.T) {
	const size, length = 24, 90
	runs := recorded(t)
	turns := eachCell(t, kinds(size), func(t *testing.T, m *matrix, protocol string, turn int) {
		m.play(t, judge.Beginning(runs[turn%len(runs)].Run, length), protocol)
	})
	for protocol, played := range turns {
		if played < len(runs) && !judge.Sampled() {
			t.Errorf("%d of %d runs were played in %s", played, len(runs), protocol)
		}
	}
}

// eachCell plays the selected cells of the matrix in parallel. play is called for each protocol of a cell, with the number of earlier calls for its
// API. It returns the number of calls for each API.
func eachCell(t *testing.T, kinds []kind, play func(t *testing.T, m *matrix, protocol string, turn int)) map[string]int {
	redis, count, turns := sessiontest.StartRedis(t), newContents(t), map[string]int{}
	cell := -1
	for _, k := range kinds {
		for _, s := range sealings() {
			if cell++; !judge.Selected(cell) {
				continue
			}
			first := maps.Clone(turns)
			for _, protocol := range s.protocols {
				turns[apiOf(protocol)]++
			}
			t.Run(fmt.Sprintf("%s/%s on %s steps", k.name, s.form, s.steps), func(t *testing.T) {
				t.Parallel()
				m := newMatrix(t, k, s, redis.Addr, count)
				for _, protocol := range s.protocols {
					api := apiOf(protocol)
					play(t, m, protocol, first[api])
					first[api]++
				}
			})
		}
	}
	return turns
}

func apiOf(protocol string) string {
	api, _, _ := strings.Cut(protocol, " ")
	return api
}

// matrix is one cell of the matrix.
type matrix struct {
	kind
	sealing
	*setting
	config string
	pair   [2]*process
	step   *atomic.Int64
}

func newMatrix(t *testing.T, k kind, s sealing, redis string, count *contents) *matrix {
	m := &matrix{kind: k, sealing: s, step: &atomic.Int64{}}
	options := fakeupstream.Options{Keep: 16, Seals: s.form, CountTokens: count.message}
	if s.when != nil {
		options.SealWhen = func(int) bool { return s.when(int(m.step.Load())) }
	}
	m.setting = newLenient(t, options)
	m.config = writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s}}
condenser: %s
shutdown: {delay: 0s, timeout: 1m}
`, m.url, inRedis(redis), judge.Summariser, k.config))
	m.pair = [2]*process{serve(t, "--config", m.config), serve(t, "--config", m.config)}
	return m
}

func (m *matrix) play(t *testing.T, run replay.Run, protocol string) {
	t.Helper()
	protocol, manual := strings.CutSuffix(protocol, " by hand")
	protocol, without := strings.CutSuffix(protocol, " without ids")
	name, requested := fmt.Sprintf("%s in %s, by hand %t, without ids %t", run.Name, protocol, manual, without), judge.Model
	if without {
		requested = "gemini-2.5-pro" // whose calls have no ids
	}
	l := &line{to: func(x exchange) *process { return m.pair[x.Step%2] }}
	defer l.client.CloseIdleConnections()
	half, told, said := run.Steps()/2, 0, 0
	headers := http.Header{"Authorization": {"Bearer " + t.Name() + name}}
	report, err := judge.Play(t.Context(), run, judge.Options{
		URL: func(int) string { return "http://proxy/v1" }, Client: &http.Client{Transport: l}, Model: requested, Upstream: m.Upstream,
		Protocol: protocol, Stream: manual || protocol == "responses" || m.form == fakeupstream.SealThoughtSignature, Sealed: m.form != "", Habits: judge.Habits{Manual: manual}, Again: 10,
		Headers: headers, Expect: judge.Expectations{Summarisers: []string{judge.Summariser}},
		Before: func(step int) {
			m.step.Store(int64(step))
			l.now = exchange{Step: step}
			if headers.Del("X-Dewpoint-Condense"); m.asked && step%10 == 4 {
				headers.Set("X-Dewpoint-Condense", "now")
			}
		},
		Each: func(s judge.Step) {
			var before, after int
			if _, err := fmt.Sscanf(s.Tokens, "%d;%d", &before, &after); err != nil {
				t.Errorf("%s: step %d: tokens %q", name, s.Number, s.Tokens)
			}
			told, said = told+before-after, said+s.Sent-s.Prompt
			if s.Number == half {
				m.pair[0].kill()
				m.pair[0] = serve(t, "--config", m.config)
			}
		},
	})
	report.Violations = slices.DeleteFunc(report.Violations, m.meant)
	if err = errors.Join(append(report.Violations, err, sameThread(l.placed))...); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if off := told - said; max(off, -off)*100 > report.Sent {
		t.Errorf("%s: %d tokens are said to be saved of %d, upstream counts %d", name, told, report.Sent, said)
	}
	t.Logf("%s: %d steps, %d condensations, %.1f%% saved, %+d of %d tokens reported too many", name, report.Steps, report.Condensations,
		report.Saved(), told-said, said)
}

// meant reports whether a violation is the intended effect of the condenser.
func (m *matrix) meant(v error) bool {
	text := v.Error()
	return m.shapes && strings.Contains(text, "stable prefix: ") && strings.Contains(text, "without a condensation") ||
		m.plain && strings.Contains(text, "condensed without a summary")
}

// The tokens of a message and a call in addition to their texts.
const (
	messageFrame = 4
	callFrame    = 8
)

// contents counts the texts of a message in any protocol, independently of the proxy. Each message is counted once, since a run sends it
// again at each step, and each cell plays the same runs. Safe for concurrent use.
type contents struct {
	encoder *tokenize.Encoder
	counted sync.Map // int by [sha256.Size]byte, of the message
}

func newContents(t *testing.T) *contents {
	t.Helper()
	encoder, err := tokenize.New().Encoder(tokenize.O200k)
	ok(t, err)
	return &contents{encoder: encoder}
}

// message returns the tokens of a message or of the tools.
func (c *contents) message(raw []byte) int {
	key := sha256.Sum256(raw)
	if n, known := c.counted.Load(key); known {
		return n.(int)
	}
	n := c.read(raw)
	c.counted.Store(key, n)
	return n
}

func (c *contents) read(raw []byte) int {
	var v any
	if json.Unmarshal(raw, &v) != nil || raw[0] == '[' {
		return c.encoder.Count(string(raw)) // the tools
	}
	n := c.texts("", v)
	if m, is := v.(map[string]any); is && m["type"] != "reasoning" {
		n += messageFrame
	}
	return n
}

// texts returns the tokens of a value that stands under a key.
func (c *contents) texts(key string, v any) (n int) {
	switch v := v.(type) {
	case string:
		if slices.Contains([]string{"", "text", "content", "output", "arguments", "name", "thinking"}, key) {
			return c.encoder.Count(v)
		}
	case []any:
		for _, e := range v {
			n += c.texts(key, e)
		}
	case map[string]any:
		for k, e := range v {
			switch k {
			case "input", "args": // of a call
				n += callFrame + c.encoder.Count(string(assemble.Encode(e))) // as the agent encodes it: with & and <, not with escapes
			case "arguments":
				n += callFrame + c.texts(k, e)
			default:
				n += c.texts(k, e)
			}
		}
	}
	return n
}

// TestCallsAreCountedAsSent checks upstream's count of a call in each protocol: of the arguments as they are sent, without the escapes that
// encoding/json adds by default. Otherwise upstream would report more tokens for calls than for the same text in results, the proxy would
// learn a ratio above one, and the tokens that it reports for hidden results would seem too many.
func TestCallsAreCountedAsSent(t *testing.T) {
	t.Parallel()
	const arguments = `{"command":"cd /src && go test ./... 2>&1 | grep -v '<nil>' > out"}`
	c := newContents(t)
	want := messageFrame + callFrame + c.encoder.Count("run") + c.encoder.Count(arguments)
	for protocol, call := range map[string]string{
		"chat":      fmt.Sprintf(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"run","arguments":%s}}]}`, encode(arguments)),
		"messages":  fmt.Sprintf(`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"run","input":%s}]}`, arguments),
		"responses": fmt.Sprintf(`{"type":"function_call","call_id":"a","name":"run","arguments":%s}`, encode(arguments)),
		"gemini":    fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"id":"a","name":"run","args":%s}}]}`, arguments),
	} {
		if got := c.message([]byte(call)); got != want {
			t.Errorf("%s: %d tokens, want %d", protocol, got, want)
		}
	}
}
