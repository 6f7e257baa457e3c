package replay

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// messagesWire is Anthropic's Messages API. Requests mark the end of the system prompt and of the history for the cache, as agents do.
type messagesWire struct{}

// cacheMark marks a block for the cache.
var cacheMark = []byte(`,"cache_control":{"type":"ephemeral"}`)

// messagesLimit is the limit of an answer. The API requires one.
const messagesLimit = 32_000

func (messagesWire) path() string                 { return messages.Path }
func (messagesWire) dialect() dialect.Dialect     { return messages.New(split.Options{}) }
func (messagesWire) isAnswer(message []byte) bool { return role(message) == "assistant" }
func (messagesWire) caches(message []byte) bool   { return bytes.Contains(message, cacheMark) }

func (messagesWire) automatic() bool { return false }
func (messagesWire) plain(message []byte) []byte {
	if !bytes.Contains(message, cacheMark) {
		return message
	}
	return bytes.ReplaceAll(message, cacheMark, nil)
}

func (messagesWire) body(run *Run, name string, history []json.RawMessage) []byte {
	history = slices.Clone(history)
	if last := len(history) - 1; last >= 0 {
		history[last] = marked(history[last], "}]}")
	}
	return object(member{"model", quote(name)}, member{"max_tokens", assemble.Encode(messagesLimit)},
		member{"system", marked(run.System, "}]")}, member{"tools", run.Tools}, member{"messages", list(history)})
}

// marked adds a mark to the last block of a list that ends with the given brackets.
func marked(raw []byte, end string) []byte {
	before, ok := bytes.CutSuffix(raw, []byte(end))
	if !ok {
		return raw
	}
	return slices.Concat(before, cacheMark, []byte(end))
}

func (messagesWire) furnish(run Run, text string) Run {
	if len(run.System) == 0 {
		run.System = assemble.Encode([]any{map[string]string{"type": "text", "text": text}})
		return run
	}
	run.Tools = assemble.Encode([]any{map[string]any{"name": "recorded", "description": text, "input_schema": map[string]any{"type": "object"}}})
	return run
}

func (messagesWire) response(name string, answer []byte, u model.Usage) []byte {
	var m struct{ Content json.RawMessage }
	_ = json.Unmarshal(answer, &m) // isAnswer has read it
	stop := "end_turn"
	if bytes.Contains(m.Content, []byte(`"tool_use"`)) {
		stop = "tool_use"
	}
	return assemble.Encode(map[string]any{
		"id": "msg_replay", "type": "message", "role": "assistant", "model": name, "content": m.Content, "stop_reason": stop, "stop_sequence": nil,
		"usage": map[string]int{
			"input_tokens": u.Input - u.Cached - u.Written, "cache_read_input_tokens": u.Cached, "cache_creation_input_tokens": u.Written,
			"output_tokens": u.Output,
		},
	})
}

func (messagesWire) encode(r reply) []byte {
	block := map[string]any{"type": "text", "text": r.text}
	if r.function != "" {
		block = map[string]any{"type": "tool_use", "id": "toolu_record", "name": r.function, "input": json.RawMessage(r.arguments)}
	}
	return assemble.Encode(map[string]any{"role": "assistant", "content": []any{block}})
}

func (messagesWire) demands(body []byte) (d demands) {
	var c struct {
		MaxTokens    int `json:"max_tokens"`
		Tools        functions
		ToolChoice   json.RawMessage `json:"tool_choice"`
		OutputConfig struct {
			Format struct{ Schema schema }
		} `json:"output_config"`
	}
	_ = json.Unmarshal(body, &c) // Split has read it
	d.limit, d.format = c.MaxTokens, c.OutputConfig.Format.Schema
	d.function, d.parameters = c.Tools.chosen(c.ToolChoice)
	return d
}
