package condense_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// chatter returns a history of n long messages.
func chatter(n int) *session.History {
	messages := make([]session.Message, n)
	for i := range messages {
		role := "assistant"
		if i%10 == 0 {
			role = "user"
		}
		messages[i] = condensetest.Message(session.Content{Role: role, Text: fmt.Sprintf("message %d%s", i, pad(50))})
	}
	return session.NewHistory(session.Hash{}, messages)
}

func TestSummariserIsItsOwn(t *testing.T) {
	client := condense.Endpoint{BaseURL: "https://client.example/v1", APIKey: "client-key", Way: condense.Way{
		Path: "/openai/deployments/big", Query: "api-version=1", KeyHeader: "Api-Key", Headers: "X-Portkey-Custom-Host:https://evil.example\n",
		Limit: "max_completion_tokens",
	}}
	another := client // at the same upstream
	another.Way.Path, another.Way.Limit = "/openai/deployments/small", ""
	for name, c := range map[string]struct {
		settings condense.LLMSettings
		model    string
		endpoint condense.Endpoint
	}{
		"nothing set": {condense.LLMSettings{}, "main-model", client},
		"all set": {
			condense.LLMSettings{Model: "small", Endpoint: condense.Endpoint{BaseURL: "https://own.example", APIKey: "own"}},
			"small", condense.Endpoint{BaseURL: "https://own.example", APIKey: "own"},
		},
		"own key, without the client's headers": {
			condense.LLMSettings{Endpoint: condense.Endpoint{APIKey: "own"}}, "main-model",
			condense.Endpoint{BaseURL: client.BaseURL, APIKey: "own", Way: condense.Way{Path: client.Way.Path, Query: client.Way.Query, Limit: client.Way.Limit}},
		},
		"another model, without the client's parameter": {condense.LLMSettings{Model: "small"}, "small", another},
		"the client's key stays at home": {
			condense.LLMSettings{Endpoint: condense.Endpoint{BaseURL: "http://local"}}, "main-model", condense.Endpoint{BaseURL: "http://local"},
		},
	} {
		var got condense.Request
		c.settings.MaxSize = 10
		c.settings.Summariser = summariserFunc(func(_ context.Context, r condense.Request) (condense.Reply, error) {
			got = r
			return condense.Reply{Text: "STATE: fine"}, nil
		})
		v := session.Project(chatter(20), nil)
		in := input(&v)
		in.Upstream = client
		r, err := condense.NewLLM(c.settings).Condense(in).Job.Run(context.Background())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got.Model != c.model || r.Condensation.Model != c.model || got.Endpoint != c.endpoint || got.MaxOutput != condense.DefaultMaxOutput {
			t.Errorf("%s: %s at %+v", name, got.Model, got.Endpoint)
		}
	}
}

func TestNothingDueCostsNothing(t *testing.T) {
	v := session.Project(chatter(20), nil)
	in := input(&v)
	in.Measure = func([]session.Item) []int { t.Error("tokens were counted"); return nil }
	in.Count = func(string) int { t.Error("text was counted"); return 0 }
	for _, c := range []condense.Condenser{
		condense.Noop{},
		condense.RecentEvents{MaxEvents: 20},
		condense.NewLLM(condense.LLMSettings{Settings: condense.Settings{MaxSize: 20, MaxTokens: 1e6}}),
	} {
		if d := c.Condense(in); d.Job != nil || d.View != nil {
			t.Errorf("%s: %+v", c.Name(), d)
		}
	}
}

func TestNames(t *testing.T) {
	for want, c := range map[string]condense.Condenser{
		"noop":               condense.Noop{},
		"recent_events":      condense.RecentEvents{},
		"llm":                condense.NewLLM(condense.LLMSettings{}),
		"structured_summary": condense.NewStructured(condense.LLMSettings{}),
	} {
		if c.Name() != want {
			t.Errorf("%s, want %s", c.Name(), want)
		}
	}
}

