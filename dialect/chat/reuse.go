package chat

import (
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

var _ dialect.Reuser = (*Dialect)(nil)

// notReused are the members that concern an answer, and no part of a prompt.
var notReused = [...]string{
	"stream", "stream_options", "tool_choice", "function_call", "n", "stop", "logprobs", "top_logprobs", "prediction", "store", "metadata",
}

// Reuse implements dialect.Reuser. A form of the answer is a part of the prompt, so a body that asks for one cannot be used.
func (d *Dialect) Reuse(body []byte, output int) []byte {
	tools, functions, text := false, false, true
	var limits []byte
	out := split.Keep(body, func(name string, v rawjson.Value) bool {
		switch name {
		case "tools":
			tools = split.HasElements(v)
		case "functions":
			functions = split.HasElements(v)
		case "response_format":
			text = split.Member(v, "type").Is("text")
		case "audio", "web_search_options":
			text = text && v.Kind != rawjson.Object
		case "max_tokens", "max_completion_tokens":
			if most := split.AnswerShare * output; output > 0 && split.Integer(v) > most {
				limits = fmt.Appendf(limits, `,%q:%d`, name, most)
				return false
			}
		}
		return !slices.Contains(notReused[:], name)
	})
	if !text {
		return nil
	}
	if tools {
		out = append(out, `,"tool_choice":"none"`...)
	}
	if functions {
		out = append(out, `,"function_call":"none"`...)
	}
	out = append(out, limits...)
	return append(out, `,"stream":true,"stream_options":{"include_usage":true}}`...)
}

// Touch implements dialect.Reuser.
func (d *Dialect) Touch(body []byte) []byte {
	key := "max_tokens"
	if split.Member(rawjson.ValueOf(body), "max_completion_tokens").Kind != 0 {
		key = "max_completion_tokens"
	}
	if body = d.Reuse(body, 0); body != nil {
		return split.WithMember(body, key, []byte("1"))
	}
	return nil
}
