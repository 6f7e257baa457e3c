package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// generatedSteps is the number of model calls of a generated run.
const generatedSteps = 14

const generatedTools = `[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]`

// generated returns a random run from a seed: steps with one to three calls, short and long results, answers in plain text, and
// the user's next messages.
func generated(seed uint64) replay.Run {
	r := rand.New(rand.NewPCG(seed, 11))
	run := replay.Run{
		Name:  fmt.Sprint("generated ", seed),
		Tools: json.RawMessage(generatedTools),
		Final: marshal(msg("assistant", "All is done.")),
		Messages: []json.RawMessage{
			marshal(msg("system", "You look after parcels.")), marshal(msg("user", "Find the parcels.")),
		},
	}
	for n := range generatedSteps - 1 {
		if r.IntN(4) == 0 {
			next := strings.Repeat("please ", r.IntN(40))
			run.Messages = append(run.Messages, marshal(msg("assistant", fmt.Sprintf("Parcel %d is found.", n))), marshal(msg("user", "Go on "+next)))
			continue
		}
		call := msg("assistant", "")
		if r.IntN(2) == 0 {
			call["content"] = fmt.Sprintf("I look at shelf %d.", n)
		}
		var calls, results []any
		for i := range 1 + r.IntN(3) {
			id := fmt.Sprintf("call_of_the_run_%d_%d_%d", seed, n, i)
			calls = append(calls, map[string]any{
				"id": id, "type": "function", "function": map[string]string{"name": "look", "arguments": fmt.Sprintf(`{"shelf":%d}`, n)},
			})
			text := fmt.Sprintf("finding-%d-%d%s", n, i, strings.Repeat(" the parcel is not here", 4+r.IntN(12)))
			if r.IntN(4) == 0 {
				text = strings.Repeat(text+"\n", 8)
			}
			results = append(results, map[string]any{"role": "tool", "tool_call_id": id, "content": text})
		}
		call["tool_calls"] = calls
		run.Messages = append(run.Messages, marshal(call))
		for _, result := range results {
			run.Messages = append(run.Messages, marshal(result))
		}
	}
	return run
}

// stages returns one condenser of each type that condenses, small enough to condense generated runs.
func stages() []config.Condenser {
	return condensetest.Sized(map[string]any{
		"max_size": 12, "keep_first": 1, "max_events": 12, "attention_window": 6, "max_event_length": 500, "llm_config": "cheap",
	})
}

// everyCondenser returns each condenser alone, and each pair of condensers as a pipeline. If few is true, it returns only every seventh pair;
// each condenser is still both the first and the second one of a pair.
func everyCondenser(few bool) []config.Condenser {
	all := stages()
	for a, first := range stages() {
		for b, second := range stages() {
			if !few || (a+2*b)%7 == 0 {
				all = append(all, config.Condenser{Type: catalogue.TypePipeline, Condensers: []config.Condenser{first, second}})
			}
		}
	}
	return all
}

// nameOf returns the name of a condenser in these tests, which is also its tenant's.
func nameOf(c config.Condenser) string {
	name := c.Type
	for _, stage := range c.Condensers {
		name += "-" + stage.Type
	}
	return name
}

// asks reports whether a condenser or one of its stages calls a model.
func asks(c config.Condenser) bool {
	return c.Uses(func(stage config.Condenser) bool { return stage.Entry().Asks() })
}

// crew is a stage with a tenant for each condenser.
type crew struct {
	*Stage
	form    fakeupstream.Seal
	options Options      // of all plays
	pattern int          // index in patterns
	answers atomic.Int64 // answers so far in the current play
}

// patterns select the answers of a run that have sealed reasoning: all, some, the first.
func patterns() []func(n int64) bool {
	return []func(int64) bool{
		func(int64) bool { return true }, func(n int64) bool { return n%3 == 1 }, func(n int64) bool { return n == 0 },
	}
}

