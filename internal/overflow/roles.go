package overflow

// alternation is how servers say that users and assistants must take turns. Each row says where its words were seen, as those of
// the table of overflows do.
var alternation = []row{
	// What templates of Mistral, Gemma and Llama raise, in vLLM, llama.cpp and others, mostly with "conversation" before it:
	// simular-ai/Agent-S#70, OpenSecretCloud/opensecret#120, charmbracelet/crush#279. Anthropic, and Bedrock before it joined messages
	// by itself: FlowiseAI/Flowise#2006, etkecc/baibot#13.
	{words: "roles must alternate"},
	// Mistral, code 3230: datapizza-labs/datapizza-ai#98, avante-corp/avante.nvim#2562.
	{words: "unexpected role 'user' after role"},
	{words: "unexpected role 'assistant' after role"},
	// Bedrock's Converse: microsoft/semantic-kernel#10281, CopilotKit/CopilotKit#736.
	{words: "conversation must alternate between user and assistant roles"},
}

// AlternatesRoles reports whether an upstream's answer says that a request was refused because roles do not alternate. It is
// read as Recognise reads it.
func AlternatesRoles(status int, contentType string, body []byte) bool {
	r, ok := errorOf(status, contentType, body)
	if !ok {
		return false
	}
	for _, row := range alternation {
		for _, text := range r.texts {
			if _, at, ok := row.find(text); ok && !says(text[:at], echoes) {
				return true
			}
		}
	}
	return false
}
