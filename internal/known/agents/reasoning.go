package agents

import "slices"

// otherwiseBound are the formats of sealed reasoning, as gateways name them in reasoning_details, that are not bound to everything before the
// reasoning. OpenAI, and providers with a similar Responses API, bind it to its own item, and Gemini binds it to a call of the current turn.
var otherwiseBound = [...]string{"openai-responses-v1", "azure-openai-responses-v1", "xai-responses-v1", "google-gemini-v1"}

// PrefixBound reports whether sealed reasoning in a format is valid only as long as nothing before it changes: the system prompt, the tools and
// every message. Anthropic's reasoning is. An unknown format is assumed to be like Anthropic's.
func PrefixBound(format string) bool { return !slices.Contains(otherwiseBound[:], format) }
