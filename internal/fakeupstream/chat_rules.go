package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const unparsable = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your " +
	"HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON. If you have " +
	"trouble figuring out how to fix this, please contact us through our help center at help.openai.com.)"

const (
	maxTools      = 128
	maxNameLength = 64
	// maxIDLength is the longest tool call ID that OpenAI accepts, in characters. Other vendors' models produce longer IDs, and their
	// agents send these back to compatible servers.
	maxIDLength = 40
)

var (
	nameRegexp   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	authorRegexp = regexp.MustCompile(`^[^\s<|\\/>]+$`)
)

// parse decodes a body. It refuses one that is not a JSON object.
func (v *verdict) parse(body []byte) object {
	top := asObject(body)
	if !utf8.Valid(body) || !json.Valid(body) {
		v.refuse("", "", unparsable)
	} else if top == nil {
		v.refuse("", "invalid_type", "Invalid type: expected an object, but got %s instead.", describe(body))
	}
	return top
}

// completion checks the shape of every field first, then the order of the messages.
func (v *verdict) completion(top object) {
	v.model(top["model"])
	messages := v.objects("messages", top["messages"])
	for i, m := range messages {
		v.message(i, asObject(m))
	}
	if given(top["tools"]) {
		v.tools(top["tools"])
	}
	v.toolChoice(top)
	if given(top["response_format"]) {
		v.format(top)
	}
	v.numbers(top)
	v.optional("stream", top["stream"], kindBool)
	v.optional("stream_options", top["stream_options"], kindObject)
	if given(top["stream_options"]) && !as[bool](top["stream"]) {
		v.refuse("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	v.order(messages)
}

func (v *verdict) model(model json.RawMessage) {
	if !given(model) || string(model) == `""` {
		v.refuse("", "", "you must provide a model parameter")
	}
	v.is("model", model, kindString)
}

// message checks the shape of one message. Whether its content may be null depends on its other fields: see order.
func (v *verdict) message(index int, m object) {
	at := fmt.Sprintf("messages[%d]", index)
	role := v.oneOf(at+".role", m["role"], "system", "assistant", "user", "function", "tool", "developer")
	switch content := m["content"]; kindOf(content) {
	case kindAbsent, kindNull, kindString:
	case kindArray:
		v.parts(at+".content", role, content)
	default:
		v.wrongType(at+".content", "one of a string or array of objects", content)
	}
	v.optional(at+".name", m["name"], kindString)
	if given(m["name"]) {
		v.matches(at+".name", asString(m["name"]), authorRegexp)
	}
	v.optional(at+".tool_call_id", m["tool_call_id"], kindString)
	if calls, ok := m["tool_calls"]; ok {
		v.calls(index, role, calls)
	}
}

// chatParts lists the part types of each role, in the order of the error message. Other roles may send only text.
var chatParts = map[string][]string{"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}

func (v *verdict) parts(at, role string, content json.RawMessage) {
	supported := chatParts[role]
	if supported == nil {
		supported = []string{"text"}
	}
	for i, part := range v.objects(at, content) {
		param, o := fmt.Sprintf("%s[%d]", at, i), asObject(part)
		name, value := v.oneOf(param+".type", o["type"], supported...), kindObject // the value is in the field of that name
		if name == "text" || name == "refusal" {
			value = kindString
		}
		v.require(param+"."+name, o[name], value)
		if name == "image_url" && kindOf(asObject(o[name])["url"]) != kindString {
			v.missing(param + ".image_url.url")
		}
	}
}

func (v *verdict) calls(index int, role string, raw json.RawMessage) {
	at := fmt.Sprintf("messages[%d].tool_calls", index)
	if role != "assistant" {
		v.unknown(at)
	}
	v.is(at, raw, kindArray)
	if len(asArray(raw)) == 0 {
		// OpenAI has two wordings for an empty list. Agents have been meeting this one.
		v.refuse("", "", "[] is too short - 'messages.%d.tool_calls'", index)
	}
	first := map[string]int{}
	for i, call := range v.objects(at, raw) {
		v.call(fmt.Sprintf("%s[%d]", at, i), asObject(call))
		id := textAt(call, "id")
		if before, seen := first[id]; seen {
			v.refuse(fmt.Sprintf("%s[%d].id", at, i), "",
				"Invalid parameter: Duplicate value for 'id' of '%s', in %s[%d] and %s[%d].", id, at, before, at, i)
		}
		first[id] = i
	}
}

// call checks a tool call. Its input must be a string but need not be valid JSON: models write broken JSON, and agents send it back.
func (v *verdict) call(at string, call object) {
	v.nonEmpty(at+".id", call["id"])
	kind := v.oneOf(at+".type", call["type"], "function", "custom")
	v.require(at+"."+kind, call[kind], kindObject)
	v.functionName(at+"."+kind+".name", asObject(call[kind])["name"])
	input := inputKeys[kind]
	v.require(at+"."+kind+"."+input, asObject(call[kind])[input], kindString)
}

// inputKeys names the field that holds the input of a call, by the type of the call.
var inputKeys = map[string]string{"function": "arguments", "custom": "input"}

func (v *verdict) functionName(param string, raw json.RawMessage) {
	name := asString(raw)
	v.nonEmpty(param, raw)
	v.maxLength(param, maxNameLength, len(name))
	v.matches(param, name, nameRegexp)
}

func (v *verdict) tools(raw json.RawMessage) {
	tools := v.objects("tools", raw)
	if len(tools) > maxTools {
		v.refuse("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with "+
			"maximum length %d, but got an array with length %d instead.", maxTools, len(tools))
	}
	for i, raw := range tools {
		at, tool := fmt.Sprintf("tools[%d]", i), asObject(raw)
		if v.oneOf(at+".type", tool["type"], "function", "custom") == "custom" {
			v.functionName(at+".custom.name", asObject(tool["custom"])["name"])
			continue
		}
		v.require(at+".function", tool["function"], kindObject)
		v.function(at+".function", asObject(tool["function"]))
	}
}

func (v *verdict) function(at string, f object) {
	v.functionName(at+".name", f["name"])
	parameters := f["parameters"]
	if !given(parameters) {
		return
	}
	fail := func(fault string) {
		v.refuse(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': %s", asString(f["name"]), fault)
	}
	v.is(at+".parameters", parameters, kindObject)
	if t := textAt(parameters, "type"); t != "object" {
		fail(fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, cmp.Or(t, "None")))
	}
	if as[bool](f["strict"]) {
		checkStrict(parameters, nil, fail)
	}
}

func (v *verdict) toolChoice(top object) {
	choice, none := top["tool_choice"], !given(top["tools"])
	for _, param := range []string{"parallel_tool_calls", "tool_choice"} {
		if none && given(top[param]) {
			v.refuse(param, "", "Invalid value for '%s': '%s' is only allowed when 'tools' are specified.", param, param)
		}
	}
	switch kindOf(choice) {
	case kindAbsent, kindNull:
	case kindString:
		v.oneOf("tool_choice", choice, "none", "auto", "required")
	case kindObject:
		v.chosen(asObject(choice), asArray(top["tools"]))
	default:
		v.wrongType("tool_choice", "one of a string or object", choice)
	}
}

func (v *verdict) chosen(choice object, tools []json.RawMessage) {
	kind := v.oneOf("tool_choice.type", choice["type"], "function", "allowed_tools", "custom")
	if kind == "allowed_tools" {
		return
	}
	name := textAt(choice[kind], "name")
	if name == "" {
		v.missing("tool_choice." + kind + ".name")
	}
	if !slices.ContainsFunc(tools, func(tool json.RawMessage) bool { return textAt(tool, kind, "name") == name }) {
		v.refuse("tool_choice", "", "Invalid value for 'tool_choice': no function named '%s' was specified in the 'tools' parameter.", name)
	}
}

func (v *verdict) format(top object) {
	v.is("response_format", top["response_format"], kindObject)
	format := asObject(top["response_format"])
	switch v.oneOf("response_format.type", format["type"], "json_object", "json_schema", "text") {
	case "json_object":
		if !slices.ContainsFunc(asArray(top["messages"]), func(m json.RawMessage) bool {
			return strings.Contains(strings.ToLower(contentText(at(m, "content"))), "json")
		}) {
			v.refuse("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
	case "json_schema":
		v.formatSchema(format["json_schema"])
	}
}

func (v *verdict) formatSchema(raw json.RawMessage) {
	const at = "response_format.json_schema"
	if !given(raw) {
		v.missing(at)
	}
	format := asObject(raw)
	v.is(at, raw, kindObject)
	v.functionName(at+".name", format["name"])
	if !as[bool](format["strict"]) {
		return
	}
	if !given(format["schema"]) {
		v.missing(at + ".schema")
	}
	checkStrict(format["schema"], nil, func(fault string) {
		v.refuse("response_format", "", "Invalid schema for response_format '%s': %s", asString(format["name"]), fault)
	})
}

// checkStrict walks a strict-mode schema, in which every object must set additionalProperties to false and require all its
// properties. It reports faults in OpenAI's words, with the path in parentheses.
func checkStrict(raw json.RawMessage, path []string, fault func(string)) {
	schema, place := asObject(raw), slices.Clip(path)
	context := "In context=(" + strings.Join(quoted(path), ", ") + "), "
	if properties, ok := schema["properties"]; ok || asString(schema["type"]) == "object" {
		if string(schema["additionalProperties"]) != "false" {
			fault(context + "'additionalProperties' is required to be supplied and to be false.")
		}
		needed := as[[]string](schema["required"])
		for _, p := range membersOf(properties) {
			if !slices.Contains(needed, p.key) {
				fault(context + "'required' is required to be supplied and to be an array including every key in properties. Missing '" + p.key + "'.")
			}
			checkStrict(p.value, append(place, "properties", p.key), fault)
		}
	}
	if items := schema["items"]; given(items) {
		checkStrict(items, append(place, "items"), fault)
		return
	}
	for i, branch := range asArray(schema["anyOf"]) {
		checkStrict(branch, append(place, "anyOf", strconv.Itoa(i)), fault)
	}
}

func (v *verdict) numbers(top object) {
	for _, b := range []struct {
		param     string
		low, high float64
		number    string
	}{
		{"temperature", 0, 2, "decimal"},
		{"top_p", 0, 1, "decimal"},
		{"presence_penalty", -2, 2, "decimal"},
		{"frequency_penalty", -2, 2, "decimal"},
		{"n", 1, 128, "integer"},
		{"max_tokens", 1, math.Inf(1), "integer"},
		{"max_completion_tokens", 1, math.Inf(1), "integer"},
	} {
		raw := top[b.param]
		n, err := strconv.ParseFloat(string(raw), 64)
		switch {
		case !given(raw):
		case b.number == "integer" && !isInteger(raw):
			v.wrongType(b.param, "an integer", raw)
		case err != nil:
			v.wrongType(b.param, "a decimal", raw)
		case n < b.low:
			v.refuse(b.param, b.number+"_below_min_value", "Invalid '%s': %s below minimum value. Expected a value >= %v, but got %s instead.",
				b.param, b.number, b.low, raw)
		case n > b.high:
			v.refuse(b.param, b.number+"_above_max_value", "Invalid '%s': %s above maximum value. Expected a value <= %v, but got %s instead.",
				b.param, b.number, b.high, raw)
		}
	}
	if given(top["max_tokens"]) && given(top["max_completion_tokens"]) {
		v.refuse("max_tokens", "invalid_parameter_combination",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
}

// order checks what a message may be in view of its neighbours. An assistant message with tool calls and the results that follow
// it are one unit, so an ID may be used again in a later unit. The shapes have been checked.
func (v *verdict) order(messages []json.RawMessage) {
	var open []string           // IDs of the calls of the newest unit, in order
	var answered map[string]int // index of the message that answered a call, by ID
	end := func(param string) {
		missing := slices.DeleteFunc(open, func(id string) bool { _, done := answered[id]; return done })
		if len(missing) > 0 {
			v.refuse(param, "", "An assistant message with 'tool_calls' must be followed by tool messages responding to "+
				"each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(missing, ", "))
		}
	}
	for i, raw := range messages {
		m := asObject(raw)
		if asString(m["role"]) == "tool" {
			v.result(i, m, open, answered)
		} else {
			end(fmt.Sprintf("messages.[%d].role", i))
			open, answered = nil, map[string]int{}
			for _, call := range asArray(m["tool_calls"]) {
				open = append(open, textAt(call, "id"))
			}
		}
		v.content(i, m)
	}
	end("messages")
}

// result checks the tool message at index i. open has the IDs of the calls before it.
func (v *verdict) result(i int, m object, open []string, answered map[string]int) {
	at, id := fmt.Sprintf("messages.[%d]", i), asString(m["tool_call_id"])
	before, again := answered[id]
	switch {
	case !given(m["tool_call_id"]):
		v.refuse(at+".tool_call_id", "", "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
	case len(open) == 0:
		v.refuse(at+".role", "",
			"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
	case !slices.Contains(open, id):
		v.refuse(at+".tool_call_id", "", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
	case again:
		v.refuse(at+".tool_call_id", "",
			"Invalid parameter: Duplicate value for 'tool_call_id' of '%s', in messages[%d] and messages[%d].", id, before, i)
	default:
		answered[id] = i
	}
}

// content refuses a message without content, unless it is an assistant message with a field that stands in for content.
func (v *verdict) content(i int, m object) {
	role := asString(m["role"])
	if role == "function" && !given(m["name"]) {
		v.refuse(fmt.Sprintf("messages.[%d].name", i), "", "Missing parameter 'name': messages with role 'function' must have a 'name'.")
	}
	instead := []string{"tool_calls", "function_call", "refusal", "audio"}
	if !given(m["content"]) && (role != "assistant" || !slices.ContainsFunc(instead, func(key string) bool { return given(m[key]) })) {
		v.refuse(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
	}
}

// turns enforces the alternation of users and assistants that some chat templates require, and Mistral's rule that a user must not
// speak right after a tool result.
func (v *verdict) turns(messages []json.RawMessage) {
	last := "system"
	for _, m := range messages {
		role := textAt(m, "role")
		switch {
		case role == "system" || role == "developer":
			continue
		case last == "tool" && role == "user":
			v.refuse("", "3230", "Unexpected role 'user' after role 'tool'")
		case role == last && role != "tool", last == "system" && role != "user":
			v.refuse("", "", "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...")
		}
		last = role
	}
}

var knownArguments = []string{"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
	"max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n", "parallel_tool_calls",
	"prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort",
	"response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
	"temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options"}

var knownMessageFields = []string{"annotations", "audio", "content", "function_call", "name", "refusal", "role", "tool_call_id", "tool_calls"}

// known refuses the fields that OpenAI does not know and the tool call IDs that are too long for it.
func (v *verdict) known(top object) {
	if name := firstUnknown(top, knownArguments); name != "" {
		v.refuse("", "", "Unrecognized request argument supplied: %s", name)
	}
	for i, m := range asArray(top["messages"]) {
		if name := firstUnknown(asObject(m), knownMessageFields); name != "" {
			v.unknown(fmt.Sprintf("messages[%d].%s", i, name))
		}
		v.maxLength(fmt.Sprintf("messages[%d].tool_call_id", i), maxIDLength, utf8.RuneCountInString(textAt(m, "tool_call_id")))
		for j, call := range asArray(at(m, "tool_calls")) {
			v.maxLength(fmt.Sprintf("messages[%d].tool_calls[%d].id", i, j), maxIDLength, utf8.RuneCountInString(textAt(call, "id")))
		}
	}
}

// firstUnknown returns the alphabetically first key that is not known, or "".
func firstUnknown(o object, known []string) string {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, key) {
			return key
		}
	}
	return ""
}
