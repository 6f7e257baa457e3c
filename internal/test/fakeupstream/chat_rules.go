package fakeupstream

import (
	"cmp"
	"fmt"
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

// object refuses a body that is not a JSON object.
func (v *verdict) object(top value) {
	v.refuseIf(top.kind == kindAbsent || !utf8.Valid(top.raw), "", "", unparsable)
	v.refuseIf(top.kind != kindObject, "", "invalid_type", "Invalid type: expected an object, but got %s instead.", describe(top))
}

// completion checks the shape of every field first, then the order of the messages.
func (v *verdict) completion(top value) {
	v.object(top)
	v.model(top.at("model"))
	messages := v.objects("messages", top.at("messages"))
	for i, m := range messages {
		v.message(i, m)
	}
	if top.at("tools").given() {
		v.tools(top.at("tools"))
	}
	v.toolChoice(top)
	if top.at("response_format").given() {
		v.format(top)
	}
	v.numbers(top)
	v.optional("stream", top.at("stream"), kindBool)
	v.optional("stream_options", top.at("stream_options"), kindObject)
	v.refuseIf(top.at("stream_options").given() && !top.at("stream").isTrue(), "stream_options", "",
		"The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	v.order(messages)
}

func (v *verdict) model(model value) {
	v.refuseIf(!model.given() || string(model.raw) == `""`, "", "", "you must provide a model parameter")
	v.is("model", model, kindString)
}

// message checks the shape of one message. Whether its content may be null depends on its other fields: see order.
func (v *verdict) message(index int, m value) {
	at := fmt.Sprintf("messages[%d]", index)
	role := v.oneOf(at+".role", m.at("role"), "system", "assistant", "user", "function", "tool", "developer")
	switch content := m.at("content"); content.kind {
	case kindAbsent, kindNull, kindString:
	case kindArray:
		v.parts(at+".content", role, content)
	default:
		v.wrongType(at+".content", "one of a string or array of objects", content)
	}
	v.optional(at+".name", m.at("name"), kindString)
	if m.at("name").given() {
		v.matches(at+".name", m.at("name").text, authorRegexp)
	}
	v.optional(at+".tool_call_id", m.at("tool_call_id"), kindString)
	if calls := m.at("tool_calls"); calls.kind != kindAbsent {
		v.calls(index, role, calls)
	}
}

// chatParts lists the part types of each role, in the order of the error message.
var chatParts = map[string][]string{
	"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"},
	"system": {"text"}, "developer": {"text"}, "tool": {"text"}, "function": {"text"},
}

func (v *verdict) parts(at, role string, content value) {
	for i, part := range v.objects(at, content) {
		param := fmt.Sprintf("%s[%d]", at, i)
		name, want := v.oneOf(param+".type", part.at("type"), chatParts[role]...), kindObject // the value is in the field of that name
		if name == "text" || name == "refusal" {
			want = kindString
		}
		v.require(param+"."+name, part.at(name), want)
		v.missingIf(name == "image_url" && part.at(name, "url").kind != kindString, param+".image_url.url")
	}
}

func (v *verdict) calls(index int, role string, raw value) {
	at := fmt.Sprintf("messages[%d].tool_calls", index)
	if role != "assistant" {
		v.unknown(at)
	}
	v.is(at, raw, kindArray)
	// OpenAI has two wordings for an empty list. Agents have been meeting this one.
	v.refuseIf(len(raw.elements) == 0, "", "", "[] is too short - 'messages.%d.tool_calls'", index)
	first := map[string]int{}
	for i, call := range v.objects(at, raw) {
		v.call(fmt.Sprintf("%s[%d]", at, i), call)
		id := call.at("id").text
		before, seen := first[id]
		v.refuseIf(seen, fmt.Sprintf("%s[%d].id", at, i), "",
			"Invalid parameter: Duplicate value for 'id' of '%s', in %s[%d] and %s[%d].", id, at, before, at, i)
		first[id] = i
	}
}

// call checks a tool call. Its input must be a string but need not be valid JSON: models write broken JSON, and agents send it back.
func (v *verdict) call(at string, call value) {
	v.nonEmpty(at+".id", call.at("id"))
	kind := v.oneOf(at+".type", call.at("type"), "function", "custom")
	v.require(at+"."+kind, call.at(kind), kindObject)
	v.functionName(at+"."+kind+".name", call.at(kind, "name"))
	input := inputKeys[kind]
	v.require(at+"."+kind+"."+input, call.at(kind, input), kindString)
}

// inputKeys names the field that holds the input of a call, by the type of the call.
var inputKeys = map[string]string{"function": "arguments", "custom": "input"}

func (v *verdict) functionName(param string, raw value) {
	name := raw.text
	v.nonEmpty(param, raw)
	v.maxLength(param, maxNameLength, len(name))
	v.matches(param, name, nameRegexp)
}

func (v *verdict) tools(raw value) {
	tools := v.objects("tools", raw)
	v.refuseIf(len(tools) > maxTools, "tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with "+
		"maximum length %d, but got an array with length %d instead.", maxTools, len(tools))
	for i, tool := range tools {
		at := fmt.Sprintf("tools[%d]", i)
		if v.oneOf(at+".type", tool.at("type"), "function", "custom") == "custom" {
			v.functionName(at+".custom.name", tool.at("custom", "name"))
			continue
		}
		v.require(at+".function", tool.at("function"), kindObject)
		v.function(at+".function", tool.at("function"))
	}
}

func (v *verdict) function(at string, f value) {
	v.functionName(at+".name", f.at("name"))
	parameters := f.at("parameters")
	if !parameters.given() {
		return
	}
	fail := func(fault string) {
		v.refuse(at+".parameters", "invalid_function_parameters", "Invalid schema for function '%s': %s", f.at("name").text, fault)
	}
	v.is(at+".parameters", parameters, kindObject)
	if t := parameters.at("type").text; t != "object" {
		fail(fmt.Sprintf(`schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, cmp.Or(t, "None")))
	}
	if f.at("strict").isTrue() {
		checkStrict(parameters, nil, fail)
	}
}

func (v *verdict) toolChoice(top value) {
	choice, none := top.at("tool_choice"), !top.at("tools").given()
	for _, param := range []string{"parallel_tool_calls", "tool_choice"} {
		v.refuseIf(none && top.at(param).given(), param, "",
			"Invalid value for '%s': '%s' is only allowed when 'tools' are specified.", param, param)
	}
	switch choice.kind {
	case kindAbsent, kindNull:
	case kindString:
		v.oneOf("tool_choice", choice, "none", "auto", "required")
	case kindObject:
		v.chosen(choice, top.at("tools").elements)
	default:
		v.wrongType("tool_choice", "one of a string or object", choice)
	}
}

func (v *verdict) chosen(choice value, tools []value) {
	kind := v.oneOf("tool_choice.type", choice.at("type"), "function", "allowed_tools", "custom")
	if kind == "allowed_tools" {
		return
	}
	name := choice.at(kind, "name").text
	v.missingIf(name == "", "tool_choice."+kind+".name")
	known := slices.ContainsFunc(tools, func(tool value) bool { return tool.at(kind, "name").text == name })
	v.refuseIf(!known, "tool_choice", "",
		"Invalid value for 'tool_choice': no function named '%s' was specified in the 'tools' parameter.", name)
}

func (v *verdict) format(top value) {
	v.is("response_format", top.at("response_format"), kindObject)
	format := top.at("response_format")
	switch v.oneOf("response_format.type", format.at("type"), "json_object", "json_schema", "text") {
	case "json_object":
		asks := func(m value) bool { return strings.Contains(strings.ToLower(contentText(m)), "json") }
		v.refuseIf(!slices.ContainsFunc(top.at("messages").elements, asks), "messages", "",
			"'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
	case "json_schema":
		v.formatSchema(format.at("json_schema"))
	}
}

func (v *verdict) formatSchema(format value) {
	const at = "response_format.json_schema"
	v.missingIf(!format.given(), at)
	v.is(at, format, kindObject)
	v.functionName(at+".name", format.at("name"))
	if !format.at("strict").isTrue() {
		return
	}
	v.missingIf(!format.at("schema").given(), at+".schema")
	checkStrict(format.at("schema"), nil, func(fault string) {
		v.refuse("response_format", "", "Invalid schema for response_format '%s': %s", format.at("name").text, fault)
	})
}

// checkStrict walks a strict-mode schema, in which every object must set additionalProperties to false and require all its
// properties. It reports faults in OpenAI's words, with the path, a list of quoted names, in parentheses.
func checkStrict(schema value, path []string, fault func(string)) {
	place := slices.Clip(path)
	context := "In context=(" + strings.Join(path, ", ") + "), "
	if properties := schema.at("properties"); properties.kind != kindAbsent || schema.at("type").text == "object" {
		if string(schema.at("additionalProperties").raw) != "false" {
			fault(context + "'additionalProperties' is required to be supplied and to be false.")
		}
		needed := schema.at("required").elements
		for _, p := range properties.members {
			if !slices.ContainsFunc(needed, func(key value) bool { return key.text == p.key }) {
				fault(context + "'required' is required to be supplied and to be an array including every key in properties. Missing '" + p.key + "'.")
			}
			checkStrict(p, append(place, "'properties'", "'"+p.key+"'"), fault)
		}
	}
	if items := schema.at("items"); items.given() {
		checkStrict(items, append(place, "'items'"), fault)
		return
	}
	for i, branch := range schema.at("anyOf").elements {
		checkStrict(branch, append(place, "'anyOf'", fmt.Sprintf("'%d'", i)), fault)
	}
}

func (v *verdict) numbers(top value) {
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
		raw := top.at(b.param)
		n, err := strconv.ParseFloat(string(raw.raw), 64)
		switch {
		case !raw.given():
		case b.number == "integer" && !raw.isInteger():
			v.wrongType(b.param, "an integer", raw)
		case err != nil:
			v.wrongType(b.param, "a decimal", raw)
		case n < b.low:
			v.refuse(b.param, b.number+"_below_min_value", "Invalid '%s': %s below minimum value. Expected a value >= %v, but got %s instead.",
				b.param, b.number, b.low, raw.raw)
		case n > b.high:
			v.refuse(b.param, b.number+"_above_max_value", "Invalid '%s': %s above maximum value. Expected a value <= %v, but got %s instead.",
				b.param, b.number, b.high, raw.raw)
		}
	}
	v.refuseIf(top.at("max_tokens").given() && top.at("max_completion_tokens").given(), "max_tokens", "invalid_parameter_combination",
		"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
}

// order checks what a message may be in view of its neighbours. An assistant message with tool calls and the results that follow
// it are one unit, so an ID may be used again in a later unit. The shapes have been checked.
func (v *verdict) order(messages []value) {
	var open []string            // IDs of the calls of the newest unit, in order
	answered := map[string]int{} // index of the message that answered a call, by ID
	end := func(param string) {
		missing := slices.DeleteFunc(open, func(id string) bool { _, done := answered[id]; return done })
		v.refuseIf(len(missing) > 0, param, "", "An assistant message with 'tool_calls' must be followed by tool messages responding to "+
			"each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(missing, ", "))
	}
	for i, m := range messages {
		if m.at("role").text == "tool" {
			v.result(i, m, open, answered)
		} else {
			end(fmt.Sprintf("messages.[%d].role", i))
			open, answered = nil, map[string]int{}
			for _, call := range m.at("tool_calls").elements {
				open = append(open, call.at("id").text)
			}
		}
		v.content(i, m)
	}
	end("messages")
}

// result checks the tool message at index i. open has the IDs of the calls before it.
func (v *verdict) result(i int, m value, open []string, answered map[string]int) {
	at, id := fmt.Sprintf("messages.[%d]", i), m.at("tool_call_id").text
	before, again := answered[id]
	v.refuseIf(!m.at("tool_call_id").given(), at+".tool_call_id", "",
		"Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
	v.refuseIf(len(open) == 0, at+".role", "",
		"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
	v.refuseIf(!slices.Contains(open, id), at+".tool_call_id", "",
		"Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
	v.refuseIf(again, at+".tool_call_id", "",
		"Invalid parameter: Duplicate value for 'tool_call_id' of '%s', in messages[%d] and messages[%d].", id, before, i)
	answered[id] = i
}

// content refuses a message without content, unless it is an assistant message with a field that stands in for content.
func (v *verdict) content(i int, m value) {
	role := m.at("role").text
	v.refuseIf(role == "function" && !m.at("name").given(), fmt.Sprintf("messages.[%d].name", i), "",
		"Missing parameter 'name': messages with role 'function' must have a 'name'.")
	given := func(key string) bool { return m.at(key).given() }
	instead := role == "assistant" && slices.ContainsFunc([]string{"tool_calls", "function_call", "refusal", "audio"}, given)
	v.refuseIf(!given("content") && !instead, fmt.Sprintf("messages.[%d].content", i), "",
		"Invalid value for 'content': expected a string, got null.")
}

// turns enforces the alternation of users and assistants that some chat templates require, and Mistral's rule that a user must not
// speak right after a tool result.
func (v *verdict) turns(messages []value) {
	last := "system"
	for _, m := range messages {
		role := m.at("role").text
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
func (v *verdict) known(top value) {
	name := firstUnknown(top, knownArguments)
	v.refuseIf(name != "", "", "", "Unrecognized request argument supplied: %s", name)
	for i, m := range top.at("messages").elements {
		if name := firstUnknown(m, knownMessageFields); name != "" {
			v.unknown(fmt.Sprintf("messages[%d].%s", i, name))
		}
		v.maxLength(fmt.Sprintf("messages[%d].tool_call_id", i), maxIDLength, utf8.RuneCountInString(m.at("tool_call_id").text))
		for j, call := range m.at("tool_calls").elements {
			v.maxLength(fmt.Sprintf("messages[%d].tool_calls[%d].id", i, j), maxIDLength, utf8.RuneCountInString(call.at("id").text))
		}
	}
}

// firstUnknown returns the alphabetically first key that is not known, or "".
func firstUnknown(object value, known []string) string {
	var unknown []string
	for _, m := range object.members {
		if !slices.Contains(known, m.key) {
			unknown = append(unknown, m.key)
		}
	}
	if len(unknown) == 0 {
		return ""
	}
	return slices.Min(unknown)
}
