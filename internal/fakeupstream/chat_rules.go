package fakeupstream

import (
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
	// maxIDLength is the longest tool call id that OpenAI accepts, in characters. Other makers' models give longer ones, and
	// their agents send them back to compatible servers.
	maxIDLength = 40
)

var (
	nameRegexp   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	authorRegexp = regexp.MustCompile(`^[^\s<|\\/>]+$`)
)

// Validate judges the body of a Chat Completions request by what can be seen from it alone, and returns the error that
// OpenAI answers, or nil. First the shape of every field, then the order of the messages: each assistant message with
// tool calls and its results are one unit, so an id may come again in a later unit.
//
// What OpenAI refuses but compatible servers allow passes: see ValidateStrict. Validate is pure and safe for concurrent
// use.
func Validate(body []byte) *APIError {
	var v verdict
	v.completion(v.parse(body))
	return v.err
}

// ValidateStrict is Validate that also refuses unknown fields, at the top and in the messages, and tool call ids of more
// than 40 characters, as OpenAI itself does.
func ValidateStrict(body []byte) *APIError {
	var v verdict
	top := v.parse(body)
	v.completion(top)
	v.known(top)
	return v.err
}

func (v *verdict) parse(body []byte) object {
	top := asObject(body)
	if !utf8.Valid(body) || !json.Valid(body) {
		v.refuse("", "", unparsable)
	} else if top == nil {
		v.refuse("", "invalid_type", "Invalid type: expected an object, but got %s instead.", describe(body))
	}
	return top
}

func (v *verdict) completion(top object) {
	v.model(top["model"])
	v.has("messages", top["messages"], kindArray)
	all := asArray(top["messages"])
	v.filled("messages", all)
	messages := make([]object, len(all))
	for i, raw := range all {
		messages[i] = asObject(raw)
		v.is(fmt.Sprintf("messages[%d]", i), raw, kindObject)
		v.message(i, messages[i])
	}
	v.tools(top["tools"])
	v.toolChoice(top)
	v.format(top)
	v.numbers(top)
	v.stream(top)
	v.order(messages)
}

func (v *verdict) model(model json.RawMessage) {
	if !given(model) || string(model) == `""` {
		v.refuse("", "", "you must provide a model parameter")
	}
	v.is("model", model, kindString)
}

// message judges the shape of a message by itself. Whether its content may be null depends on the other fields: see order.
func (v *verdict) message(index int, m object) {
	at, role := fmt.Sprintf("messages[%d]", index), asString(m["role"])
	v.has(at+".role", m["role"], kindString)
	v.among(at+".role", role, "system", "assistant", "user", "function", "tool", "developer")
	switch content := m["content"]; kindOf(content) {
	case kindAbsent, kindNull, kindString:
	case kindArray:
		v.parts(at+".content", role, asArray(content))
	default:
		v.wrongType(at+".content", "one of a string or array of objects", content)
	}
	v.mayBe(at+".name", m["name"], kindString)
	if given(m["name"]) {
		v.matches(at+".name", asString(m["name"]), authorRegexp)
	}
	v.mayBe(at+".tool_call_id", m["tool_call_id"], kindString)
	if calls, there := m["tool_calls"]; there {
		v.calls(index, role, calls)
	}
}

// partNames lists the part types that a role may send, in the order of the error message; others may send texts.
var partNames = map[string][]string{"user": {"text", "image_url", "input_audio", "file"}, "assistant": {"text", "refusal"}}

func (v *verdict) parts(at, role string, parts []json.RawMessage) {
	v.filled(at, parts)
	allowed, some := partNames[role]
	if !some {
		allowed = []string{"text"}
	}
	for i, raw := range parts {
		where, part := fmt.Sprintf("%s[%d]", at, i), asObject(raw)
		v.is(where, raw, kindObject)
		if kindOf(part["type"]) == kindAbsent {
			v.missing(where + ".type")
		}
		name, value := asString(part["type"]), kindObject // the field that holds the value has the same name
		v.among(where+".type", name, allowed...)
		if name == "text" || name == "refusal" {
			value = kindString
		}
		v.has(where+"."+name, part[name], value)
		if name == "image_url" && kindOf(asObject(part[name])["url"]) != kindString {
			v.missing(where + ".image_url.url")
		}
	}
}

func (v *verdict) matches(param, text string, pattern *regexp.Regexp) {
	if !pattern.MatchString(text) {
		v.refuse(param, "invalid_value",
			"Invalid '%s': string does not match pattern. Expected a string that matches the pattern '%s'.", param, pattern)
	}
}

