package agents

// Binding is what sealed reasoning is bound to by its provider, and so what may not change while it stays.
type Binding string

// The bindings.
const (
	Free   Binding = "free"   // plain reasoning, bound to nothing
	Prefix Binding = "prefix" // to all that stood before it: the system prompt, the tools, every message
	Pair   Binding = "pair"   // to the item that it belongs to, both ways: keep both or neither
	Turn   Binding = "turn"   // missing from a call of the current turn, the call is refused
)

// reasoning says where a kind of reasoning stands. An empty kind is each that has no entry of its own.
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
	// OpenAI, and those whose Responses API is made like it.
	{"input", "reasoning", Pair},
	{"encrypted_content", "", Pair},
	{"reasoning_details", "openai-responses-v1", Pair},
	{"reasoning_details", "azure-openai-responses-v1", Pair},
	{"reasoning_details", "xai-responses-v1", Pair},
	// Gemini: in its own API, in Chat Completions, and as gateways write it.
	{"thoughtSignature", "", Turn},
	{"thought_signature", "", Turn},
	{"extra_content.google", "", Turn},
	{"reasoning_details", "google-gemini-v1", Turn},
	// Text without a signature.
	{"reasoning_content", "", Free},
	{"reasoning", "", Free},
}

// BindingOf gives the binding of reasoning that stands in a field of a message, of a call, or of the body: "content",
// "thinking_blocks", "extra_content.google", or "input" for the items of Responses. kind is the type of the part, block or item,
// or the format of an element of reasoning_details. What is not known is bound as closely as any: to all that stood before it.
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
