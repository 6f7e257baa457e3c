package summariser

import (
	"encoding/json"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// responsesRequest puts all events into one user message, as in Chat Completions.
func responsesRequest(c Caller, r condense.Request, l lacks) any {
	message := userMessage(r, "input_text")
	message["type"] = "message"
	out := object{"model": r.Model, "input": []object{message}, "stream": true, "store": false} // some servers require false
	if r.System != "" {
		out["instructions"] = r.System
	}
	if !l.limit && r.MaxOutput > 0 {
		out["max_output_tokens"] = r.MaxOutput
	}
	if effort := effortOf(r.Model); effort != "" && !l.effort {
		out["reasoning"] = object{"effort": effort}
	}
	if c.Temperature != nil {
		out["temperature"] = *c.Temperature
	}
	if f := r.Function; f != nil {
		out["tools"] = []object{described(object{"type": "function", "parameters": json.RawMessage(f.JSON), "strict": false}, f)}
		out["tool_choice"] = object{"type": "function", "name": f.Name}
	}
	if f := r.Format; f != nil {
		format := object{"type": "json_schema", "schema": json.RawMessage(f.JSON), "strict": true}
		out["text"] = object{"format": described(format, f)}
	}
	return out
}
