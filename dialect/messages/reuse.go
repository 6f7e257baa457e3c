package messages

import (
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Reuse implements dialect.Dialect. A change of tool_choice or thinking would invalidate the cached messages, and a change of the output
// format the whole prompt, so they stay unchanged. A body cannot be reused if it forces a call or a format, leaves too few tokens besides
// thinking, or lets the provider run tools or edit the history.
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
func (d *Dialect) Reuse(body []byte, output int) []byte {
	limit, thought, text := 0, 0, true
	out := split.FilterMembers(body, func(name string, v *rawjson.Value) bool {
		switch name {
		case "stream", "stop_sequences":
			return false
		case "max_tokens":
			limit = split.Integer(*v)
			return false
		case "mcp_servers":
			text = text && !split.HasElements(*v)
		case "tools":
			text = text && !runsTools(*v)
		case "context_management":
			text = text && !editsHistory(*v)
		case "thinking":
			thought = split.Integer(split.Member(*v, "budget_tokens"))
		case "tool_choice":
			kind := split.Member(*v, "type")
			text = text && (kind.Is("auto") || kind.Is("none"))
		case "output_format":
			text = text && v.Kind != rawjson.Object
		case "output_config":
			text = text && split.Member(*v, "format").Kind != rawjson.Object
		}
		return true
	})
	if !text || limit-thought < output {
		return nil
	}
	return fmt.Appendf(out, `,"max_tokens":%d,"stream":true}`, min(limit, thought+split.ReasoningFactor*output))
}

// runsTools reports whether the provider runs some of the tools itself. Their calls do not reach the client.
func runsTools(tools rawjson.Value) bool {
	return split.Any(tools, func(tool rawjson.Value) bool {
		kind := split.Member(tool, "type")
		return kind.Kind != 0 && !kind.Is("custom")
	})
}

// editsHistory reports whether the provider removes anything but old thinking from the history.
func editsHistory(management rawjson.Value) bool {
	return split.Any(split.Member(management, "edits"), func(edit rawjson.Value) bool {
		return !strings.HasPrefix(split.Member(edit, "type").Text(), "clear_thinking_")
	})
}
