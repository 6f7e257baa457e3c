package summariser

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// The version of the Messages API, for calls whose headers have none from a client.
const (
	versionHeader    = "Anthropic-Version"
	anthropicVersion = "2023-06-01"
)

// object is a JSON object of a request's body.
type object = map[string]any

// userMessage returns the events and the question as one user message, with parts of the given type.
func userMessage(r condense.Request, part string) object {
	var parts []object
	for _, text := range append(slices.Clip(r.Events), r.User) {
		if strings.TrimSpace(text) != "" {
			parts = append(parts, object{"type": part, "text": text})
		}
	}
	return object{"role": "user", "content": parts}
}

// described adds a schema's name and description to an object.
func described(o object, f *condense.Schema) object {
	o["name"] = f.Name
	if f.Description != "" {
		o["description"] = f.Description
	}
	return o
}

// messagesRequest puts all events into one user message, as in Chat Completions. A required format of the text becomes the schema of a tool's
// arguments, which all models support.
func messagesRequest(c Caller, r condense.Request, _ lacks) any {
	out := object{"model": r.Model, "max_tokens": r.MaxOutput, "stream": true, "messages": []object{userMessage(r, "text")}}
	if r.System != "" {
		out["system"] = r.System
	}
	if c.Temperature != nil {
		out["temperature"] = *c.Temperature
	}
	if f := cmp.Or(r.Function, r.Format); f != nil {
		out["tools"] = []object{described(object{"input_schema": json.RawMessage(f.JSON)}, f)}
		out["tool_choice"] = object{"type": "tool", "name": f.Name}
	}
	return out
}
