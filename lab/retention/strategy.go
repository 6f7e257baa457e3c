package retention

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// KeepFirst is how many messages at the beginning every condenser keeps, system messages not counted.
const KeepFirst = 1

// Settings of the stages of pipelines.
const (
	trimLength = 2000 // characters of a tool result
	maskWindow = 10   // events
)

// Default names the strategy of those who configure nothing.
const Default = "llm"

// Strategy is what is measured.
type Strategy struct {
	Name     string
	Baseline bool // no condenser, but what condensers are held against
	start    func(*run) viewer
}

// viewer shows the moments of one run, oldest first, each within a budget of tokens.
type viewer func(m *moment, budget int) (shown, error)

// Strategies lists the baselines, the condensers of the catalogue, and pipelines.
func Strategies() []Strategy {
	all := []Strategy{
		{Name: "tail only", Baseline: true, start: alone(tailOnly)},
		{Name: "head + tail", Baseline: true, start: alone(headTail)},
		{Name: "random", Baseline: true, start: alone(random)},
		{Name: "oracle", Baseline: true, start: alone(oracle)},
	}
	for _, e := range catalogue.Entries() {
		if start := driven(e); start != nil {
			all = append(all, Strategy{Name: e.Type, start: start})
		}
	}
	llm := func(l limits) condense.Condenser { return l.build(settings(catalogue.TypeLLM)) }
	return append(all,
		Strategy{Name: "tool_output_trim, llm", start: rolling(trimLength, llm)},
		Strategy{Name: "observation_masking, llm", start: rolling(0, func(l limits) condense.Condenser {
			return condense.Pipeline{Stages: []condense.Condenser{condense.ObservationMasking{AttentionWindow: maskWindow}, llm(l)}}
		})},
	)
}

// driven returns how a type is measured: one that takes a limit of tokens is rolling, one that is set in events is fitted, one that condenses
// when told to is asked. It is nil for a type that is not measured here: those that need a service or other condensers, and those that
// shorten little but what the runs have not.
func driven(e catalogue.Entry) func(*run) viewer {
	switch {
	case e.Wraps(), e.Has("url"), e.Type == catalogue.TypeBrowserOutput:
		return nil
	case e.Rolling():
		return rolling(0, func(l limits) condense.Condenser { return l.build(settings(e.Type)) })
	case e.Forgets():
		return asked(limits{}.build(settings(e.Type)))
	case e.Shapes:
		counted := slices.DeleteFunc(e.Thresholds(), func(key string) bool { return key == "keep_first" })[0] // of the newest events
		return fitted(func(n int) condense.Condenser {
			s := settings(e.Type)
			s.Set(counted, n)
			return limits{}.build(s)
		})
	case e.Has("max_event_length"):
		return trimmedOnly(10000, 5000, 2000, 1000, 500, 200)
	}
	return nil
}

// settings are those of a rolling condenser that goes down to half of the window.
func settings(kind string) catalogue.Settings {
	return catalogue.Settings{Type: kind, KeepFirst: KeepFirst}
}

// AgentStrategies are those of which ByAgent writes.
func AgentStrategies() []Strategy {
	return slices.DeleteFunc(Strategies(), func(s Strategy) bool { return !slices.Contains(agentRows(), s.Name) })
}

// SaidStrategies are those of which Said writes.
func SaidStrategies() []Strategy {
	return slices.DeleteFunc(AgentStrategies(), func(s Strategy) bool { return s.Name == "oracle" }) // it chooses by references
}

func alone(view func(*moment, int) shown) func(*run) viewer {
	return func(*run) viewer {
		return func(m *moment, budget int) (shown, error) { return view(m, budget), nil }
	}
}

// limits set a condenser so that what it leaves fits a budget.
type limits struct {
	budget     int // tokens of the whole view
	summariser condense.Summariser
	overhead   int // tokens of a summary's wrapping
}

func newLimits(r *run) limits {
	wrapping := record.Summary{Record: ".", Words: ".", Excerpts: "."}.String()
	return limits{
		summariser: r.standIn, overhead: r.counter.Message(session.Content{Role: "user", Text: wrapping}),
	}
}

// build builds a condenser. Its type is one of the catalogue's.
func (l limits) build(s catalogue.Settings) condense.Condenser {
	c, err := catalogue.Build(s.Type, s, l)
	if err != nil {
		panic(err) // it has all that its type needs
	}
	return c
}

// Rolling implements catalogue.Dependencies.
func (limits) Rolling(s catalogue.Settings, _ condense.Input) condense.Settings { return s.Rolling() }

// Asking implements catalogue.Dependencies. What a model may write, and what is added to it, is what a cut sets aside for it.
func (l limits) Asking(_ string, s catalogue.Settings) (func(condense.Input) condense.LLMSettings, error) {
	return func(condense.Input) condense.LLMSettings {
		return condense.LLMSettings{
			Settings: s.Rolling(), Summariser: l.summariser, Model: "stand-in", Window: 1 << 30,
			MaxOutput: max(min(condense.DefaultMaxOutput, l.budget/4)/2-l.overhead, 1),
		}
	}, nil
}