func (v *verdict) calls(index int, role string, raw json.RawMessage) {
	at := fmt.Sprintf("messages[%d].tool_calls", index)
	if role != "assistant" {
		v.unknown(at)
	}
	v.is(at, raw, kindArray)
	calls := asArray(raw)
	if len(calls) == 0 {
		// OpenAI has two wordings for it; this is the one agents have been meeting.
		v.refuse("", "", "[] is too short - 'messages.%d.tool_calls'", index)
	}
	for i, call := range calls {
		v.call(fmt.Sprintf("%s[%d]", at, i), call)
	}
	first := map[string]int{}
	for i, call := range calls {
		id := textAt(call, "id")
		if before, seen := first[id]; seen {
			v.refuse(fmt.Sprintf("%s[%d].id", at, i), "",
				"Invalid parameter: Duplicate value for 'id' of '%s', in %s[%d] and %s[%d].", id, at, before, at, i)
		}
		first[id] = i
	}
}

// call judges a call. Its input must be a string, but not valid JSON: models write broken JSON, and agents send it back.
func (v *verdict) call(at string, raw json.RawMessage) {
	call := asObject(raw)
	v.is(at, raw, kindObject)
	v.says(at+".id", call["id"])
	kind := v.toolKind(at, call)
	input := map[string]string{"function": "arguments", "custom": "input"}[kind]
	tool := asObject(call[kind])
	v.has(at+"."+kind, call[kind], kindObject)
	v.functionName(at+"."+kind+".name", tool["name"])
	v.has(at+"."+kind+"."+input, tool[input], kindString)
}

// toolKind is the type of a tool, or of a call of one.
func (v *verdict) toolKind(at string, o object) string {
	if kindOf(o["type"]) == kindAbsent {
		v.missing(at + ".type")
	}
	kind := asString(o["type"])
	v.among(at+".type", kind, "function", "custom")
	return kind
}

func (v *verdict) functionName(param string, raw json.RawMessage) {
	name := asString(raw)
	v.says(param, raw)
	v.short(param, maxNameLength, len(name))
	v.matches(param, name, nameRegexp)
}

func (v *verdict) tools(tools json.RawMessage) {
	if !given(tools) {
		return
	}
	v.is("tools", tools, kindArray)
	all := asArray(tools)
	v.filled("tools", all)
	if len(all) > maxTools {
		v.refuse("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with "+
			"maximum length %d, but got an array with length %d instead.", maxTools, len(all))
	}
	for i, raw := range all {
		at, tool := fmt.Sprintf("tools[%d]", i), asObject(raw)
		v.is(at, raw, kindObject)
		if v.toolKind(at, tool) == "function" {
			v.has(at+".function", tool["function"], kindObject)
			v.function(at+".function", asObject(tool["function"]))
		} else {
			v.functionName(at+".custom.name", asObject(tool["custom"])["name"])
		}
	}
}

func (v *verdict) function(at string, f object) {
	v.functionName(at+".name", f["name"])
	if !given(f["parameters"]) {
		return
	}
	param, name := at+".parameters", asString(f["name"])
	v.is(param, f["parameters"], kindObject)
	if t := textAt(f["parameters"], "type"); t != "object" {
		if t == "" {
			t = "None"
		}
		v.refuse(param, "invalid_function_parameters",
			"Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", name, t)
	}
	if as[bool](f["strict"]) {
		checkStrict(f["parameters"], nil, func(fault string) {
			v.refuse(param, "invalid_function_parameters", "Invalid schema for function '%s': %s", name, fault)
		})
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
		v.among("tool_choice", asString(choice), "none", "auto", "required")
	case kindObject:
		v.chosen(asObject(choice), asArray(top["tools"]))
	default:
		v.wrongType("tool_choice", "one of a string or object", choice)
	}
}

func (v *verdict) chosen(choice object, tools []json.RawMessage) {
	kind := asString(choice["type"])
	v.among("tool_choice.type", kind, "function", "allowed_tools", "custom")
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
	raw := top["response_format"]
	if !given(raw) {
		return
	}
	v.is("response_format", raw, kindObject)
	format := asObject(raw)
	if kindOf(format["type"]) == kindAbsent {
		v.missing("response_format.type")
	}
	switch name := asString(format["type"]); name {
	case "json_object":
		v.mentionsJSON(top)
	case "json_schema":
		v.formatSchema(format["json_schema"])
	default:
		v.among("response_format.type", name, "json_object", "json_schema", "text")
	}
}

