package replay

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

// responsesWire is the Responses API.
type responsesWire struct{}

func (responsesWire) path() string                { return responses.Path }
func (responsesWire) dialect() dialect.Dialect    { return responses.New(split.Options{}) }
func (responsesWire) caches([]byte) bool          { return true }
func (responsesWire) automatic() bool             { return true }
func (responsesWire) plain(message []byte) []byte { return message }

func (responsesWire) isAnswer(message []byte) bool {
	var items []struct{ Type, Role string }
	if json.Unmarshal(slices.Concat([]byte("["), message, []byte("]")), &items) != nil || len(items) == 0 {
		return false
	}
	return IsOutput(items[0].Type, items[0].Role)
}

// IsOutput reports whether an item of the Responses API was written by the model.
func IsOutput(kind, role string) bool {
	return role == "assistant" || kind == "reasoning" || strings.HasSuffix(kind, "_call")
}

func (responsesWire) body(run *Run, name string, items []json.RawMessage) []byte {
	return object(member{"model", quote(name)}, member{"instructions", run.System}, member{"input", list(items)}, member{"tools", run.Tools},
		member{"store", []byte("false")}, member{"include", []byte(`["reasoning.encrypted_content"]`)})
}

func (responsesWire) furnish(run Run, text string) Run {
	if len(run.System) == 0 {
		run.System = quote(text)
		return run
	}
	run.Tools = assemble.Encode([]any{map[string]any{
		"type": "function", "name": "recorded", "description": text, "parameters": map[string]any{"type": "object"}, "strict": false,
	}})
	return run
}

func (responsesWire) response(name string, answer []byte, u model.Usage) []byte {
	return assemble.Encode(map[string]any{
		"id": "resp_replay", "object": "response", "created_at": 0, "status": "completed", "model": name,
		"output": json.RawMessage(slices.Concat([]byte("["), answer, []byte("]"))),
		"usage": map[string]any{
			"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
			"input_tokens_details":  map[string]int{"cached_tokens": u.Cached, "cache_write_tokens": u.Written},
			"output_tokens_details": map[string]int{"reasoning_tokens": 0},
		},
	})
}

func (responsesWire) encode(r reply) []byte {
	if r.function != "" {
		return assemble.Encode(map[string]any{
			"type": "function_call", "id": "fc_record", "call_id": "call_record", "name": r.function, "arguments": r.arguments, "status": "completed",
		})
	}
	text := map[string]any{"type": "output_text", "text": r.text, "annotations": []any{}}
	return assemble.Encode(map[string]any{
		"type": "message", "id": "msg_record", "role": "assistant", "status": "completed", "content": []any{text},
	})
}

func (responsesWire) demands(body []byte) (d demands) {
	var c struct {
		MaxOutputTokens int `json:"max_output_tokens"`
		Tools           functions
		ToolChoice      json.RawMessage `json:"tool_choice"`
		Text            struct {
			Format struct{ Schema schema }
		}
	}
	_ = json.Unmarshal(body, &c) // Split has read it
	d.limit, d.format = c.MaxOutputTokens, c.Text.Format.Schema
	d.function, d.parameters = c.Tools.chosen(c.ToolChoice)
	return d
}
