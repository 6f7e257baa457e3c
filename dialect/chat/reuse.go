package chat

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// notReused are the members that concern an answer, and no part of a prompt.
var notReused = [...]string{
	"stream", "stream_options", "n", "stop", "logprobs", "top_logprobs", "prediction", "store", "metadata",
}

// Reuse implements dialect.Reuser. A form of the answer is a part of the prompt, so a body that asks for one cannot be used. Where the cache
// goes by tool_choice, too, that stays, and a body that forces a call cannot be used either. A limit is set where the client sets one.
func (d *Dialect) Reuse(body []byte, output int) []byte {
	all := rawjson.ValueOf(body)
	byChoice := agents.CachesByChoice(split.Member(all, "model").Text()) || bytes.Contains(body, []byte(`"cache_control"`))
	thought := budget(all)
	tools, functions, text := false, false, true
	out := split.Keep(body, func(name string, v *rawjson.Value) bool {
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
			text = text && (n == 0 && string(v.Raw) != "0" || n-thought >= output) // what is no count is no limit
			return output == 0 || n <= thought+split.AnswerShare*output
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
		if most := thought + split.AnswerShare*output; output > 0 && split.Integer(split.Member(all, name)) > most {
			out = fmt.Appendf(out, `,%q:%d`, name, most)
		}
	}
	return append(out, `,"stream":true,"stream_options":{"include_usage":true}}`...)
}

// limits are the members that limit an answer; a model takes one of them, or both.
var limits = [...]string{"max_completion_tokens", "max_tokens"}

// budget is how many tokens of an answer are for thinking, as far as a body says.
func budget(body rawjson.Value) int {
	return max(split.Integer(split.Member(body, "thinking", "budget_tokens")),
		split.Integer(split.Member(body, "reasoning", "max_tokens")))
}

// Touch implements dialect.Reuser. Thinking with a budget needs more tokens than that, and without it the prompt would be another one.
func (d *Dialect) Touch(body []byte) []byte {
	all := rawjson.ValueOf(body)
	if budget(all) > 0 {
		return nil
	}
	key := "max_tokens"
	if split.Member(all, limits[0]).Kind != 0 || split.Member(all, key).Kind == 0 && agents.RefusesMaxTokens(split.Member(all, "model").Text()) {
		key = limits[0]
	}
	if body = d.Reuse(body, 0); body != nil {
		return split.WithMember(body, key, []byte("1"))
	}
	return nil
}
