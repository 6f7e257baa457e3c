package fakeupstream_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

const (
	user     = `{"role":"user","content":"hi"}`
	callA    = `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	callB    = `{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}`
	callsA   = `{"role":"assistant","tool_calls":[` + callA + `]}`
	callsAB  = `{"role":"assistant","content":null,"tool_calls":[` + callA + `,` + callB + `]}`
	resultA  = `{"role":"tool","tool_call_id":"a","content":"done"}`
	resultB  = `{"role":"tool","tool_call_id":"b","content":"done"}`
	toolF    = `{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{}}}}`
	noAnswer = "An assistant message with 'tool_calls' must be followed by tool messages responding to each " +
		"'tool_call_id'. The following tool_call_ids did not have response messages: "
	orphan  = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
	noJSON  = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)"
	noText  = "Invalid value for 'content': expected a string, got null."
	noModel = "you must provide a model parameter"
)

// conversation returns a request with these messages.
func conversation(messages ...string) string {
	return `{"model":"gpt-4o","messages":[` + strings.Join(messages, ",") + `]}`
}

// with returns a small request with more members.
func with(members string) string {
	return strings.TrimSuffix(hello, "}") + "," + members + "}"
}

func calling(call string) string {
	return conversation(user, `{"role":"assistant","tool_calls":[`+call+`]}`)
}

func strictFormat(schema string) string {
	return with(`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":` + schema + `}}`)
}

type refusal struct{ name, body, message, param, code string }

func checkRefusals(t *testing.T, validate func([]byte) *fakeupstream.APIError, cases []refusal) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			err := validate([]byte(c.body))
			if err == nil {
				t.Fatalf("accepted %s", c.body)
			}
			if err.Status != 400 {
				t.Errorf("status %d", err.Status)
			}
			wantError(t, string(err.Body()), fakeupstream.APIError{Message: c.message, Param: c.param, Code: c.code})
		})
	}
}

// validate returns why a server refuses a request, or nil.
func validate(body []byte) *fakeupstream.APIError {
	return refused(fakeupstream.Options{}, body)
}

func validateStrict(body []byte) *fakeupstream.APIError {
	return refused(fakeupstream.Options{Strict: true}, body)
}

func refused(options fakeupstream.Options, body []byte) *fakeupstream.APIError {
	s := fakeupstream.New(options)
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	s.ServeHTTP(httptest.NewRecorder(), r)
	return s.Requests()[0].Refused
}

