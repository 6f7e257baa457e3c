package agents

// Binding says what a provider binds sealed reasoning to. The reasoning is only valid while that does not change.
type Binding string

// The bindings.
const (
	Free   Binding = "free"   // plain reasoning, bound to nothing
	Prefix Binding = "prefix" // bound to everything before it: the system prompt, the tools, every message
	Pair   Binding = "pair"   // bound to its item, and the item to it: keep both or neither
	Turn   Binding = "turn"   // required: upstream refuses a call of the current turn without it
)

// reasoning is the binding of one kind of reasoning. An empty kind stands for all kinds in the field without their own entry.
type reasoning struct {
	field   string // of a message, of a call, or of the body
	kind    string // type of a part, block or item, or format of an element of reasoning_details
	binding Binding
}

var bindings = [...]reasoning{
	// Anthropic, also as LiteLLM and OpenRouter write it.
	{"content", "thinking", Prefix},
	{"content", "redacted_thinking", Prefix},
	{"thinking_blocks", "", Prefix},
	{"reasoning_details", "anthropic-claude-v1", Prefix},
	// OpenAI, and providers with a similar Responses API.
	{"input", "reasoning", Pair},
	{"encrypted_content", "", Pair},
	{"reasoning_details", "openai-responses-v1", Pair},
	{"reasoning_details", "azure-openai-responses-v1", Pair},
	{"reasoning_details", "xai-responses-v1", Pair},
	// Gemini: in its native API, in Chat Completions, and through gateways.
	{"thoughtSignature", "", Turn},
	{"thought_signature", "", Turn},
	{"extra_content.google", "", Turn},
	{"reasoning_details", "google-gemini-v1", Turn},
	// Text without a signature.
	{"reasoning_content", "", Free},
	{"reasoning", "", Free},
}

// BindingOf returns the binding of reasoning in a field of a message, of a call, or of the body: "content",
// "thinking_blocks", "extra_content.google", or "input" for the items of Responses. kind is the type of the part, block or item,
// or the format of an element of reasoning_details. Unknown reasoning has the strictest binding, Prefix.
func BindingOf(field, kind string) Binding {
	binding := Prefix
	for _, r := range bindings {
		switch {
		case r.field != field:
		case r.kind == kind:
			return r.binding
		case r.kind == "":
			binding = r.binding
		}
	}
	return binding
}
