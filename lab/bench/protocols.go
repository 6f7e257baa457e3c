package bench

import (
	"fmt"
	"strings"
)

// API is the protocol of a cell's requests; empty: Chat Completions.
type API string

// The other protocols.
const (
	Messages  API = "messages"
	Responses API = "responses"
	Gemini    API = "gemini"
)

// apis lists the other protocols.
func apis() []API { return []API{Messages, Responses, Gemini} }

// path is where the protocol is served.
func (a API) path() string {
	switch a {
	case "":
		return chatPath
	case Gemini:
		return "/v1beta/models/" + Model + ":generateContent"
	}
	return "/v1/" + string(a)
}

// head and tail are what a body has around its history.
func (a API) head() string {
	switch a {
	case Messages:
		return `{"max_tokens":8000,"system":` + quote(systemPrompt) + `,"messages":[`
	case Responses:
		return `{"store":false,"instructions":` + quote(systemPrompt) + `,"input":[`
	case Gemini:
		return `{"systemInstruction":{"parts":[{"text":` + quote(systemPrompt) + `}]},"contents":[`
	}
	return bodyHead
}

func (a API) tail(stream bool) string {
	switch {
	case a == Messages:
		return `],"model":"` + Model + `",` + strings.NewReplacer(`"type":"function","function":{`, "", `"parameters"`, `"input_schema"`, `}}}}`, `}}}`, `}}},`, `}},`,
			`"tool_choice":"auto"`, `"temperature":0.2`).Replace(bodyTools) + "}"
	case a == Responses:
		return `],"model":"` + Model + `",` + strings.NewReplacer(`"function":{`, "", `}}}}`, `}}}`, `}}},`, `}},`).Replace(bodyTools) + "}"
	case a == Gemini:
		return `],"tools":[{"functionDeclarations":` + strings.NewReplacer(`"tools":`, "", `"type":"function","function":{`, "", `}}}}`, `}}}`, `}}},`, `}},`,
			`,"tool_choice":"auto"`, "").Replace(bodyTools) + `}],"generationConfig":{"temperature":0.2}}`
	case stream:
		return bodyTailStreamed
	}
	return bodyTail
}

// person is what a person says.
func (a API) person(text string) string {
	if a == Gemini {
		return `{"role":"user","parts":[{"text":"` + text + `"}]}`
	}
	return `{"role":"user","content":"` + text + `"}`
}

// unit is what a model says, empty: nothing, with a call; and what stands around the call's result.
func (a API) unit(thought, arguments string) (call, result, end string) {
	const id = `"call_` + stamp + `"`
	said := func(before, after string) string {
		if thought == "" {
			return ""
		}
		return before + quote(thought) + after
	}
	switch a {
	case Messages:
		return `{"role":"assistant","content":[` + said(`{"type":"text","text":`, `},`) + `{"type":"tool_use","id":` + id + `,"name":"bash","input":` + arguments + `}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":` + id + `,"content":`, `}]}`
	case Responses:
		return said(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":`, `,"annotations":[]}]},`) +
				`{"type":"function_call","call_id":` + id + `,"name":"bash","arguments":` + quote(arguments) + `}`,
			`{"type":"function_call_output","call_id":` + id + `,"output":`, `}`
	case Gemini:
		return `{"role":"model","parts":[` + said(`{"text":`, `},`) + `{"functionCall":{"id":` + id + `,"name":"bash","args":` + arguments + `}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"id":` + id + `,"name":"bash","response":{"output":`, `}}}]}`
	}
	content := "null"
	if thought != "" {
		content = quote(thought)
	}
	return `{"role":"assistant","content":` + content + `,"tool_calls":[{"id":` + id + `,"type":"function","function":{"name":"bash","arguments":` + quote(arguments) + `}}]}`,
		`{"role":"tool","tool_call_id":` + id + `,"content":`, `}`
}

// turn answers with a call, as an agent's model does.
func (a API) turn(id uint64, received int) string {
	call := fmt.Sprintf("call_%d", mix(id))
	used := fmt.Sprintf(`"usage":{"input_tokens":%d,"output_tokens":24}`, received/bytesPerToken+1)
	switch a {
	case Messages:
		return fmt.Sprintf(`{"id":"chatcmpl-%d","type":"message","role":"assistant","model":%q,"content":[{"type":"tool_use","id":%q,"name":"bash",`+
			`"input":{"command":"go test ./...","timeout":60}}],"stop_reason":"tool_use","stop_sequence":null,%s}`, id, Model, call, used)
	case Responses:
		return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"response","status":"completed","model":%q,"output":[{"type":"function_call","id":"fc_%d","status":"completed",`+
			`"call_id":%q,"name":"bash","arguments":"{\"command\": \"go test ./...\"}"}],%s}`, id, Model, id, call, used)
	case Gemini:
		prompt := received/bytesPerToken + 1
		return fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":%q,"name":"bash","args":{"command":"go test ./..."}}}]},`+
			`"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":%d,"candidatesTokenCount":24,"totalTokenCount":%d},"modelVersion":%q,`+
			`"responseId":"chatcmpl-%d"}`, call, prompt, prompt+24, Model, id)
	}
	return fmt.Sprintf(`{"id":"chatcmpl-%d","object":"chat.completion","created":1767225600,"model":%q,"choices":[{"index":0,"message":{"role":"assistant",`+
		`"content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"bash","arguments":"{\"command\": \"go test ./...\", \"timeout\": 60}"}}]},`+
		`"finish_reason":"tool_calls"}],%s}`, id, Model, call, usage(received))
}
