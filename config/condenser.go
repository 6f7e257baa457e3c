package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
)

// The condenser types, by their canonical names.
const (
	TypeNoop                = "noop"
	TypeObservationMasking  = "observation_masking"
	TypeBrowserOutput       = "browser_output"
	TypeRecentEvents        = "recent_events"
	TypeAmortizedForgetting = "amortized_forgetting"
	TypeConversationWindow  = "conversation_window"
	TypeExcerpts            = "excerpts"
	TypeLLM                 = "llm"
	TypeStructuredSummary   = "structured_summary"
	TypeLLMAttention        = "llm_attention"
	TypeCustom              = "custom"
	TypePipeline            = "pipeline"
	TypeToolOutputTrim      = "tool_output_trim"
	TypeLosslessTrim        = "lossless_trim"
)

// Condenser configures one condensation strategy. Type selects it, and only the fields of that type are set: see CondenserKeys. Load replaces
// an alias in Type by the canonical name.
type Condenser struct {
	Type            string        `yaml:"type"`
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
	APIKey          *Secret       `yaml:"api_key,omitempty"` // sent to URL; nil: none. A pointer, because fmt prints the fields of a *Condenser unredacted after a wrong verb
	Stride          int           `yaml:"stride"`            // events by which the masking boundary moves at a time
	MaxEvents       int           `yaml:"max_events"`
	Condensers      []Condenser   `yaml:"condensers"`       // of a pipeline, in order
	AgentRequest    bool          `yaml:"agent_request"`    // the model can ask for a condensation with a tool that the client does not see
	CondenseCommand bool          `yaml:"condense_command"` // the user can ask for one with the message /condense
	Recall          bool          `yaml:"recall"`           // the model can look up hidden messages with such a tool

	// PerModel overrides thresholds for some of the models that requests name. A key is a name as clients write it, or a prefix and "*".
	PerModel map[string]Override `yaml:"per_model,omitempty"`
}

// condenserType is a type's canonical name, its alias, and its keys other than type.
type condenserType struct{ name, alias, keys string }

func condenserTypes() []condenserType {
	const (
		rolling = "trigger max_size max_tokens min_tokens keep_first minimum_progress "
		asking  = "background_at timeout wait deadline per_model "
		model   = rolling + "max_event_length llm_config " + asking
		forgets = "agent_request condense_command recall"
	)
	return []condenserType{
		{TypeNoop, "", ""},
		{TypeObservationMasking, "", "attention_window stride per_model recall"},
		{TypeBrowserOutput, "browser_output_masking", "attention_window per_model recall"},
		{TypeRecentEvents, "recent", "keep_first max_events per_model recall"},
		{TypeAmortizedForgetting, "amortized", rolling + "per_model " + forgets},
		{TypeConversationWindow, "", forgets},
		{TypeExcerpts, "", rolling + "per_model " + forgets},
		{TypeLLM, "llm_summarizing", model + "focus " + forgets},
		{TypeStructuredSummary, "structured", model + "focus " + forgets},
		{TypeLLMAttention, "", model + forgets},
		{TypeCustom, "", rolling + "url api_key " + asking + forgets},
		{TypePipeline, "", "condensers " + forgets},
		{TypeToolOutputTrim, "", "max_event_length per_model recall"},
		{TypeLosslessTrim, "", ""},
	}
}

// CondenserTypes lists the canonical names.
func CondenserTypes() (names []string) {
	for _, t := range condenserTypes() {
		names = append(names, t.name)
	}
	return names
}

// CanonicalType resolves the alias of a condenser type, and reports whether the type exists.
func CanonicalType(name string) (canonical string, known bool) {
	for _, t := range condenserTypes() {
		if name == t.name || name == t.alias && name != "" {
			return t.name, true
		}
	}
	return name, false
}

// CondenserKeys lists the keys of a canonical type, other than type.
func CondenserKeys(name string) []string {
	for _, t := range condenserTypes() {
		if name == t.name {
			return strings.Fields(t.keys)
		}
	}
	return nil
}

// Key returns the API key of a custom condenser's service, empty if there is none.
func (c Condenser) Key() string {
	if c.APIKey == nil {
		return ""
	}
	return c.APIKey.Reveal()
}

