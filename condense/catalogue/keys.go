package catalogue

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/secret"
)

// Settings configures one condenser. Type selects it, and only the fields of its keys are set: see Entry.Keys.
type Settings struct {
	Type            string        `yaml:"type"`              // the canonical name
	Trigger         string        `yaml:"trigger"`           // TriggerLimits or TriggerEconomics
	MaxSize         int           `yaml:"max_size"`          // events
	MaxTokens       float64       `yaml:"max_tokens"`        // at most 1: share of the model's window; above: tokens
	MinTokens       int           `yaml:"min_tokens"`        // of a history; below them max_size does nothing
	KeepFirst       int           `yaml:"keep_first"`        // messages, system messages not counted
	MinimumProgress float64       `yaml:"minimum_progress"`  // share of events or tokens that a condensation must remove, net of its summary
	MaxEventLength  int           `yaml:"max_event_length"`  // characters of an event that are shown or kept
	LLMConfig       string        `yaml:"llm_config"`        // a name in llms; empty: the request's own model
	BackgroundAt    float64       `yaml:"background_at"`     // share of a limit at which a summary is prepared; 0: never
	Focus           string        `yaml:"focus"`             // what summaries concentrate on: one of Focuses
	Timeout         time.Duration `yaml:"timeout"`           // of one call; 0: the model's timeout
	Wait            string        `yaml:"wait"`              // WaitDeadline or WaitNever
	Deadline        time.Duration `yaml:"deadline"`          // how long a request waits for a summary
	AttentionWindow int           `yaml:"attention_window"`  // newest events that are not masked
	URL             string        `yaml:"url"`               // of a custom condenser
	APIKey          *secret.Value `yaml:"api_key,omitempty"` // sent to URL; nil: none. A pointer, because fmt prints the fields of a *Settings unredacted after a wrong verb
	Stride          int           `yaml:"stride"`            // events by which the masking boundary moves at a time
	MaxEvents       int           `yaml:"max_events"`
	Condensers      []Settings    `yaml:"condensers"`       // of a pipeline, in order
	AgentRequest    bool          `yaml:"agent_request"`    // the model can ask for a condensation with a tool that the client does not see
	CondenseCommand bool          `yaml:"condense_command"` // the user can ask for one with the message /condense
	Recall          bool          `yaml:"recall"`           // the model can look up hidden messages with such a tool

	Keep         *Keep  `yaml:"keep,omitempty"` // messages that stay as they are; nil: none
	PromptFile   string `yaml:"prompt_file"`    // has the instructions for summaries, in place of the built-in ones
	Instructions string `yaml:"instructions"`   // further instructions for summaries
	Recite       bool   `yaml:"recite"`         // the user's standing rules are repeated at the end of the record

	// PerModel overrides thresholds for some of the models that requests name. A key is a name as clients write it, or a prefix and "*".
	PerModel map[string]Override `yaml:"per_model,omitempty"`
}

// Keep names messages that stay as they are, besides those that every condenser keeps.
type Keep struct {
	Tools    []string `yaml:"tools"`    // whose calls stay, with their results; a * at the end stands for any ending
	Patterns []string `yaml:"patterns"` // regular expressions: a message stays if one occurs in its text, or in the arguments of its calls
}

// The values of Settings.Trigger.
const (
	TriggerLimits    = "limits"    // condense when a limit is exceeded
	TriggerEconomics = "economics" // also condense when that saves more than it costs
)

// The values of Settings.Focus.
const (
	FocusAuto         = "auto" // derived from the tools in use
	FocusCoding       = "coding"
	FocusResearch     = "research"
	FocusConversation = "conversation"
)

// Focuses lists the values of Settings.Focus.
func Focuses() []string { return []string{FocusAuto, FocusCoding, FocusResearch, FocusConversation} }

// The values of Settings.Wait.
const (
	WaitDeadline = "deadline" // requests wait for a summary, up to Settings.Deadline
	WaitNever    = "never"
)

// Override is an entry of Settings.PerModel. A threshold that is nil is inherited from the condenser.
type Override struct {
	MaxSize         *int     `yaml:"max_size,omitempty"`
	MaxTokens       *float64 `yaml:"max_tokens,omitempty"`
	MinTokens       *int     `yaml:"min_tokens,omitempty"`
	KeepFirst       *int     `yaml:"keep_first,omitempty"`
	MinimumProgress *float64 `yaml:"minimum_progress,omitempty"`
	MaxEventLength  *int     `yaml:"max_event_length,omitempty"`
	BackgroundAt    *float64 `yaml:"background_at,omitempty"`
	AttentionWindow *int     `yaml:"attention_window,omitempty"`
	Stride          *int     `yaml:"stride,omitempty"`
	MaxEvents       *int     `yaml:"max_events,omitempty"`
}

