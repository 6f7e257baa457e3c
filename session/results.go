package session

// SystemResults returns the indexes of the system messages in which an agent without tool calls hands the model the results of what it
// asked for in its text (gptme does). They follow an answer without calls, with nothing of a user in between, and the model answers them
// next, has answered such messages before, or is about to. All other system messages are prompts and notes.
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
