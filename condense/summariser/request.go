package summariser

import (
	"cmp"
	"encoding/json"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
)

// protocol is how an API is called.
type protocol struct {
	path    string // below the base URL
	request func(condense.Request, lacks) object
	dialect dialect.Dialect // reads the answers
}

func protocolOf(to condense.Endpoint) protocol {
	switch to.Way.API {
	case condense.APIMessages:
		return protocol{messages.Path, messagesRequest, messages.New(split.Options{})}
	case condense.APIResponses:
		return protocol{responses.Path, responsesRequest, responses.New(split.Options{})}
	}
	return protocol{chat.Path, chatRequest, chat.New(split.Options{})}
}

// The version of the Messages API, for calls whose headers have none from a client.
const (
	versionHeader    = "Anthropic-Version"
	anthropicVersion = "2023-06-01"
)

// object is a JSON object of a request's body.
type object = map[string]any

// described adds a schema's name and description to an object.
func described(o object, f *condense.Schema) object {
	o["name"] = f.Name
	if f.Description != "" {
		o["description"] = f.Description
	}
	return o
}

func chatRequest(r condense.Request, l lacks) object {
	out := object{"model": r.Model, "messages": []object{
		{"role": "system", "content": r.System}, {"role": "user", "content": r.User},
	}}
	switch {
	case r.MaxOutput <= 0:
	case agents.RefusesMaxTokens(r.Model):
		out["max_completion_tokens"] = r.MaxOutput
	default:
		out["max_tokens"] = r.MaxOutput // compatible servers support only this one
	}
	if effort := effortOf(r.Model); effort != "" && !l.effort {
		out["reasoning_effort"] = effort
	}
	if !l.stream {
		out["stream"] = true
	}
	if !l.stream && !l.options {
		out["stream_options"] = object{"include_usage": true}
	}
	if f := r.Function; f != nil {
		function := described(object{"parameters": json.RawMessage(f.JSON)}, f)
		out["tools"] = []object{{"type": "function", "function": function}}
		out["tool_choice"] = object{"type": "function", "function": object{"name": f.Name}}
	}
	if f := r.Format; f != nil {
		schema := described(object{"schema": json.RawMessage(f.JSON), "strict": true}, f)
		out["response_format"] = object{"type": "json_schema", "json_schema": schema}
	}
	return out
}

// userMessage returns the prompt as a user message with one part of the given type.
func userMessage(r condense.Request, part string) object {
	return object{"role": "user", "content": []object{{"type": part, "text": r.User}}}
}

// messagesRequest turns a required format of the text into the schema of a tool's arguments, which all models support.
func messagesRequest(r condense.Request, _ lacks) object {
	out := object{"model": r.Model, "max_tokens": r.MaxOutput, "stream": true, "messages": []object{userMessage(r, "text")}}
	if r.System != "" {
		out["system"] = r.System
	}
	if f := cmp.Or(r.Function, r.Format); f != nil {
		out["tools"] = []object{described(object{"input_schema": json.RawMessage(f.JSON)}, f)}
		out["tool_choice"] = object{"type": "tool", "name": f.Name}
	}
	return out
}

func responsesRequest(r condense.Request, l lacks) object {
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