// Key is a key that condensers have in the configuration. It means the same for each of them.
type Key struct {
	Name    string
	Default any    // of the field's type; nil: its zero value. Entry.Defaults may replace it
	Doc     string // its meaning, for the table in docs/condensers.md
	Shown   string // the default in that table, if it is not Default

	// check returns what is wrong with the value, and what to write instead; empty: nothing.
	check func(Settings) string
}

// Check returns what is wrong with the key's value in the settings, and what to write instead. It is empty for a valid value. Whether a model,
// URL or API key is valid depends on the rest of the configuration.
func (k Key) Check(s Settings) string {
	if k.check == nil {
		return ""
	}
	return k.check(s)
}

// Keys lists the keys in the order in which they are validated and documented.
func Keys() []Key {
	return []Key{
		{Name: "trigger", Default: TriggerEconomics, Doc: "when: [by price](#condensing-by-price), at the latest at the limits; or `limits` only", check: func(s Settings) string {
			return oneOf(s.Trigger, "write limits or economics", TriggerLimits, TriggerEconomics)
		}},
		{Name: "max_size", Default: 240, Doc: "limit in events", check: func(s Settings) string { return positive(s.MaxSize) }},
		{Name: "keep_first", Default: 2, Doc: "messages at the beginning that stay", check: keepFirst},
		{Name: "max_tokens", Default: 0.75, Doc: "limit in tokens of a request; up to 1: a share of the model's window; 0: none, `recent_events` only", check: maxTokens},
		{Name: "min_tokens", Default: 4000, Doc: "below this, `max_size` does not apply; 0: no floor", check: func(s Settings) string {
			return when(s.MinTokens < 0, "is negative: write a number of tokens, or 0 for no floor")
		}},
		{Name: "minimum_progress", Default: 0.1,
			Doc: "share of events or tokens, whichever the limit is for, that a condensation must remove, net of its summary",
			check: func(s Settings) string {
				return when(!(s.MinimumProgress > 0 && s.MinimumProgress < 1), "is not between 0 and 1: write a share of the events, such as 0.1")
			}},
		{Name: "attention_window", Default: 100, Doc: "newest events, or browser observations, that stay",
			check: func(s Settings) string { return positive(s.AttentionWindow) }},
		{Name: "stride", Default: 10, Doc: "events by which the boundary of masking moves", check: func(s Settings) string { return positive(s.Stride) }},
		{Name: "max_event_length", Default: 10000, Doc: "characters per event: shown to the summariser, or kept",
			check: func(s Settings) string { return positive(s.MaxEventLength) }},
		{Name: "api_key", Doc: "the service's key"},
		{Name: "url", Doc: "the service"},
		{Name: "focus", Default: FocusAuto, Doc: "what a [summary](#summaries) looks for", check: func(s Settings) string {
			return oneOf(s.Focus, "write one of "+strings.Join(Focuses(), ", "), Focuses()...)
		}},
		{Name: "instructions", Shown: "none", Doc: "what else a summary must heed, such as `always keep ticket numbers`; see [a prompt of your own](#a-prompt-of-your-own)",
			check: func(s Settings) string {
				return when(len(s.Instructions) > maxInstructions, fmt.Sprintf("is longer than %d bytes: shorten it, or use prompt_file", maxInstructions))
			}},
		{Name: "prompt_file", Shown: "none", Doc: "a file with [a prompt of your own](#a-prompt-of-your-own)"},
		{Name: "recite", Shown: "`false`", Doc: "the user's [standing rules](#standing-rules) are repeated at the end of the record"},
		{Name: "llm_config", Shown: "empty", Doc: "a name in `llms`; empty: the request's own model"},
		{Name: "timeout", Shown: "that in `llms`; `custom`: 30s", Doc: "of one [call](#time-limits-and-failures)", check: func(s Settings) string {
			return when(s.Timeout < 0, "is negative: write a duration such as 30s")
		}},
		{Name: "wait", Default: WaitNever, Doc: "whether requests [wait](#waiting-for-summaries)", check: func(s Settings) string {
			return oneOf(s.Wait, "write deadline or never", WaitDeadline, WaitNever)
		}},
		{Name: "deadline", Default: 20 * time.Second, Doc: "how long requests wait", check: func(s Settings) string {
			return when(s.Deadline <= 0, "is not positive: write how long a request may wait for a summary, such as 20s")
		}},
		{Name: "background_at", Default: 0.8, Doc: "share of a limit at which a summary is prepared", check: func(s Settings) string {
			return when(s.BackgroundAt != 0 && !(s.BackgroundAt >= 0.5 && s.BackgroundAt < 1),
				"is neither 0 nor a share from 0.5 to below 1: write 0.8, or 0 to prepare no summaries")
		}},
		{Name: "max_events", Default: 100, Doc: "events shown", check: func(s Settings) string { return positive(s.MaxEvents) }},
		{Name: "keep", Shown: "none", Doc: "[messages that stay](#keeping-messages)", check: func(s Settings) string { return s.Keep.check() }},
		{Name: "condensers", Doc: "the stages, which may be pipelines"},
		{Name: "per_model", Doc: "[thresholds per model](#thresholds-per-model)"},
		{Name: "agent_request", Shown: "`false`", Doc: "the model can condense [on request](#condensing-on-request)"},
		{Name: "condense_command", Shown: "`false`", Doc: "a user can condense [on request](#condensing-on-request)"},
		{Name: "recall", Shown: "`false`", Doc: "a tool to [look up](#recall) what is hidden"},
	}
}

