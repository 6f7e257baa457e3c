package summariser

import "strings"

// effort is the lowest reasoning_effort that a family of models accepts: a summary needs little thought, and what is thought comes out
// of the room for the answer.
type effort struct {
	family, lowest string // family: how the model's name begins
}

// efforts are as of November 2025, from OpenAI's API reference of reasoning_effort, which names gpt-5.1 (from none), the models before
// it (no none) and gpt-5-pro (high only). The first that fits counts. Models with an empty one, and those that are not listed, are sent
// none: they do not reason, take only one, or it is not known.
func efforts() []effort {
	return []effort{
		{"o1-mini", ""}, {"o1-preview", ""}, {"o1-pro", ""}, {"o3-pro", ""},
		{"o1", "low"}, {"o3", "low"}, {"o4", "low"},
		{"gpt-5-pro", ""}, {"gpt-5-chat", ""}, {"gpt-5-codex", ""}, {"gpt-5.1-chat", ""}, {"gpt-5.1-codex", ""},
		{"gpt-5.1", "none"}, {"gpt-5-mini", "minimal"}, {"gpt-5-nano", "minimal"}, {"gpt-5-2", "minimal"},
	}
}

// effortOf gives the lowest effort that is known to be accepted by a model, empty if none is.
func effortOf(model string) string {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	if name == "gpt-5" {
		return "minimal"
	}
	for _, e := range efforts() {
		if strings.HasPrefix(name, e.family) {
			return e.lowest
		}
	}
	return ""
}
