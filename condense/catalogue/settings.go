package catalogue

import (
	"reflect"
	"slices"
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

	// PerModel overrides thresholds for some of the models that requests name. A key is a name as clients write it, or a prefix and "*".
	PerModel map[string]Override `yaml:"per_model,omitempty"`
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

// With returns the settings with an override applied, and without PerModel.
func (s Settings) With(o Override) Settings {
	s.PerModel = nil
	to := reflect.ValueOf(&s).Elem()
	for f, threshold := range reflect.ValueOf(o).Fields() {
		if !threshold.IsNil() {
			to.FieldByName(f.Name).Set(threshold.Elem())
		}
	}
	return s
}

// Set sets the field of a key to a value that can be converted to its type, and reports whether there is such a key.
func (s *Settings) Set(key string, value any) bool {
	for f, field := range reflect.ValueOf(s).Elem().Fields() {
		if keyOf(f) == key {
			field.Set(reflect.ValueOf(value).Convert(f.Type))
			return true
		}
	}
	return false
}

// Rolling returns the settings that rolling condensers share, as far as the configuration says them.
func (s Settings) Rolling() condense.Settings {
	return condense.Settings{
		MaxSize: s.MaxSize, MaxTokens: s.MaxTokens, MinTokens: s.MinTokens, KeepFirst: s.KeepFirst, MinimumProgress: s.MinimumProgress,
		BackgroundAt: s.BackgroundAt,
	}
}

// Key returns the API key of a custom condenser's service, empty if there is none.
func (s Settings) Key() string {
	if s.APIKey == nil {
		return ""
	}
	return s.APIKey.Reveal()
}

// Stages returns the settings of the condenser and of all that a pipeline contains, at every depth.
func (s Settings) Stages() []Settings {
	all := []Settings{s}
	for _, stage := range s.Condensers {
		all = append(all, stage.Stages()...)
	}
	return all
}

// Uses reports whether set is true for one of the stages.
func (s Settings) Uses(set func(Settings) bool) bool { return slices.ContainsFunc(s.Stages(), set) }

// Waits returns the longest deadline of the stages, which is how long a request waits for a summary. never reports that summaries are written
// but no request waits for one.
func (s Settings) Waits() (longest time.Duration, never bool) {
	waits := false
	for _, stage := range s.Stages() {
		if !stage.Entry().Asks() {
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

// Prepares reports whether summaries are prepared in advance for at least one model.
func (s Settings) Prepares() bool {
	return s.Uses(func(stage Settings) bool {
		for _, o := range stage.PerModel {
			if o.BackgroundAt != nil && *o.BackgroundAt > 0 {
				return true
			}
		}
		return stage.BackgroundAt > 0
	})
}

// Entry returns the entry of the condenser's type, a zero one if that is unknown.
func (s Settings) Entry() Entry {
	e, _ := Find(s.Type)
	return e
}

// ByPrice reports whether the condenser condenses when that pays off.
func (s Settings) ByPrice() bool { return s.Trigger == TriggerEconomics }

// keyOf returns the key of a field of Settings or Override.
func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}