// NewCondenser returns a condenser of a canonical type with its default settings.
func NewCondenser(condenserType string) Condenser {
	c := Condenser{
		Trigger:         TriggerLimits,
		MaxSize:         240,
		MaxTokens:       0.75,
		MinTokens:       4000,
		KeepFirst:       2,
		MinimumProgress: 0.1,
		MaxEventLength:  10000,
		AttentionWindow: 100,
		Stride:          10,
		MaxEvents:       100,
		BackgroundAt:    0.8,
		Focus:           FocusAuto,
		Wait:            WaitNever,
		Deadline:        20 * time.Second,
	}
	if condenserType == TypeBrowserOutput {
		c.AttentionWindow = 1
	}
	keys := CondenserKeys(condenserType)
	for f, value := range reflect.ValueOf(&c).Elem().Fields() {
		if !slices.Contains(keys, syntax.KeyOf(f)) {
			value.SetZero()
		}
	}
	c.Type = condenserType
	return c
}

// asks reports whether the type calls a model or a service.
func (c Condenser) asks() bool { return slices.Contains(CondenserKeys(c.Type), "wait") }

// The values of Condenser.Trigger.
const (
	TriggerLimits    = "limits"    // condense when a limit is exceeded
	TriggerEconomics = "economics" // also condense when that saves more than it costs
)

// The values of Condenser.Focus.
const (
	FocusAuto         = "auto" // derived from the tools in use
	FocusCoding       = "coding"
	FocusResearch     = "research"
	FocusConversation = "conversation"
)

// Focuses lists the values of Condenser.Focus.
func Focuses() []string { return []string{FocusAuto, FocusCoding, FocusResearch, FocusConversation} }

// The values of Condenser.Wait.
const (
	WaitDeadline = "deadline" // requests wait for a summary, up to Condenser.Deadline
	WaitNever    = "never"
)

// Stages returns the condenser and all that a pipeline contains, at every depth.
func (c Condenser) Stages() []Condenser {
	all := []Condenser{c}
	for _, stage := range c.Condensers {
		all = append(all, stage.Stages()...)
	}
	return all
}

// Waits returns the longest deadline of the stages, which is how long a request waits for a summary. never reports that summaries are written
// but no request waits for one.
func (c Condenser) Waits() (longest time.Duration, never bool) {
	waits := false
	for _, stage := range c.Stages() {
		if !stage.asks() {
			continue
		}
		longest = max(longest, stage.Deadline)
		if stage.Wait == WaitNever {
			never = true
		} else if stage.Deadline > 0 {
			waits = true
		}
	}
	return longest, never && !waits
}

// Uses reports whether set is true for one of the stages.
func (c Condenser) Uses(set func(Condenser) bool) bool { return slices.ContainsFunc(c.Stages(), set) }

// Prepares reports whether summaries are prepared in advance for at least one model.
func (c Condenser) Prepares() bool {
	return c.Uses(func(stage Condenser) bool {
		for _, o := range stage.PerModel {
			if o.BackgroundAt != nil && *o.BackgroundAt > 0 {
				return true
			}
		}
		return stage.BackgroundAt > 0
	})
}

// ForeignKey returns the message about a key that does not belong to the type. own are the keys that do.
func ForeignKey(condenserType string, own []string) string {
	advice := "remove it, this type has no keys"
	if len(own) > 0 {
		advice = "remove it, or use " + strings.Join(own, ", ")
	}
	return fmt.Sprintf("does not belong to type %q: %s", condenserType, advice)
}

// Override is an entry of Condenser.PerModel. A threshold that is nil is inherited from the condenser.
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

// With returns the condenser with an override applied, and without PerModel.
func (c Condenser) With(o Override) Condenser {
	c.PerModel = nil
	to := reflect.ValueOf(&c).Elem()
	for f, threshold := range reflect.ValueOf(o).Fields() {
		if !threshold.IsNil() {
			to.FieldByName(f.Name).Set(threshold.Elem())
		}
	}
	return c
}

// Thresholds lists the keys that an Override of a canonical type may have.
func Thresholds(condenserType string) []string {
	all := syntax.KeysOf(reflect.TypeFor[Override]())
	return slices.DeleteFunc(CondenserKeys(condenserType), func(key string) bool { return !slices.Contains(all, key) })
}

// setKeys lists the keys of a struct that have a value.
func setKeys(section any) (keys []string) {
	for f, value := range reflect.ValueOf(section).Fields() {
		if !value.IsZero() {
			keys = append(keys, syntax.KeyOf(f))
		}
	}
	return keys
}
