package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The client whose requests fail: because of its key, its model, or the content of its history.
const (
	troubled  = "a troubled key"
	badModel  = "m-gone"
	badPhrase = "a phrase that no model summarises"
)

// moody is a summariser that always fails for one client.
type moody struct {
	kind   condense.Failure
	status int
}

func (m moody) Summarise(_ context.Context, r condense.Request) (condense.Reply, error) {
	bad := strings.Contains(r.User, badPhrase)
	switch {
	case bad && m.kind == "":
		return condense.Reply{Refusal: "I cannot help with that.", Finish: "stop"}, nil
	case r.Endpoint.APIKey == troubled || r.Model == badModel:
		return condense.Reply{}, &condense.CallError{Kind: m.kind, Status: m.status}
	case r.Function != nil:
		return condense.Reply{Arguments: `{"user_context":"build it","current_state":"fine"}`, Finish: "stop"}, nil
	case r.Format != nil:
		return condense.Reply{Text: `{"ids":[1,2,3,5,8,13]}`, Finish: "stop"}, nil
	}
	return condense.Reply{Text: "USER_CONTEXT: build it", Finish: "stop"}, nil
}

// sharing returns the condensers that ask a model: the request's own, or one that all clients share. Each tracks its summariser's health.
func sharing(t rapid.TB, r *rig, settings condense.Settings, s condense.Summariser, model string) []condense.Condenser {
	health := summariser.NewHealth(func() time.Time { return r.clock })
	llm := condense.LLMSettings{Settings: settings, Model: model, Summariser: s, Health: health}
	all := []condense.Condenser{condense.NewLLM(llm), condense.NewStructured(llm), condense.NewAttention(llm)}
	for _, c := range all[:3] {
		all = append(all, condense.Pipeline{Stages: []condense.Condenser{condense.ToolOutputTrim{MaxEventLength: 300}, c}})
	}
	return all
}

// TestFailuresOfOneClientAffectNoOther: a client whose key or model is refused, or whose history no model summarises, does not change what goes
// upstream for another client, whatever the content of both histories.
func TestFailuresOfOneClientAffectNoOther(t *testing.T) {
	quick.Skip(t)
	const condensers = 6
	seeds := 20
	if testing.Short() {
		seeds = 6
	}
	for which := range condensers {
		for _, trouble := range []string{"key", "model", "content"} {
			t.Run(fmt.Sprint(which, " ", trouble), func(t *testing.T) {
				t.Parallel()
				alone, beside := newRig(t, condense.Noop{}), newRig(t, condense.Noop{})
				alone.tenant.Anonymous, beside.tenant.Anonymous = true, true
				runs, condensed, failed := 0, 0, 0
				run := rapid.MakeFuzz(func(rt *rapid.T) {
					runs++
					settings := condense.Settings{MaxSize: rapid.IntRange(6, 20).Draw(rt, "max size"), KeepFirst: 1}
					window := rapid.SampledFrom([]int{0, 3000}).Draw(rt, "window")
					own := client{words: fmt.Sprint("mine ", runs), key: "a good key", model: "m"}
					other := client{words: fmt.Sprint("theirs ", runs), key: "another good key", model: "m"}
					model, fails := "", moody{condense.FailureDenied, 401} // the request's own
					switch trouble {
					case "key":
						other.key = troubled
					case "model":
						other.key = own.key
						other.model, fails = badModel, moody{condense.FailureServer, 503}
					default:
						other.words, model, fails = other.words+badPhrase, "shared", moody{}
					}
					for _, r := range []*rig{alone, beside} {
						r.window, r.tenant.Condenser = window, sharing(rt, r, settings, fails, model)[which]
					}
					mine, theirs := condensetest.NewGenerator(rt), condensetest.NewGenerator(rt)
					for range rapid.IntRange(1, 4).Draw(rt, "steps") {
						history := mine.Grow(12)
						want, _ := alone.forwards(own, history)
						_, report := beside.forwards(other, theirs.Grow(20))
						got, _ := beside.forwards(own, history)
						if !bytes.Equal(got, want) {
							rt.Fatalf("beside another client: %s\nalone: %s", got, want)
						}
						if bytes.Contains(got, []byte("dewpoint_record")) {
							condensed++
						}
						if report.Overall() == engine.Failed || report.Overall() == engine.Excerpts {
							failed++
						}
					}
				})
				for seed := range uint64(seeds) {
					run(t, noise(seed))
				}
				if failed == 0 || condensed == 0 && which%3 < 2 { // a ranking writes no record
					t.Errorf("%d failed, %d were condensed: nothing was tried", failed, condensed)
				}
			})
		}
	}
}

// client is the sender of a history, and the history's first words.
type client struct{ words, key, model string }

// forwards returns what goes upstream for a client's request.
func (r *rig) forwards(c client, messages []session.Message) ([]byte, engine.Report) {
	const exchange = `{"role":"user","content":%q},{"role":"assistant","content":"Yes."}`
	raw := fmt.Appendf(nil, `{"model":%q,"messages":[`+exchange+`,`+exchange, c.model, c.words, c.words)
	for i := range messages {
		raw = append(append(raw, ','), messages[i].Raw...)
	}
	r.client = c.key
	b := &body{bytes: append(raw, "]}"...)}
	turn := r.begin(b, engine.WishNone)
	report := turn.Condense(context.Background())
	r.logged(turn)
	b.work.Wait()
	return forwarded(turn), report
}
