package proxy_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// everyCondenser returns a condenser of each type in the catalogue but noop and lossless_trim, and each one that hides messages behind each that does not in a
// pipeline, set so that they condense only after a refusal. Types that make another view at each step are marked.
func everyCondenser(t *testing.T) (all map[string]condense.Condenser, shaping map[string]bool) {
	all, shaping = map[string]condense.Condenser{}, map[string]bool{}
	var first, second []condense.Condenser
	for _, s := range condensetest.Sized(map[string]any{
		"max_size": 0, "keep_first": 2, "minimum_progress": 0.1, "max_events": 16, "attention_window": 6, "max_event_length": 3000,
	}) {
		if s.Type == catalogue.TypeLosslessTrim {
			continue // it trims results of any length when they arrive
		}
		c, err := catalogue.Build(s.Type, s, cheap{})
		if err != nil {
			t.Fatal(err)
		}
		all[s.Type], shaping[s.Type] = c, s.Entry().Shapes
		if s.Entry().Forgets() {
			second = append(second, c)
		} else {
			first = append(first, c)
		}
	}
	for _, stage := range first {
		for _, rolling := range second {
			name := stage.Name() + "+" + rolling.Name()
			all[name], shaping[name] = condense.Pipeline{Stages: []condense.Condenser{stage, rolling}}, shaping[stage.Name()]
		}
	}
	return all, shaping
}

// cheap builds condensers that call the cheap model.
type cheap struct{}

func (cheap) Rolling(s catalogue.Settings, _ condense.Input) condense.Settings { return s.Rolling() }

func (cheap) Asking(_ string, s catalogue.Settings) (func(condense.Input) condense.LLMSettings, error) {
	caller := summariser.Caller{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience}
	return func(condense.Input) condense.LLMSettings {
		return condense.LLMSettings{Settings: s.Rolling(), Model: cheapModel, MaxOutput: 300, Summariser: caller}
	}, nil
}

// grow adds a turn to a history: calls with results of any length, or an answer and the user's next message.
func grow(r *rand.Rand, history []string, n int) []string {
	if r.IntN(4) == 0 {
		return append(history, say("assistant", fmt.Sprintf("Done with %d.", n)), say("user", fmt.Sprintf("Go on with %d %s", n, strings.Repeat("please ", r.IntN(60)))))
	}
	lines := r.IntN(120)
	if r.IntN(8) == 0 {
		lines = 3000
	}
	return append(history, calls(fmt.Sprint(n), 1+r.IntN(3), lines)...)
}

const steps = 14

// forEach runs a test for every condenser, with and without alternating roles. Condensers whose view changes with each request are included
// only if shapes is set. With few, only every other case runs.
func forEach(t *testing.T, shapes, few bool, run func(t *testing.T, c condense.Condenser, shapes, alternates bool, random *rand.Rand)) {
	all, shaping := everyCondenser(t)
	for name, c := range all {
		if shaping[name] && !shapes {
			continue
		}
		for i, alternates := range []bool{false, true} {
			if few && len(name)%2 != i {
				continue
			}
			t.Run(fmt.Sprintf("%s/alternating %t", name, alternates), func(t *testing.T) {
				t.Parallel()
				run(t, c, shaping[name], alternates, rand.New(rand.NewPCG(1, 9)))
			})
		}
	}
}

// TestRequestsThatCanFitAreAnswered: whatever the history and the condenser, a request that can be made to fit is answered, and forwarded
// messages are forwarded again unchanged until something else is condensed.
func TestRequestsThatCanFitAreAnswered(t *testing.T) {
	quick.Skip(t)
	forEach(t, true, testing.Short(), func(t *testing.T, c condense.Condenser, shapes, alternates bool, random *rand.Rand) {
		r := condensing(t, setup{condenser: c, upstream: fakeupstream.Options{Windows: map[string]int{"gpt-4o": 4000}, Alternates: alternates}})
		history := []string{say("system", "Work."), say("user", "Build it.")}
		var last []byte
		for n := range steps {
			history = grow(random, history, n)
			resp, body := r.ask(messages(history...))
			if resp.StatusCode != http.StatusOK {
				t.Fatalf("step %d: %s: %s", n, resp.Status, body)
			}
			forwarded := bytes.TrimSuffix(r.forwarded().Body, []byte("]}"))
			if !shapes && resp.Header.Get("X-Dewpoint-Condensed") == "" && !bytes.HasPrefix(forwarded, last) {
				t.Errorf("step %d: another prefix:\n%.2000s\nbefore:\n%.2000s", n, forwarded, last)
			}
			last = forwarded
		}
		if !shapes && r.refusals() == 0 {
			t.Error("nothing overflowed")
		}
	})
}

// TestRefusedCondensationIsForwardedVerbatim is invariant 40.
func TestRefusedCondensationIsForwardedVerbatim(t *testing.T) {
	quick.Skip(t)
	forEach(t, true, testing.Short(), func(t *testing.T, c condense.Condenser, _, alternates bool, random *rand.Rand) {
		var sent atomic.Value
		r := condensing(t, setup{condenser: c, upstream: fakeupstream.Options{Reply: func(req *fakeupstream.Request) fakeupstream.Answer {
			if string(req.Body) == sent.Load() {
				return fakeupstream.Answer{Content: "Fine."}
			}
			refusal := "It is not as it came."
			if alternates {
				refusal = "Conversation roles must alternate user/assistant/user/assistant/..."
			}
			return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Type: "invalid_request_error", Message: refusal}}
		}}})
		history := []string{say("system", "Work."), say("user", "Build it.")}
		for n := range steps {
			history = grow(random, history, n)
			body := messages(history...)
			sent.Store(body)
			if resp, answer := r.ask(body, "X-Dewpoint-Condense", "now"); resp.StatusCode != http.StatusOK || string(r.forwarded().Body) != body {
				t.Fatalf("step %d: %s: %s", n, resp.Status, answer)
			}
		}
	})
}

// TestOverflowThatCannotBeCuredLeavesNoTrace is invariant 39: an overflow that cannot be cured leaves no trace, and the next request is forwarded
// unchanged.
func TestOverflowThatCannotBeCuredLeavesNoTrace(t *testing.T) {
	forEach(t, false, testing.Short(), func(t *testing.T, c condense.Condenser, _, alternates bool, random *rand.Rand) {
		var open atomic.Bool
		r := condensing(t, setup{condenser: c, upstream: fakeupstream.Options{Alternates: alternates, Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			if open.Load() {
				return fakeupstream.Answer{Content: "Fine."}
			}
			return fakeupstream.Answer{Error: &fakeupstream.APIError{
				Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "context_length_exceeded",
				Message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
			}}
		}}})
		history := []string{say("system", "Work."), say("user", "Build it.")}
		for n := range steps {
			history = append(history, calls(fmt.Sprint(n), 1+random.IntN(3), 20)...) // too short for what trims on arrival
		}
		if resp, body := r.ask(messages(history...)); resp.StatusCode != http.StatusBadRequest {
			t.Fatalf("%s: %s", resp.Status, body)
		}
		open.Store(true)
		body := messages(append(history, calls("last", 1, 20)...)...)
		if resp, answer := r.ask(body); resp.StatusCode != http.StatusOK || string(r.forwarded().Body) != body {
			t.Errorf("%s, condensed %q: %.300s", resp.Status, resp.Header.Get("X-Dewpoint-Condensed"), answer)
		}
	})
}