func TestValidateRefusesBadBodies(t *testing.T) {
	checkRefusals(t, validate, []refusal{
		{"empty", "", noJSON, "", ""},
		{"cut off", hello[:20], noJSON, "", ""},
		{"two values", hello + hello, noJSON, "", ""},
		{"not UTF-8", "{\"model\":\"\xff\"}", noJSON, "", ""},
		{"array", "[]", "Invalid type: expected an object, but got an array instead.", "", "invalid_type"},
		{"no model", `{"messages":[` + user + `]}`, noModel, "", ""},
		{"null model", `{"model":null,"messages":[` + user + `]}`, noModel, "", ""},
		{"empty model", `{"model":"","messages":[` + user + `]}`, noModel, "", ""},
		{"number as model", `{"model":4,"messages":[` + user + `]}`, "Invalid type for 'model': expected a string, but got an integer instead.", "model", "invalid_type"},
		{"key of another case", `{"model":"m","Messages":[` + user + `]}`, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"},
		{"stream as text", with(`"stream":"yes"`), "Invalid type for 'stream': expected a boolean, but got a string instead.", "stream", "invalid_type"},
		{"stream options alone", with(`"stream_options":{"include_usage":true}`), "The 'stream_options' parameter is only allowed when 'stream' is enabled.", "stream_options", ""},
		{"stream options as list", with(`"stream":true,"stream_options":[]`), "Invalid type for 'stream_options': expected an object, but got an array instead.", "stream_options", "invalid_type"},
		{"hot", with(`"temperature":2.5`), "Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.", "temperature", "decimal_above_max_value"},
		{"text as number", with(`"top_p":"1"`), "Invalid type for 'top_p': expected a decimal, but got a string instead.", "top_p", "invalid_type"},
		{"no tokens", with(`"max_tokens":0`), "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.", "max_tokens", "integer_below_min_value"},
		{"part of a token", with(`"max_tokens":1.5`), "Invalid type for 'max_tokens': expected an integer, but got a decimal instead.", "max_tokens", "invalid_type"},
		{"two limits", with(`"max_tokens":5,"max_completion_tokens":5`), "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.", "max_tokens", "invalid_parameter_combination"},
	})
}

func TestValidateRefusesBadMessages(t *testing.T) {
	checkRefusals(t, validate, []refusal{
		{"no messages", `{"model":"m"}`, "Missing required parameter: 'messages'.", "messages", "missing_required_parameter"},
		{"null messages", `{"model":"m","messages":null}`, "Invalid type for 'messages': expected an array of objects, but got null instead.", "messages", "invalid_type"},
		{"text as messages", `{"model":"m","messages":"hi"}`, "Invalid type for 'messages': expected an array of objects, but got a string instead.", "messages", "invalid_type"},
		{"empty messages", conversation(), "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", "messages", "empty_array"},
		{"text as message", conversation(user, `"hi"`), "Invalid type for 'messages[1]': expected an object, but got a string instead.", "messages[1]", "invalid_type"},
		{"no role", conversation(`{"content":"hi"}`), "Missing required parameter: 'messages[0].role'.", "messages[0].role", "missing_required_parameter"},
		{"null role", conversation(`{"role":null,"content":"hi"}`), "Invalid type for 'messages[0].role': expected a string, but got null instead.", "messages[0].role", "invalid_type"},
		{"unknown role", conversation(`{"role":"bot","content":"hi"}`), "Invalid value: 'bot'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", "messages[0].role", "invalid_value"},
		{"null content", conversation(`{"role":"user","content":null}`), noText, "messages.[0].content", ""},
		{"no content", conversation(user, `{"role":"user"}`), noText, "messages.[1].content", ""},
		{"null system", conversation(`{"role":"system","content":null}`, user), noText, "messages.[0].content", ""},
		{"null result", conversation(user, callsA, `{"role":"tool","tool_call_id":"a","content":null}`), noText, "messages.[2].content", ""},
		{"silent assistant", conversation(user, `{"role":"assistant"}`), noText, "messages.[1].content", ""},
		{"null assistant", conversation(user, `{"role":"assistant","content":null,"refusal":null}`), noText, "messages.[1].content", ""},
		{"object as content", conversation(user, `{"role":"user","content":{"type":"text"}}`), "Invalid type for 'messages[1].content': expected one of a string or array of objects, but got an object instead.", "messages[1].content", "invalid_type"},
		{"number as content", conversation(`{"role":"user","content":7}`), "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer instead.", "messages[0].content", "invalid_type"},
		{"no parts", conversation(`{"role":"user","content":[]}`), "Invalid 'messages[0].content': empty array. Expected an array with minimum length 1, but got an empty array instead.", "messages[0].content", "empty_array"},
		{"text as part", conversation(`{"role":"user","content":["hi"]}`), "Invalid type for 'messages[0].content[0]': expected an object, but got a string instead.", "messages[0].content[0]", "invalid_type"},
		{"part without type", conversation(`{"role":"user","content":[{"text":"hi"}]}`), "Missing required parameter: 'messages[0].content[0].type'.", "messages[0].content[0].type", "missing_required_parameter"},
		{"unknown part", conversation(`{"role":"user","content":[{"type":"tool_use"}]}`), "Invalid value: 'tool_use'. Supported values are: 'text', 'image_url', 'input_audio', and 'file'.", "messages[0].content[0].type", "invalid_value"},
		{"image in a result", conversation(user, callsA, `{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"u"}}]}`), "Invalid value: 'image_url'. Supported values are: 'text'.", "messages[2].content[0].type", "invalid_value"},
		{"part without text", conversation(`{"role":"user","content":[{"type":"text"}]}`), "Missing required parameter: 'messages[0].content[0].text'.", "messages[0].content[0].text", "missing_required_parameter"},
		{"part of null text", conversation(`{"role":"user","content":[{"type":"text","text":null}]}`), "Invalid type for 'messages[0].content[0].text': expected a string, but got null instead.", "messages[0].content[0].text", "invalid_type"},
		{"image of a developer", conversation(`{"role":"developer","content":[{"type":"image_url","image_url":{"url":"u"}}]}`, user), "Invalid value: 'image_url'. Supported values are: 'text'.", "messages[0].content[0].type", "invalid_value"},
		{"file in a system prompt", conversation(`{"role":"system","content":[{"type":"file"}]}`, user), "Invalid value: 'file'. Supported values are: 'text'.", "messages[0].content[0].type", "invalid_value"},
		{"audio of a function", conversation(user, `{"role":"function","name":"f","content":[{"type":"input_audio"}]}`), "Invalid value: 'input_audio'. Supported values are: 'text'.", "messages[1].content[0].type", "invalid_value"},
		{"image of an assistant", conversation(user, `{"role":"assistant","content":[{"type":"image_url"}]}`), "Invalid value: 'image_url'. Supported values are: 'text' and 'refusal'.", "messages[1].content[0].type", "invalid_value"},
		{"image without URL", conversation(`{"role":"user","content":[{"type":"image_url","image_url":{}}]}`), "Missing required parameter: 'messages[0].content[0].image_url.url'.", "messages[0].content[0].image_url.url", "missing_required_parameter"},
		{"name with a blank", conversation(`{"role":"user","name":"a b","content":"hi"}`), `Invalid 'messages[0].name': string does not match pattern. Expected a string that matches the pattern '^[^\s<|\\/>]+$'.`, "messages[0].name", "invalid_value"},
		{"function without name", conversation(user, `{"role":"function","content":"1"}`), "Missing parameter 'name': messages with role 'function' must have a 'name'.", "messages.[1].name", ""},
	})
}

func TestValidateRefusesBadToolCalls(t *testing.T) {
	checkRefusals(t, validate, []refusal{
		{"empty calls", conversation(user, `{"role":"assistant","content":"x","tool_calls":[]}`), "[] is too short - 'messages.1.tool_calls'", "", ""},
		{"null calls", conversation(user, `{"role":"assistant","content":"x","tool_calls":null}`), "Invalid type for 'messages[1].tool_calls': expected an array of objects, but got null instead.", "messages[1].tool_calls", "invalid_type"},
		{"user calls", conversation(`{"role":"user","content":"x","tool_calls":[` + callA + `]}`), "Unknown parameter: 'messages[0].tool_calls'.", "messages[0].tool_calls", "unknown_parameter"},
		{"text as call", calling(`"a"`), "Invalid type for 'messages[1].tool_calls[0]': expected an object, but got a string instead.", "messages[1].tool_calls[0]", "invalid_type"},
		{"no id", calling(`{"type":"function","function":{"name":"f","arguments":"{}"}}`), "Missing required parameter: 'messages[1].tool_calls[0].id'.", "messages[1].tool_calls[0].id", "missing_required_parameter"},
		{"null id", calling(`{"id":null,"type":"function","function":{"name":"f","arguments":"{}"}}`), "Invalid type for 'messages[1].tool_calls[0].id': expected a string, but got null instead.", "messages[1].tool_calls[0].id", "invalid_type"},
		{"empty id", calling(`{"id":"","type":"function","function":{"name":"f","arguments":"{}"}}`), "Invalid 'messages[1].tool_calls[0].id': empty string. Expected a string with minimum length 1, but got an empty string instead.", "messages[1].tool_calls[0].id", "empty_string"},
		{"no type", calling(`{"id":"a","function":{"name":"f","arguments":"{}"}}`), "Missing required parameter: 'messages[1].tool_calls[0].type'.", "messages[1].tool_calls[0].type", "missing_required_parameter"},
		{"unknown type", calling(`{"id":"a","type":"tool"}`), "Invalid value: 'tool'. Supported values are: 'function' and 'custom'.", "messages[1].tool_calls[0].type", "invalid_value"},
		{"no function", calling(`{"id":"a","type":"function"}`), "Missing required parameter: 'messages[1].tool_calls[0].function'.", "messages[1].tool_calls[0].function", "missing_required_parameter"},
		{"no name", calling(`{"id":"a","type":"function","function":{"arguments":"{}"}}`), "Missing required parameter: 'messages[1].tool_calls[0].function.name'.", "messages[1].tool_calls[0].function.name", "missing_required_parameter"},
		{"bad name", calling(`{"id":"a","type":"function","function":{"name":"f.g","arguments":"{}"}}`), "Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", "messages[1].tool_calls[0].function.name", "invalid_value"},
		{"long name", calling(`{"id":"a","type":"function","function":{"name":"` + strings.Repeat("f", 65) + `","arguments":"{}"}}`), "Invalid 'messages[1].tool_calls[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.", "messages[1].tool_calls[0].function.name", "string_above_max_length"},
		{"no arguments", calling(`{"id":"a","type":"function","function":{"name":"f"}}`), "Missing required parameter: 'messages[1].tool_calls[0].function.arguments'.", "messages[1].tool_calls[0].function.arguments", "missing_required_parameter"},
		{"object as arguments", calling(`{"id":"a","type":"function","function":{"name":"f","arguments":{}}}`), "Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.", "messages[1].tool_calls[0].function.arguments", "invalid_type"},
		{"one id twice", conversation(user, `{"role":"assistant","tool_calls":[`+callA+`,`+callA+`]}`, resultA), "Invalid parameter: Duplicate value for 'id' of 'a', in messages[1].tool_calls[0] and messages[1].tool_calls[1].", "messages[1].tool_calls[1].id", ""},
	})
}

func TestValidateRefusesBadOrder(t *testing.T) {
	checkRefusals(t, validate, []refusal{
		{"unanswered at the end", conversation(user, callsA), noAnswer + "a", "messages", ""},
		{"unanswered before a user", conversation(user, callsA, user), noAnswer + "a", "messages.[2].role", ""},
		{"two unanswered", conversation(user, callsAB, user), noAnswer + "a, b", "messages.[2].role", ""},
		{"one of two unanswered", conversation(user, callsAB, resultB), noAnswer + "a", "messages", ""},
		{"answered too late", conversation(user, callsAB, resultA, user, resultB), noAnswer + "b", "messages.[3].role", ""},
		{"unanswered before calls", conversation(user, callsA, callsA, resultA), noAnswer + "a", "messages.[2].role", ""},
		{"result first", conversation(resultA), orphan, "messages.[0].role", ""},
		{"result after a user", conversation(user, resultA), orphan, "messages.[1].role", ""},
		{"result after a closed unit", conversation(user, callsA, resultA, user, resultA), orphan, "messages.[4].role", ""},
		{"result after plain text", conversation(user, `{"role":"assistant","content":"x"}`, resultA), orphan, "messages.[2].role", ""},
		{"result of another", conversation(user, callsA, resultB), "Invalid parameter: 'tool_call_id' of 'b' not found in 'tool_calls' of previous message.", "messages.[2].tool_call_id", ""},
		{"result of an earlier unit", conversation(user, callsA, resultA, `{"role":"assistant","tool_calls":[`+callB+`]}`, resultB, resultA), "Invalid parameter: 'tool_call_id' of 'a' not found in 'tool_calls' of previous message.", "messages.[5].tool_call_id", ""},
		{"two results", conversation(user, callsAB, resultA, resultB, resultA), "Invalid parameter: Duplicate value for 'tool_call_id' of 'a', in messages[2] and messages[4].", "messages.[4].tool_call_id", ""},
		{"result without id", conversation(user, callsA, `{"role":"tool","content":"done"}`), "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.", "messages.[2].tool_call_id", ""},
		{"result of null id", conversation(user, callsA, `{"role":"tool","tool_call_id":null,"content":"done"}`), "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.", "messages.[2].tool_call_id", ""},
		{"number as id", conversation(user, callsA, `{"role":"tool","tool_call_id":1,"content":"done"}`), "Invalid type for 'messages[2].tool_call_id': expected a string, but got an integer instead.", "messages[2].tool_call_id", "invalid_type"},
	})
}

func TestValidateRefusesBadTools(t *testing.T) {
	const open, closed = `{"type":"object","properties":{"x":{"type":"string"}}}`, `"additionalProperties":false,"type":"object"`
	checkRefusals(t, validate, []refusal{
		{"empty tools", with(`"tools":[]`), "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.", "tools", "empty_array"},
		{"too many tools", with(`"tools":[` + strings.Repeat(toolF+",", 128) + toolF + `]`), "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.", "tools", "array_above_max_length"},
		{"tool without type", with(`"tools":[{"name":"f","input_schema":{}}]`), "Missing required parameter: 'tools[0].type'.", "tools[0].type", "missing_required_parameter"},
		{"tool without function", with(`"tools":[{"type":"function"}]`), "Missing required parameter: 'tools[0].function'.", "tools[0].function", "missing_required_parameter"},
		{"tool without name", with(`"tools":[{"type":"function","function":{}}]`), "Missing required parameter: 'tools[0].function.name'.", "tools[0].function.name", "missing_required_parameter"},
		{"no object", with(`"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]`), `Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`, "tools[0].function.parameters", "invalid_function_parameters"},
		{"strict and open", with(`"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` + open + `}}]`), "Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.", "tools[0].function.parameters", "invalid_function_parameters"},
		{"choice without tools", with(`"tool_choice":"auto"`), "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", "tool_choice", ""},
		{"parallel without tools", with(`"parallel_tool_calls":false`), "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.", "parallel_tool_calls", ""},
		{"unknown choice", with(`"tools":[` + toolF + `],"tool_choice":"any"`), "Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.", "tool_choice", "invalid_value"},
		{"choice of nothing", with(`"tools":[` + toolF + `],"tool_choice":{"type":"function","function":{"name":"g"}}`), "Invalid value for 'tool_choice': no function named 'g' was specified in the 'tools' parameter.", "tool_choice", ""},
		{"parameters as list", with(`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`), "Invalid type for 'tools[0].function.parameters': expected an object, but got an array instead.", "tools[0].function.parameters", "invalid_type"},
		{"choice without name", with(`"tools":[` + toolF + `],"tool_choice":{"type":"function"}`), "Missing required parameter: 'tool_choice.function.name'.", "tool_choice.function.name", "missing_required_parameter"},
		{"number as choice", with(`"tools":[` + toolF + `],"tool_choice":7`), "Invalid type for 'tool_choice': expected one of a string or object, but got an integer instead.", "tool_choice", "invalid_type"},
		{"text as format", with(`"response_format":"text"`), "Invalid type for 'response_format': expected an object, but got a string instead.", "response_format", "invalid_type"},
		{"unknown format", with(`"response_format":{"type":"xml"}`), "Invalid value: 'xml'. Supported values are: 'json_object', 'json_schema', and 'text'.", "response_format.type", "invalid_value"},
		{"JSON unmentioned", with(`"response_format":{"type":"json_object"}`), "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.", "messages", ""},
		{"schema missing", with(`"response_format":{"type":"json_schema"}`), "Missing required parameter: 'response_format.json_schema'.", "response_format.json_schema", "missing_required_parameter"},
		{"schema without name", with(`"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`), "Missing required parameter: 'response_format.json_schema.name'.", "response_format.json_schema.name", "missing_required_parameter"},
		{"text as schema", with(`"response_format":{"type":"json_schema","json_schema":"n"}`), "Invalid type for 'response_format.json_schema': expected an object, but got a string instead.", "response_format.json_schema", "invalid_type"},
		{"strict without schema", with(`"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true}}`), "Missing required parameter: 'response_format.json_schema.schema'.", "response_format.json_schema.schema", "missing_required_parameter"},
		{"schema open", strictFormat(open), "Invalid schema for response_format 'n': In context=(), 'additionalProperties' is required to be supplied and to be false.", "response_format", ""},
		{"schema without required", strictFormat(`{` + closed + `,"properties":{"x":{"type":"string"}}}`), "Invalid schema for response_format 'n': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'x'.", "response_format", ""},
		{"schema open inside", strictFormat(`{` + closed + `,"required":["x"],"properties":{"x":` + open + `}}`), "Invalid schema for response_format 'n': In context=('properties', 'x'), 'additionalProperties' is required to be supplied and to be false.", "response_format", ""},
		{"schema open in items", strictFormat(`{"type":"array","items":` + open + `}`), "Invalid schema for response_format 'n': In context=('items'), 'additionalProperties' is required to be supplied and to be false.", "response_format", ""},
	})
}

func TestValidateAccepts(t *testing.T) {
	for name, body := range map[string]string{
		"least":                  hello,
		"all roles":              conversation(`{"role":"system","content":"s"}`, `{"role":"developer","content":"d"}`, user, callsA, resultA, `{"role":"assistant","content":"x"}`),
		"results in any order":   conversation(user, callsAB, resultB, resultA),
		"id again in later unit": conversation(user, callsA, resultA, callsA, resultA, user, callsA, resultA),
		"empty texts":            conversation(`{"role":"user","content":""}`, `{"role":"assistant","content":""}`, user),
		"broken arguments":       conversation(user, strings.Replace(callsA, `"{}"`, `"{\"x\":"`, 1), resultA),
		"empty arguments":        conversation(user, strings.Replace(callsA, `"{}"`, `""`, 1), resultA),
		"custom call":            conversation(user, `{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"g","input":"x"}}]}`, resultA),
		"old function":           conversation(user, `{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}`, `{"role":"function","name":"f","content":"1"}`),
		"refusal":                conversation(user, `{"role":"assistant","content":null,"refusal":"no"}`),
		"parts":                  conversation(`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}`),
		"result in parts":        conversation(user, callsA, `{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"x"}]}`),
		"assistant last":         conversation(user, `{"role":"assistant","content":"well"}`),
		"unknown fields":         with(`"x_field":1`),
		"unknown message field":  conversation(`{"role":"user","content":"hi","cache_control":{"type":"ephemeral"}}`),
		"long id":                strings.ReplaceAll(conversation(user, callsA, resultA), `"a"`, `"`+strings.Repeat("a", 50)+`"`),
		"tools":                  with(`"tools":[` + toolF + `],"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":true`),
		"choice of some tools":   with(`"tools":[` + toolF + `],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`),
		"nulls":                  with(`"tools":null,"tool_choice":null,"max_tokens":null,"stream":null,"stop":null`),
		"strict schema":          strictFormat(`{"type":"object","additionalProperties":false,"required":["ids"],"properties":{"ids":{"type":"array","items":{"type":"integer"}}}}`),
		"last of equal keys":     `{"model":3,"model":"m","messages":[` + user + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := validate([]byte(body)); err != nil {
				t.Fatalf("refused: %v\n%s", err, body)
			}
		})
	}
}

