package session

// SystemResults returns the indexes of the system messages that are results. An agent without tool calls, such as gptme, runs what the model
// asks for in its text, and returns the results in system messages. They directly follow an answer without calls. The model's answer comes
// next or is what the request asks for, or the model has answered such messages before. All other system messages are prompts and notes.
func SystemResults(messages []Message) (results []int) {
	answered := false // the model has answered a system message before
	for i := 0; i < len(messages); i++ {
		if messages[i].Kind != Agent {
			continue
		}
		end := i + 1
		for end < len(messages) && messages[end].Kind == System {
			end++
		}
		if end < len(messages) && !messages[end].Kind.ByModel() && !answered {
			continue
		}
		before := len(results)
		for at := i + 1; at < end; at++ {
			if m := &messages[at]; m.Note == 0 && m.Spoken == 0 && !m.Lasts && !m.Attached {
				results = append(results, at)
			}
		}
		answered = answered || end < len(messages) && len(results) > before
		i = end - 1
	}
	return results
}
