package responses

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Reuse implements dialect.Dialect. An output format is part of the prompt, so a body that asks for one cannot be reused. A
// token limit is set only if the client sets one, since some servers accept none.
func (d *Dialect) Reuse(body []byte, output int) []byte {
	tools, text, limit := false, true, 0
	out := split.FilterMembers(body, func(name string, v *rawjson.Value) bool {
		switch name {
		case "stream", "stream_options", "tool_choice", "store", "background":
			return false
		case "prompt", "context_management":
			text = text && v.Kind == rawjson.Null
		case "max_output_tokens":
			maxLimit := split.ReasoningFactor * output
			if split.Integer(*v) > maxLimit {
				limit = maxLimit
			}
			return limit == 0
		case "tools":
			tools = split.HasElements(*v)
		case "text":
			format := split.Member(*v, "format", "type")
			text = text && (format.Kind == 0 || format.Is("text"))
		}
		return true
	})
	if !text {
		return nil
	}
	if limit > 0 {
		out = fmt.Appendf(out, `,"max_output_tokens":%d`, limit)
	}
	if tools {
		out = append(out, `,"tool_choice":"none"`...)
	}
	return append(out, `,"stream":true,"store":false}`...)
}