func TestValidateStrict(t *testing.T) {
	long := strings.Repeat("a", 41)
	checkRefusals(t, validateStrict, []refusal{
		{"what Validate refuses", conversation(), "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.", "messages", "empty_array"},
		{"unknown argument", with(`"zeta":1,"extra_body":{}`), "Unrecognized request argument supplied: extra_body", "", ""},
		{"unknown field", conversation(user, `{"role":"assistant","content":"x","reasoning_content":"r"}`), "Unknown parameter: 'messages[1].reasoning_content'.", "messages[1].reasoning_content", "unknown_parameter"},
		{"long id", strings.ReplaceAll(conversation(user, callsA, resultA), `"a"`, `"`+long+`"`), "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.", "messages[1].tool_calls[0].id", "string_above_max_length"},
	})
	if err := validateStrict([]byte(conversation(user, callsA, resultA))); err != nil {
		t.Fatalf("refused: %v", err)
	}
}

func FuzzValidate(f *testing.F) {
	for _, seed := range []string{"", hello, helloStream, conversation(user, callsAB, resultA, resultB), calling(`null`),
		strictFormat(`{"anyOf":[{"type":"object"}]}`), with(`"tools":[{"type":"custom","custom":null}],"tool_choice":{}`),
		conversation(`{"role":"user","content":[null,{"type":"text"}]}`), with(`"temperature":1e999`)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := validate(body)
		if err == nil && (!json.Valid(body) || !utf8.Valid(body)) {
			t.Fatal("accepted what is not JSON")
		}
		if err != nil && (err.Message == "" || err.Status != 400 || !json.Valid(err.Body())) {
			t.Fatalf("bad error %+v", err)
		}
		if err != nil && validateStrict(body) == nil {
			t.Fatal("strict accepts more")
		}
	})
}