// TestOwnModelStandsIn checks that the request's own model writes the summary at once if the configured model or its key
// does not exist, and as long as that is known.
func TestOwnModelStandsIn(t *testing.T) {
	var asked []string
	health := &missing{}
	l := condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10}, Model: "gone", Health: health,
		Summariser: summariserFunc(func(_ context.Context, r condense.Request) (condense.Reply, error) {
			if asked = append(asked, r.Model); r.Model == "gone" {
				return condense.Reply{}, &condense.CallError{Kind: condense.FailureRejected, Status: 404}
			}
			return condense.Reply{Text: "COMPLETED: all"}, nil
		}),
	})
	v := session.Project(chatter(20), nil)
	for _, want := range []string{"[gone main-model]", "[main-model]"} {
		asked = nil
		r, err := l.Condense(input(&v)).Job.Run(context.Background())
		if err != nil || r.Failed == nil || r.Fallback != nil || r.Condensation.Model != "main-model" || fmt.Sprint(asked) != want {
			t.Errorf("asked %v, want %s: %+v, %v", asked, want, r, err)
		}
		health.known = true
	}
}

// missing is a Health that knows of models that do not exist.
type missing struct {
	always
	known bool
}

func (m *missing) Ready(condense.Attempt) bool     { return true }
func (m *missing) Begin(condense.Attempt) bool     { return true }
func (m *missing) Missing(a condense.Attempt) bool { return m.known && a.Model == "gone" }

// TestProvisionalIsSummarisedLater checks that messages hidden while the summariser was down are read by the next summariser
// that is up.
func TestProvisionalIsSummarisedLater(t *testing.T) {
	var away bool
	var prompt string
	l := condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10, KeepFirst: 1},
		Summariser: summariserFunc(func(_ context.Context, r condense.Request) (condense.Reply, error) {
			if away {
				return condense.Reply{}, &condense.CallError{Kind: condense.FailureServer, Status: 503}
			}
			prompt = r.User
			return condense.Reply{Text: "COMPLETED: all"}, nil
		}),
	})
	var log []session.Condensation
	for i, want := range []session.Made{session.MadeSummary, session.MadeExcerpts, session.MadeExcerpts, session.MadeSummary} {
		away = want == session.MadeExcerpts
		v := session.Project(chatter(20*(i+1)), log)
		in := input(&v)
		in.Need = condense.Need{Reason: session.ReasonOverflow, Hard: true}
		r, err := l.Condense(in).Job.Run(context.Background())
		if err != nil || r.Condensation.Made() != want {
			t.Fatalf("%d: %s, want %s, %v", i, r.Condensation.Made(), want, err)
		}
		r.Condensation.ID.Seq = uint64(i + 1)
		if i > 0 {
			r.Condensation.Base = log[i-1].ID
		}
		log = append(log, r.Condensation)
	}
	for _, c := range log[1:] {
		for _, hidden := range c.Forgotten {
			for p := hidden.From; p < hidden.To; p++ {
				if !strings.Contains(prompt, fmt.Sprintf("\">\nmessage %d ", p-1)) {
					t.Errorf("event %d is not summarised", p)
				}
			}
		}
	}
	if strings.Contains(prompt, "NOT_SUMMARISED") || strings.Contains(prompt, "\">\nmessage 4 ") {
		t.Error("the prompt says that something is missing, or shows again what was summarised")
	}
}

// TestCutOffAnswerGetsMoreRoom checks that a cut-off answer gets more room on a soft need, too: otherwise a model that
// reasons would never reach its summary.
func TestCutOffAnswerGetsMoreRoom(t *testing.T) {
	var rooms []int
	l := condense.NewLLM(condense.LLMSettings{
		Settings: condense.Settings{MaxSize: 10}, MaxOutput: 500,
		Summariser: summariserFunc(func(_ context.Context, r condense.Request) (condense.Reply, error) {
			if rooms = append(rooms, r.MaxOutput); len(rooms) == 1 {
				return condense.Reply{Finish: "length"}, nil
			}
			return condense.Reply{Text: "COMPLETED: all"}, nil
		}),
	})
	v := session.Project(chatter(20), nil)
	if _, err := l.Condense(input(&v)).Job.Run(context.Background()); err != nil || fmt.Sprint(rooms) != "[500 2000]" {
		t.Errorf("rooms %v, %v", rooms, err)
	}
}

func BenchmarkCondense(b *testing.B) {
	v := session.Project(chatter(2000), nil)
	in := input(&v)
	tokens := in.Measure(in.View.Items)
	in.Measure = func([]session.Item) []int { return tokens }
	l := condense.NewLLM(condense.LLMSettings{Settings: condense.Settings{MaxSize: 240}})
	b.ReportAllocs()
	for b.Loop() {
		l.Condense(in)
	}
}
