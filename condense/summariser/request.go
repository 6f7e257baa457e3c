package summariser

import (
	"cmp"
	"encoding/json"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// protocol is how an API is called.
type protocol struct {
	path    string // below the base URL
	request func(Caller, condense.Request, lacks) any
	dialect dialect.Dialect // reads the answers
}

func protocolOf(to condense.Endpoint) protocol {
	switch to.Way.API {
	case condense.APIMessages:
		return protocol{messages.Path, messagesRequest, messages.New(split.Options{})}
	case condense.APIResponses:
		return protocol{responses.Path, responsesRequest, responses.New(split.Options{})}
	case condense.APIGemini:
		return protocol{"", geminiRequest, gemini.New(split.Options{})} // endpointOf sets the path
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

// userMessage returns the prompt as a user message with one part of the given type.
func userMessage(r condense.Request, part string) object {
	return object{"role": "user", "content": []object{{"type": part, "text": r.User}}}
}

// messagesRequest turns a required format of the text into the schema of a tool's arguments, which all models support.
func messagesRequest(c Caller, r condense.Request, _ lacks) any {
	out := object{"model": r.Model, "max_tokens": r.MaxOutput, "stream": true, "messages": []object{userMessage(r, "text")}}
	if r.System != "" {
		out["system"] = r.System
	}
	if c.Temperature != nil {
		out["temperature"] = *c.Temperature
	}
	if c.Effort != "" {
		out["output_config"] = object{"effort": c.Effort}
	}
	if f := cmp.Or(r.Function, r.Format); f != nil {
		out["tools"] = []object{described(object{"input_schema": json.RawMessage(f.JSON)}, f)}
		out["tool_choice"] = object{"type": "tool", "name": f.Name}
	}
	return out
}

func responsesRequest(c Caller, r condense.Request, _ lacks) any {
	message := userMessage(r, "input_text")
	message["type"] = "message"
	out := object{"model": r.Model, "input": []object{message}, "stream": true, "store": false} // some servers require false
	if r.System != "" {
		out["instructions"] = r.System
	}
	if c.Temperature != nil {
		out["temperature"] = *c.Temperature
	}
	if r.MaxOutput > 0 {
		out["max_output_tokens"] = r.MaxOutput
	}
	if effort := cmp.Or(c.Effort, effortOf(r.Model)); effort != "" {
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
