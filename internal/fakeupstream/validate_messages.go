package fakeupstream

import (
	"encoding/json"
	"fmt"
	"regexp"
)

const (
	maxNameLength   = 64
	namePattern     = `^[a-zA-Z0-9_-]+$`
	authorPattern   = `^[^\s<|\\/>]+$`
	messageRequired = "an array of objects"
)

var (
	nameRegexp   = regexp.MustCompile(namePattern)
	authorRegexp = regexp.MustCompile(authorPattern)
)

// parseMessages returns the messages if each of them, by itself, has the right shape.
func parseMessages(top object) ([]object, *APIError) {
	messages, there := top["messages"]
	if !there {
		return nil, missingParameter("messages")
	}
	if kindOf(messages) != kindArray {
		return nil, wrongType("messages", messageRequired, messages)
	}
	all := asArray(messages)
	if len(all) == 0 {
		return nil, emptyArray("messages")
	}
	parsed := make([]object, len(all))
	for i, raw := range all {
		if kindOf(raw) != kindObject {
			return nil, wrongType(fmt.Sprintf("messages[%d]", i), "an object", raw)
		}
		parsed[i] = asObject(raw)
		if err := checkMessageShape(i, parsed[i]); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

func checkMessageShape(index int, m object) *APIError {
	at := fmt.Sprintf("messages[%d]", index)
	if err := checkRole(at, m["role"]); err != nil {
		return err
	}
	role := asString(m["role"])
	if err := checkContent(at, role, m["content"]); err != nil {
		return err
	}
	if err := checkAuthor(at+".name", m["name"]); err != nil {
		return err
	}
	if id := m["tool_call_id"]; given(id) && kindOf(id) != kindString {
		return wrongType(at+".tool_call_id", "a string", id)
	}
	return checkCalls(index, role, m)
}

func checkRole(at string, role json.RawMessage) *APIError {
	if kindOf(role) == kindAbsent {
		return missingParameter(at + ".role")
	}
	if kindOf(role) != kindString {
		return wrongType(at+".role", "a string", role)
	}
	switch r := asString(role); r {
	case "system", "developer", "user", "assistant", "tool", "function":
		return nil
	default:
		return wrongValue(at+".role", r, "system", "assistant", "user", "function", "tool", "developer")
	}
}

func checkContent(at, role string, content json.RawMessage) *APIError {
	switch kindOf(content) {
	case kindAbsent, kindNull, kindString: // whether null is allowed depends on the other fields: see checkMessageOrder
		return nil
	case kindArray:
		return checkParts(at, role, asArray(content))
	default:
		return wrongType(at+".content", "one of a string or array of objects", content)
	}
}

func checkParts(at, role string, parts []json.RawMessage) *APIError {
	if len(parts) == 0 {
		return emptyArray(at + ".content")
	}
	for i, part := range parts {
		where := fmt.Sprintf("%s.content[%d]", at, i)
		if kindOf(part) != kindObject {
			return wrongType(where, "an object", part)
		}
		if err := checkPart(where, role, asObject(part)); err != nil {
			return err
		}
	}
	return nil
}

func checkPart(where, role string, part object) *APIError {
	if kindOf(part["type"]) == kindAbsent {
		return missingParameter(where + ".type")
	}
	name := asString(part["type"])
	allowed := partTypes(role)
	field, ok := allowed[name]
	if !ok {
		return wrongValue(where+".type", name, partNames(role)...)
	}
	if kindOf(part[field]) == kindAbsent {
		return missingParameter(where + "." + field)
	}
	if want := partKind(field); kindOf(part[field]) != want {
		return wrongType(where+"."+field, map[kind]string{kindString: "a string", kindObject: "an object"}[want], part[field])
	}
	if name == "image_url" && kindOf(asObject(part[field])["url"]) != kindString {
		return missingParameter(where + ".image_url.url")
	}
	return nil
}

func partKind(field string) kind {
	if field == "text" || field == "refusal" {
		return kindString
	}
	return kindObject
}

// partNames lists the part types that a role may send, in the order of the error message.
func partNames(role string) []string {
	switch role {
	case "user":
		return []string{"text", "image_url", "input_audio", "file"}
	case "assistant":
		return []string{"text", "refusal"}
	default:
		return []string{"text"}
	}
}

// partTypes maps each allowed part type to the field that holds its value: they have the same name.
func partTypes(role string) map[string]string {
	types := map[string]string{}
	for _, name := range partNames(role) {
		types[name] = name
	}
	return types
}

func checkAuthor(param string, name json.RawMessage) *APIError {
	if !given(name) {
		return nil
	}
	if kindOf(name) != kindString {
		return wrongType(param, "a string", name)
	}
	if !authorRegexp.MatchString(asString(name)) {
		return badPattern(param, authorPattern)
	}
	return nil
}

func checkCalls(index int, role string, m object) *APIError {
	at := fmt.Sprintf("messages[%d]", index)
	calls, there := m["tool_calls"]
	if !there {
		return nil
	}
	if role != "assistant" {
		return unknownParameter(at + ".tool_calls")
	}
	if kindOf(calls) != kindArray {
		return wrongType(at+".tool_calls", messageRequired, calls)
	}
	all := asArray(calls)
	if len(all) == 0 {
		// OpenAI has two wordings for it; this is the one agents have been meeting.
		return refuse("", "", "[] is too short - 'messages.%d.tool_calls'", index)
	}
	for i, call := range all {
		if err := checkCall(fmt.Sprintf("%s.tool_calls[%d]", at, i), call); err != nil {
			return err
		}
	}
	return checkUniqueIDs(at, all)
}

func checkCall(at string, raw json.RawMessage) *APIError {
	if kindOf(raw) != kindObject {
		return wrongType(at, "an object", raw)
	}
	call := asObject(raw)
	if err := checkCallID(at+".id", call["id"]); err != nil {
		return err
	}
	switch name := asString(call["type"]); {
	case kindOf(call["type"]) == kindAbsent:
		return missingParameter(at + ".type")
	case name == "function":
		return checkInvocation(at+".function", "arguments", call["function"])
	case name == "custom":
		return checkInvocation(at+".custom", "input", call["custom"])
	default:
		return wrongValue(at+".type", name, "function", "custom")
	}
}

func checkCallID(param string, id json.RawMessage) *APIError {
	switch {
	case kindOf(id) == kindAbsent:
		return missingParameter(param)
	case kindOf(id) != kindString:
		return wrongType(param, "a string", id)
	case asString(id) == "":
		return emptyString(param)
	}
	return nil
}

// checkInvocation judges the function (or custom tool) of a call. Its input must be a string, but not valid JSON: models
// write broken JSON, and agents send it back.
func checkInvocation(at, input string, raw json.RawMessage) *APIError {
	if kindOf(raw) == kindAbsent {
		return missingParameter(at)
	}
	if kindOf(raw) != kindObject {
		return wrongType(at, "an object", raw)
	}
	f := asObject(raw)
	if err := checkFunctionName(at+".name", f["name"]); err != nil {
		return err
	}
	if kindOf(f[input]) == kindAbsent {
		return missingParameter(at + "." + input)
	}
	if kindOf(f[input]) != kindString {
		return wrongType(at+"."+input, "a string", f[input])
	}
	return nil
}

func checkFunctionName(param string, raw json.RawMessage) *APIError {
	switch name := asString(raw); {
	case kindOf(raw) == kindAbsent:
		return missingParameter(param)
	case kindOf(raw) != kindString:
		return wrongType(param, "a string", raw)
	case name == "":
		return emptyString(param)
	case len(name) > maxNameLength:
		return longString(param, maxNameLength, len(name))
	case !nameRegexp.MatchString(name):
		return badPattern(param, namePattern)
	}
	return nil
}

func checkUniqueIDs(at string, calls []json.RawMessage) *APIError {
	first := map[string]int{}
	for i, call := range calls {
		id := asString(asObject(call)["id"])
		if before, seen := first[id]; seen {
			return refuse(fmt.Sprintf("%s.tool_calls[%d].id", at, i), "",
				"Invalid parameter: Duplicate value for 'id' of '%s', in %s.tool_calls[%d] and %s.tool_calls[%d].",
				id, at, before, at, i)
		}
		first[id] = i
	}
	return nil
}