// check returns what is wrong with it.
func (k *Keep) check() string {
	if k == nil {
		return ""
	}
	for _, tool := range k.Tools {
		switch {
		case strings.TrimSpace(tool) == "":
			return "has a tool without a name: write the name as in the client's requests"
		case strings.Trim(tool, "*") == "":
			return "keeps all tools: name those whose results have to stay"
		case strings.Contains(tool[:len(tool)-1], "*"):
			return fmt.Sprintf("has the tool %q, with a * before its end: write a name, or the beginning of one and a *", tool)
		}
	}
	for _, pattern := range k.Patterns {
		p, err := regexp.Compile(pattern)
		switch {
		case err != nil:
			return fmt.Sprintf("has the pattern %q, which is not a regular expression: mend it (%v)", pattern, err)
		case p.MatchString(""):
			return fmt.Sprintf("has the pattern %q, which occurs in every text: write one that does not match an empty text", pattern)
		}
	}
	return when(len(k.Tools)+len(k.Patterns) == 0, "names nothing: give it tools or patterns, or remove it")
}

// build returns what keeps it. The patterns are valid.
func (k *Keep) build() *condense.Keep {
	patterns := make([]*regexp.Regexp, len(k.Patterns))
	for i, pattern := range k.Patterns {
		patterns[i] = regexp.MustCompile(pattern)
	}
	return condense.NewKeep(k.Tools, patterns)
}

// maxInstructions is the maximum length of instructions, in bytes: they stand in each call.
const maxInstructions = 4 << 10

func when(wrong bool, message string) string {
	if wrong {
		return message
	}
	return ""
}

func positive(n int) string { return when(n <= 0, "is not positive: write a number of at least 1") }

func oneOf(value, advice string, allowed ...string) string {
	for _, one := range allowed {
		if value == one {
			return ""
		}
	}
	return "is unknown: " + advice
}

// keepFirst checks that the target of a condensation, half of max_size, holds the first events, the summary and at least one later event, or
// that max_events holds a later event. It says nothing if the limit is itself wrong.
func keepFirst(s Settings) string {
	e := s.Entry()
	switch half, summary := s.MaxSize/2, 0; {
	case e.Rolling() && s.MaxSize <= 0, e.Has("max_events") && s.MaxEvents <= 0:
		return ""
	case s.KeepFirst < 0:
		return "is negative: write a number of events"
	case e.Has("max_events"):
		return when(s.KeepFirst >= s.MaxEvents,
			fmt.Sprintf("is %d, and must be below max_events = %d: lower it, or raise max_events", s.KeepFirst, s.MaxEvents))
	case !e.Rolling():
		return ""
	case s.KeepFirst >= half:
		return fmt.Sprintf("is %d, and must be below max_size/2 = %d: lower it, or raise max_size", s.KeepFirst, half)
	default:
		if e.Records { // the summary is an event
			summary = 1
		}
		return when(half-s.KeepFirst-summary < 1, fmt.Sprintf(
			"is %d, which leaves no room for an event after the summary in max_size/2 = %d: lower it, or raise max_size", s.KeepFirst, half))
	}
}

func maxTokens(s Settings) string {
	switch {
	case s.MaxTokens == 0 && !s.Entry().Rolling(): // no limit
	case !(s.MaxTokens > 0) || math.IsInf(s.MaxTokens, 0):
		return "is not positive: write a share of the window up to 1, or a number of tokens"
	case s.MaxTokens > 1 && s.MaxTokens != math.Trunc(s.MaxTokens):
		return "is neither a share nor a whole number: write a share of the window up to 1, or a number of tokens"
	}
	return ""
}
