package chat

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// notReused are members that affect the answer, but not the prompt.
var notReused = [...]string{
	"stream", "stream_options", "n", "stop", "logprobs", "top_logprobs", "prediction", "store", "metadata",
}

// Reuse implements dialect.Dialect. An output format is part of the prompt, so a body that asks for one cannot be reused. If tool_choice is
// part of the cache key, the result keeps it; then a body that forces a call cannot be reused either. The result has a token limit only if
// the client sets one.
func (d *Dialect) Reuse(body []byte, output int) []byte {
	all := rawjson.ValueOf(body)
	byChoice := agents.CachesByChoice(split.Member(all, "model").Text()) || bytes.Contains(body, []byte(`"cache_control"`))
	thought := budget(all)
	tools, functions, text := false, false, true
	out := split.FilterMembers(body, func(name string, v *rawjson.Value) bool {
		switch name {
		case "tools":
			tools = split.HasElements(*v)
		case "functions":
			functions = split.HasElements(*v)
		case "tool_choice", "function_call":
			text = text && (!byChoice || v.Is("auto") || v.Is("none") || v.Kind == rawjson.Null)
			return byChoice
		case "response_format":
			text = text && (v.Kind == rawjson.Null || split.Member(*v, "type").Is("text"))
		case "audio", "web_search_options":
			text = text && v.Kind != rawjson.Object
		case "max_tokens", "max_completion_tokens":
			n := split.Integer(*v)
			text = text && (n == 0 && string(v.Raw) != "0" || n-thought >= output) // a value that is not a count sets no limit
			return n <= thought+split.ReasoningFactor*output
		}
		return !slices.Contains(notReused[:], name)
	})
	if !text {
		return nil
	}
	if tools && !byChoice {
		out = append(out, `,"tool_choice":"none"`...)
	}
	if functions && !byChoice {
		out = append(out, `,"function_call":"none"`...)
	}
	for _, name := range limits {
		limit := thought + split.ReasoningFactor*output
		if split.Integer(split.Member(all, name)) > limit {
			out = fmt.Appendf(out, `,%q:%d`, name, limit)
		}
	}
	return append(out, `,"stream":true,"stream_options":{"include_usage":true}}`...)
}

// limits are the members that limit the answer. Some models accept only one of them.
var limits = [...]string{completionLimit, "max_tokens"}

const completionLimit = "max_completion_tokens" // servers of older models know only the other one

// budget returns how many tokens of the answer a body reserves for thinking.
func budget(body rawjson.Value) int {
	return max(split.Integer(split.Member(body, "thinking", "budget_tokens")),
		split.Integer(split.Member(body, "reasoning", "max_tokens")))
}
