package replay

import (
	"cmp"
	"encoding/json"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// chatWire is Chat Completions.
type chatWire struct{}

func (chatWire) path() string                 { return chat.Path }
func (chatWire) dialect() dialect.Dialect     { return chat.New(chat.Options{}) }
func (chatWire) isAnswer(message []byte) bool { return role(message) == "assistant" }
func (chatWire) caches([]byte) bool           { return true }
func (chatWire) automatic() bool              { return true }
func (chatWire) plain(message []byte) []byte  { return message }

func (chatWire) body(run *Run, name string, messages []json.RawMessage) []byte {
	return object(member{"model", quote(name)}, member{"messages", list(messages)}, member{"tools", run.Tools})
}

func (chatWire) furnish(run Run, text string) Run {
	run.Tools = assemble.Encode([]any{map[string]any{
		"type": "function", "function": map[string]any{"name": "recorded", "description": text, "parameters": map[string]any{"type": "object"}},
	}})
	return run
}

func (chatWire) response(name string, answer []byte, u model.Usage) []byte {
	finish := "stop"
	var m struct {
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(answer, &m) == nil && len(m.ToolCalls) > 0 {
		finish = "tool_calls"
	}
	return assemble.Encode(map[string]any{
		"id": "chatcmpl-replay", "object": "chat.completion", "created": 0, "model": name,
		"choices": []any{map[string]any{"index": 0, "message": json.RawMessage(answer), "finish_reason": finish}},
		"usage": map[string]any{
			"prompt_tokens": u.Input, "completion_tokens": u.Output, "total_tokens": u.Input + u.Output,
			"prompt_tokens_details": map[string]int{"cached_tokens": u.Cached, "cache_write_tokens": u.Written},
		},
	})
}

func (chatWire) encode(r reply) []byte {
	if r.function == "" {
		return assemble.Encode(map[string]any{"role": "assistant", "content": r.text})
	}
	function := map[string]any{"name": r.function, "arguments": r.arguments}
	calls := []any{map[string]any{"id": "call_record", "type": "function", "function": function}}
	return assemble.Encode(map[string]any{"role": "assistant", "content": nil, "tool_calls": calls})
}

func (chatWire) demands(body []byte) (d demands) {
	var c struct {
		MaxTokens           int `json:"max_tokens"`
		MaxCompletionTokens int `json:"max_completion_tokens"`
		Tools               functions
		ToolChoice          json.RawMessage `json:"tool_choice"`
		ResponseFormat      struct {
			JSONSchema struct{ Schema schema } `json:"json_schema"`
		} `json:"response_format"`
	}
	_ = json.Unmarshal(body, &c) // Split has read it
	d.limit, d.format = cmp.Or(c.MaxTokens, c.MaxCompletionTokens), c.ResponseFormat.JSONSchema.Schema
	d.function, d.parameters = c.Tools.chosen(c.ToolChoice)
	return d
}