func (v *verdict) mentionsJSON(top object) {
	if !slices.ContainsFunc(asArray(top["messages"]), func(m json.RawMessage) bool {
		return strings.Contains(strings.ToLower(contentText(at(m, "content"))), "json")
	}) {
		v.refuse("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
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

// checkStrict walks a schema of strict mode, in which every object must close itself and require all its properties. It
// tells what is wrong in OpenAI's words, with the place as the Python tuple that OpenAI prints.
func checkStrict(raw json.RawMessage, path []string, fault func(string)) {
	schema, place := asObject(raw), slices.Clip(path)
	if properties, ok := schema["properties"]; ok || asString(schema["type"]) == "object" {
		if string(schema["additionalProperties"]) != "false" {
			fault(fmt.Sprintf("In context=%s, 'additionalProperties' is required to be supplied and to be false.", tuple(path)))
		}
		needed := as[[]string](schema["required"])
		for _, p := range membersOf(properties) {
			if !slices.Contains(needed, p.key) {
				fault(fmt.Sprintf("In context=%s, 'required' is required to be supplied and to be an array including every "+
					"key in properties. Missing '%s'.", tuple(path), p.key))
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

func tuple(path []string) string {
	if len(path) == 1 {
		return "('" + path[0] + "',)"
	}
	return "(" + strings.Join(quoted(path), ", ") + ")"
}

func (v *verdict) numbers(top object) {
	endless := math.Inf(1)
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
		{"max_tokens", 1, endless, "integer"},
		{"max_completion_tokens", 1, endless, "integer"},
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

func (v *verdict) stream(top object) {
	v.mayBe("stream", top["stream"], kindBool)
	v.mayBe("stream_options", top["stream_options"], kindObject)
	if given(top["stream_options"]) && !as[bool](top["stream"]) {
		v.refuse("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
}

// order judges what a message may be in view of its neighbours. An assistant message with tool calls and the results that
// follow it are a unit. The shapes are known to be right.
func (v *verdict) order(messages []object) {
	var open []string           // ids of the calls of the newest unit, in order
	var answered map[string]int // id -> index of the message that answered it
	end := func(param string) {
		missing := slices.DeleteFunc(open, func(id string) bool { _, done := answered[id]; return done })
		if len(missing) > 0 {
			v.refuse(param, "", "An assistant message with 'tool_calls' must be followed by tool messages responding to "+
				"each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(missing, ", "))
		}
	}
	for i, m := range messages {
		if asString(m["role"]) == "tool" {
			v.result(i, m, open, answered)
		} else {
			end(fmt.Sprintf("messages.[%d].role", i))
			open, answered = nil, map[string]int{}
			for _, call := range asArray(m["tool_calls"]) {
				open = append(open, textAt(call, "id"))
			}
		}
		v.substance(i, m)
	}
	end("messages")
}

// result judges the tool message at index i, behind calls with the ids that are open.
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

// substance refuses a message that says nothing: null or no content, and nothing that stands in for it.
func (v *verdict) substance(i int, m object) {
	role := asString(m["role"])
	if role == "function" && !given(m["name"]) {
		v.refuse(fmt.Sprintf("messages.[%d].name", i), "", "Missing parameter 'name': messages with role 'function' must have a 'name'.")
	}
	says := given(m["content"])
	for _, instead := range []string{"tool_calls", "function_call", "refusal", "audio"} {
		says = says || role == "assistant" && given(m[instead])
	}
	if !says {
		v.refuse(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
	}
}

// turns refuses what templates do that have users and assistants take turns, and Mistral's rule for results.
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

// known refuses fields that OpenAI does not know, and ids that are too long for it.
func (v *verdict) known(top object) {
	if name := firstUnknown(top, knownArguments); name != "" {
		v.refuse("", "", "Unrecognized request argument supplied: %s", name)
	}
	messages := asArray(top["messages"])
	for i, raw := range messages {
		if name := firstUnknown(asObject(raw), knownMessageFields); name != "" {
			v.unknown(fmt.Sprintf("messages[%d].%s", i, name))
		}
	}
	for i, m := range messages {
		v.short(fmt.Sprintf("messages[%d].tool_call_id", i), maxIDLength, utf8.RuneCountInString(textAt(m, "tool_call_id")))
		for j, call := range asArray(at(m, "tool_calls")) {
			v.short(fmt.Sprintf("messages[%d].tool_calls[%d].id", i, j), maxIDLength, utf8.RuneCountInString(textAt(call, "id")))
		}
	}
}

// firstUnknown returns the first key, in the order of the alphabet, that is not known.
func firstUnknown(o object, known []string) string {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, key) {
			return key
		}
	}
	return ""
}