func newCrew(t *testing.T, up fakeupstream.Options, window int) *crew {
	t.Helper()
	w := &crew{form: up.Seals}
	up.Keep = 16
	up.IsSummary = func(r *fakeupstream.Request) bool { return string(r.Tools) != generatedTools }
	up.SealWhen = func(int) bool { return patterns()[w.pattern](w.answers.Add(1) - 1) }
	cfg := config.Default()
	for _, c := range everyCondenser(false) {
		key := sha256.Sum256([]byte(nameOf(c)))
		cfg.Tenants = append(cfg.Tenants, config.Tenant{
			Name: nameOf(c), APIKeys: []config.APIKey{{SHA256: hex.EncodeToString(key[:])}}, Condenser: &c,
		})
	}
	switch {
	case window > 0:
		cfg.Models = map[string]model.Info{Model: {ContextWindow: window, MaxOutput: 300, Encoding: tokenize.O200k}}
	case up.Alternates:
		cfg.Models = map[string]model.Info{Model: {ContextWindow: 128000, MaxOutput: 16384, Encoding: tokenize.O200k, AlternateRoles: true}}
	}
	var err error
	if w.Stage, err = NewStage(*cfg, up, Encoders); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// play plays a generated run under a condenser. A request that was refused, and sent again unchanged, is an error.
func (w *crew) play(t *testing.T, c config.Condenser, seed, pattern int, each func(Step)) Report {
	t.Helper()
	w.pattern = pattern
	w.answers.Store(0)
	o := w.options
	o.URL, o.Upstream, o.Model, o.Sealed, o.Each = func(int) string { return w.URL() }, w.Upstream, Model, w.form != "", each
	o.Headers = http.Header{"Authorization": {"Bearer " + nameOf(c)}}
	report, err := Play(t.Context(), generated(uint64(seed)), o)
	if err != nil {
		t.Errorf("%s, pattern %d: %v", nameOf(c), pattern, err)
	}
	return report
}

// condensations returns the condensations in the store, by thread.
func (w *crew) condensations(t *testing.T, threads []string) [][]session.Condensation {
	t.Helper()
	store, err := w.stopAndOpen()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	var out [][]session.Condensation
	for _, id := range threads {
		thread, err := store.Thread(t.Context(), session.ThreadID(id))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, thread.Condensations)
	}
	return out
}

// TestSealedRunsCondenseLikePlainOnes tests invariants 35 and 36: upstream accepts every forwarded request, whatever its reasoning is
// bound to, and sealed runs are condensed as often as plain ones.
func TestSealedRunsCondenseLikePlainOnes(t *testing.T) {
	quick.Skip(t)
	var plain []int
	unsealed, total := newCrew(t, fakeupstream.Options{}, 0), 0
	for n, c := range everyCondenser(testing.Short()) {
		plain = append(plain, unsealed.play(t, c, n, 0, nil).Condensations)
		total += plain[n]
	}
	if total < 2*len(plain) {
		t.Errorf("%d condensations by %d condensers", total, len(plain))
	}
	for i, form := range fakeupstream.Seals() {
		t.Run(string(form), func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, fakeupstream.Options{Seals: form}, 0)
			for n, c := range everyCondenser(testing.Short()) {
				if len(c.Condensers) > 0 && (i+n)%3 != 0 {
					continue // each pair with one binding or two
				}
				pattern := (i + n/3) % len(patterns())
				got := w.play(t, c, n, pattern, nil).Condensations
				if got != plain[n] {
					t.Errorf("%s, pattern %d: %d condensations, %d plain", nameOf(c), pattern, got, plain[n])
				}
			}
		})
	}
}

// TestManualThinking tests invariant 35 with thinking enabled in the request: nothing is refused, under any condenser.
func TestManualThinking(t *testing.T) {
	quick.Skip(t)
	for _, protocol := range []string{"chat", "messages"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, fakeupstream.Options{Seals: fakeupstream.SealThinkingBlocks}, 0)
			w.options = Options{Habits: Habits{Manual: true}, Protocol: protocol}
			for n, c := range everyCondenser(testing.Short()) {
				w.play(t, c, n, 0, nil)
			}
		})
	}
}

// rolesOf runs a test with an upstream that accepts roles in any order, and with one that requires alternating roles.
func rolesOf(t *testing.T, run func(t *testing.T, up fakeupstream.Options)) {
	for name, up := range map[string]fakeupstream.Options{"free": {}, "alternating": {Alternates: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, up)
		})
	}
}

