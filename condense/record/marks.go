package record

// Names that begin a tag which text of others must not contain, in lower case. A prefix of a tag's name is enough.
func ownTags() []string { return []string{"dewpoint"} }

func roleTags() []string {
	return []string{"system", "developer", "user", "human", "assistant", "tool", "function", "instruction"}
}

// marks are those of chat templates: what a server may take for a turn's beginning or end if it stands in a message. Those that
// begin with <| need not be here.
type marks struct{ tags, brackets, closings []string }

func templates() marks {
	return marks{
		tags: []string{
			"im_start", "im_end", "im_sep", // ChatML without its bars
			"start_of_turn", "end_of_turn", "bos>", "eos>", "pad>", "unk>", "mask>", // Gemma
			"sys>", "s>", // Llama 2, Mistral
			"sop>", "eop>", "sep>", "cls>", "endoftext", "reserved_", // GLM, Baichuan
			"seed:", "minimax:", "antml:", "invoke",
		},
		brackets: []string{
			"inst]", "sys]", "system_prompt]", "available_tools]", "tool_calls]", "tool_results]", "tool_content]", "call_id]", "think]", // Mistral
			"gmask]", "smask]", "mask]", "sep]", "cls]", "bos]", "eos]", "pad]", "unk]", // GLM, BERT
			"e~[", // MiniMax, with those that close
		},
		closings: []string{"~b]", "~!b["},
	}
}

// speakers begin a line that looks like a turn; headings do in a markdown heading.
func speakers() []string {
	return []string{"system", "developer", "user", "human", "assistant", "tool", "ai"}
}

func headings() []string { return []string{"instruction", "instructions", "response", "input"} }
