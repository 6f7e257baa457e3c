package retention

import (
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense"
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

// Strategies lists the baselines and the condensers. A new condenser is a new row: rolling for one that takes a limit of
// tokens, fitted for one that is set in events, asked for one that condenses when told to.
func Strategies() []Strategy {
	llm := func(l limits) condense.Condenser { return condense.NewLLM(l.summary()) }
	return []Strategy{
		{Name: "tail only", Baseline: true, start: alone(tailOnly)},
		{Name: "head + tail", Baseline: true, start: alone(headTail)},
		{Name: "random", Baseline: true, start: alone(random)},
		{Name: "oracle", Baseline: true, start: alone(oracle)},
		{Name: "recent_events", start: fitted(func(n int) condense.Condenser {
			return condense.RecentEvents{KeepFirst: KeepFirst, MaxEvents: n}
		})},
		{Name: "observation_masking", start: fitted(func(n int) condense.Condenser {
			return condense.ObservationMasking{AttentionWindow: n}
		})},
		{Name: "tool_output_trim", start: trimmedOnly(10000, 5000, 2000, 1000, 500, 200)},
		{Name: "conversation_window", start: asked(condense.ConversationWindow{})},
		{Name: "amortized_forgetting", start: rolling(0, func(limits) condense.Condenser {
			return condense.AmortizedForgetting{Settings: half()}
		})},
		{Name: "excerpts", start: rolling(0, func(limits) condense.Condenser { return condense.Excerpts{Settings: half()} })},
		{Name: "llm", start: rolling(0, llm)},
		{Name: "structured_summary", start: rolling(0, func(l limits) condense.Condenser {
			return condense.NewStructured(l.summary())
		})},
		{Name: "llm_attention", start: rolling(0, func(l limits) condense.Condenser { return condense.NewAttention(l.summary()) })},
		{Name: "tool_output_trim, llm", start: rolling(trimLength, llm)},
		{Name: "observation_masking, llm", start: rolling(0, func(l limits) condense.Condenser {
			return condense.Pipeline{Stages: []condense.Condenser{condense.ObservationMasking{AttentionWindow: maskWindow}, llm(l)}}
		})},
	}
}

// AgentStrategies are those of which ByAgent writes.
func AgentStrategies() []Strategy {
	return slices.DeleteFunc(Strategies(), func(s Strategy) bool { return !slices.Contains(agentRows(), s.Name) })
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

// half is the settings of the rolling condensers: they go down to half of the window.
func half() condense.Settings { return condense.Settings{KeepFirst: KeepFirst} }

// summary is the settings of the condensers with a model. What it may write, and what is added to it, is what a cut sets
// aside for it.
func (l limits) summary() condense.LLMSettings {
	return condense.LLMSettings{
		Settings: half(), Summariser: l.summariser, Model: "stand-in", Window: 1 << 30,
		MaxOutput: max(min(condense.DefaultMaxOutput, l.budget/4)/2-l.overhead, 1),
	}
}