// TestAClockCostsNothing tests invariant 42: if the first message changes at each step, the summariser is not called more often.
func TestAClockCostsNothing(t *testing.T) {
	quick.Skip(t)
	rolesOf(t, func(t *testing.T, up fakeupstream.Options) {
		// Each run has its own store, because two runs with the same calls and results could not be distinguished in one.
		plain, clocked, asked := newCrew(t, up, 0), newCrew(t, up, 0), 0
		clocked.options = Options{Habits: Habits{Clock: true}}
		for n, c := range everyCondenser(testing.Short()) {
			if !asks(c) {
				continue
			}
			want := plain.play(t, c, n, 0, nil).OwnCalls
			if want < 2 { // the summariser's answers were unusable, so it was not called for a while
				continue
			}
			if got := clocked.play(t, c, n, 0, nil).OwnCalls; got > want {
				t.Errorf("%s: %d calls of the summariser, %d without a clock", nameOf(c), got, want)
			}
			asked++
		}
		if asked < 5 {
			t.Errorf("%d condensers compared", asked)
		}
	})
}

// TestTokensAreThoseOfUpstream: under any condenser, X-Dewpoint-Tokens is upstream's count of the forwarded request.
func TestTokensAreThoseOfUpstream(t *testing.T) {
	quick.Skip(t)
	count := cookbook(t)
	rolesOf(t, func(t *testing.T, up fakeupstream.Options) {
		up.CountTokens = count
		w := newCrew(t, up, 0)
		const priming = 3 // of the reply, once per request
		near := func(what string, got, want int) {
			if off := got - want - priming; max(off, -off)*100 > want {
				t.Errorf("%s: %d, upstream counts %d", what, got, want)
			}
		}
		for n, c := range everyCondenser(testing.Short()) {
			w.play(t, c, n, 0, func(s Step) {
				var before, after int
				if _, err := fmt.Sscanf(s.Tokens, "%d;%d", &before, &after); err != nil {
					t.Fatalf("step %d: tokens %q: %v", s.Number, s.Tokens, err)
				}
				near(fmt.Sprintf("%s, step %d, sent", nameOf(c), s.Number), before, s.Sent)
				near(fmt.Sprintf("%s, step %d, forwarded", nameOf(c), s.Number), after, s.Prompt)
			})
		}
	})
}

// cookbook counts a message as OpenAI's cookbook does, from the JSON that arrived, independently of the proxy.
func cookbook(t *testing.T) func([]byte) int {
	t.Helper()
	encoder, err := Encoders.Encoder(tokenize.O200k)
	if err != nil {
		t.Fatal(err)
	}
	return func(raw []byte) int {
		var m struct {
			Role, Name, Content string
			ToolCalls           []struct {
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return encoder.Count(string(raw)) // the tools
		}
		n := 3 + encoder.Count(m.Role) + encoder.Count(m.Content)
		for _, c := range m.ToolCalls {
			n += 8 + encoder.Count(c.Function.Name) + encoder.Count(c.Function.Arguments)
		}
		return n
	}
}

// TestNothingIsForgottenWithoutASummary tests invariant 37: while the summariser fails, a condenser that needs it hides nothing
// unless the window would overflow, and then marks the condensation provisional.
func TestNothingIsForgottenWithoutASummary(t *testing.T) {
	for _, window := range []int{0, 3000} {
		t.Run(fmt.Sprint("window ", window), func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
				return fakeupstream.Answer{Refusal: "I cannot help with that."}
			}}, window)
			var played []config.Condenser
			var threads []string
			forced := 0
			for n, c := range everyCondenser(testing.Short()) {
				if !asks(c) {
					continue
				}
				shortened := false
				report := w.play(t, c, n, 0, func(s Step) { shortened = shortened || s.Forwarded < s.Events })
				played, threads = append(played, c), append(threads, report.Thread)
				if len(c.Condensers) == 0 && shortened != (report.Condensations > 0) {
					t.Errorf("%s: shortened %t by %d condensations", nameOf(c), shortened, report.Condensations)
				}
			}
			for i, made := range w.condensations(t, threads) {
				for _, m := range made {
					if e, _ := catalogue.Find(m.Condenser); !e.Asks() {
						continue
					}
					forced++
					if window == 0 || !m.Provisional || m.Reason == session.ReasonEvents {
						t.Errorf("%s: %s for %s: %s, provisional %t", nameOf(played[i]), m.Condenser, m.Reason, m.Made(), m.Provisional)
					}
				}
			}
			if (window > 0) != (forced > 0) {
				t.Errorf("%d condensations", forced)
			}
		})
	}
}
