package catalogue

import (
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
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

// Keys that several types have.
const (
	rollingKeys = "trigger max_size max_tokens min_tokens keep_first minimum_progress "
	askingKeys  = "background_at timeout wait deadline per_model "
	modelKeys   = rollingKeys + "max_event_length llm_config " + askingKeys
	requestKeys = "keep agent_request condense_command recall"
)

// Entries lists the condensers.
func Entries() []Entry {
	return []Entry{
		{
			Type: TypeNoop, Doc: "forwards everything unchanged, but for [compactions that Dewpoint made](adr/0029-compactions-of-ours.md)",
			build: func(Settings, parts) condense.Condenser { return condense.Noop{} },
		},
		{
			Type: TypeObservationMasking, Doc: "masks old tool results", Shapes: true,
			Keys: keys("attention_window stride keep per_model recall"),
			build: func(s Settings, p parts) condense.Condenser {
				return condense.ObservationMasking{AttentionWindow: s.AttentionWindow, Stride: s.Stride, Batched: p.batched}
			},
		},
		{
			Type: TypeBrowserOutput, Alias: "browser_output_masking", Doc: "masks all but the newest browser observations", Shapes: true,
			Keys: keys("attention_window keep per_model recall"), Defaults: map[string]any{"attention_window": 1},
			build: func(s Settings, p parts) condense.Condenser {
				return condense.BrowserOutput{AttentionWindow: s.AttentionWindow, Batched: p.batched}
			},
		},
		{
			Type: TypeRecentEvents, Alias: "recent", Doc: "shows only the beginning and the newest events", Shapes: true,
			Keys: keys("keep_first max_events max_tokens keep per_model recall"), Defaults: map[string]any{"max_tokens": 0.0},
			build: func(s Settings, _ parts) condense.Condenser {
				return condense.RecentEvents{KeepFirst: s.KeepFirst, MaxEvents: s.MaxEvents, MaxTokens: s.MaxTokens}
			},
		},
		{
			Type: TypeAmortizedForgetting, Alias: "amortized", Doc: "rolling: puts nothing in place of what it hides", Unrecorded: true,
			Keys: keys(rollingKeys + "per_model " + requestKeys),
			build: func(_ Settings, p parts) condense.Condenser {
				return p.each(func(in condense.Input) condense.Condenser {
					return condense.AmortizedForgetting{Settings: p.rolling(in)}
				})
			},
		},
		{
			Type: TypeConversationWindow, Unrecorded: true,
			Doc:   "only on request or after an overflow: keeps the essentials and the newest half of the rest",
			Keys:  keys(requestKeys),
			build: func(Settings, parts) condense.Condenser { return condense.ConversationWindow{} },
		},
		{
			Type: TypeExcerpts, Doc: "rolling: quotes lines and the user's own words; calls no model",
			Keys: keys(rollingKeys + "per_model recite " + requestKeys),
			build: func(_ Settings, p parts) condense.Condenser {
				return p.each(func(in condense.Input) condense.Condenser { return condense.Excerpts{Settings: p.rolling(in)} })
			},
		},
		{
			Type: TypeLLM, Alias: "llm_summarizing", Records: true,
			Doc:   "rolling: writes a summary, with the user's own words and excerpts",
			Keys:  keys(modelKeys + "focus instructions prompt_file recite " + requestKeys),
			build: asking(condense.NewLLM),
		},
		{
			Type: TypeStructuredSummary, Alias: "structured", Records: true,
			Doc:   "rolling: the same as `llm`; the model writes the summary as a function call",
			Keys:  keys(modelKeys + "focus instructions prompt_file recite " + requestKeys),
			build: asking(condense.NewStructured),
		},
		{
			Type: TypeLLMAttention, Unrecorded: true,
			Doc:   "rolling: a model ranks the events and the best stay, without a summary",
			Keys:  keys(modelKeys + requestKeys),
			build: asking(condense.NewAttention),
		},
		{
			Type: TypeCustom, Records: true, Unrecorded: true,
			Doc:   "rolling: [your service](#custom-condensers) decides",
			Keys:  keys(rollingKeys + "url api_key " + askingKeys + requestKeys),
			build: asking(condense.NewCustom),
		},
		{
			Type: TypePipeline, Doc: "applies several condensers in a row",
			Keys:  keys("condensers " + requestKeys),
			build: func(_ Settings, p parts) condense.Condenser { return condense.Pipeline{Stages: p.stages} },
		},
		{
			Type: TypeToolOutputTrim, Doc: "cuts the middle out of long tool results",
			Keys: keys("max_event_length keep per_model recall"),
			build: func(s Settings, _ parts) condense.Condenser {
				return condense.ToolOutputTrim{MaxEventLength: s.MaxEventLength}
			},
		},
		{
			Type: TypeLosslessTrim, Doc: "removes noise and repetition from tool results",
			Keys:  keys("keep"),
			build: func(Settings, parts) condense.Condenser { return condense.LosslessTrim{} },
		},
	}
}

func keys(list string) []string { return strings.Fields(list) }

// asking returns the build function of a type that calls a model or a service.
func asking(of func(condense.LLMSettings) *condense.LLM) func(Settings, parts) condense.Condenser {
	return func(_ Settings, p parts) condense.Condenser {
		return p.each(func(in condense.Input) condense.Condenser { return of(p.asking(in)) })
	}
}
