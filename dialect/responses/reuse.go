package responses

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// Reuse implements dialect.Reuser. A form of the answer is a part of the prompt, so a body that asks for one cannot be used. A limit is set
// where the client sets one: some servers take none.
func (d *Dialect) Reuse(body []byte, output int) []byte {
	tools, text, limit := false, true, 0
	out := split.Keep(body, func(name string, v *rawjson.Value) bool {
		switch name {
		case "stream", "stream_options", "tool_choice", "store", "background":
			return false
		case "prompt", "context_management":
			text = text && v.Kind == rawjson.Null
		case "max_output_tokens":
			if most := split.AnswerShare * output; output > 0 && split.Integer(*v) > most {
				limit = most
			}
			return limit == 0
		case "tools":
			tools = split.HasElements(*v)
		case "text":
			form := split.Member(*v, "format", "type")
			text = text && (form.Kind == 0 || form.Is("text"))
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

// Touch implements dialect.Reuser. 16 tokens are the fewest that the API takes.
func (d *Dialect) Touch(body []byte) []byte {
	if body = d.Reuse(body, 0); body != nil {
		return split.WithMember(body, "max_output_tokens", []byte("16"))
	}
	return nil
}
