package agents

import "slices"

// otherwiseBound are the formats of sealed reasoning, as gateways name them in reasoning_details, that a provider does not bind to
// everything before it: OpenAI, and providers with a similar Responses API, bind it to its own item, and Gemini to a call of the
// current turn.
var otherwiseBound = [...]string{"openai-responses-v1", "azure-openai-responses-v1", "xai-responses-v1", "google-gemini-v1"}

// PrefixBound reports whether sealed reasoning in a format is only valid while nothing before it changes: the system prompt, the tools,
// every message. Anthropic's is, and that in any unknown format is taken for it.
func PrefixBound(format string) bool { return !slices.Contains(otherwiseBound[:], format) }
