package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

const (
	maxNameLength = 64
	namePattern   = `^[a-zA-Z0-9_-]+$`
	authorPattern = `^[^\s<|\\/>]+$`
)

var (
	nameRegexp   = regexp.MustCompile(namePattern)
	authorRegexp = regexp.MustCompile(authorPattern)
)

// parseMessages returns the messages if each of them, by itself, has the right shape.
func parseMessages(top object) ([]object, *APIError) {
	if err := require("messages", top["messages"], kindArray); err != nil {
		return nil, err
	}
	all := asArray(top["messages"])
	if len(all) == 0 {
		return nil, emptyArray("messages")
	}
	parsed := make([]object, len(all))
	for i, raw := range all {
		parsed[i] = asObject(raw)
		if err := cmp.Or(expect(fmt.Sprintf("messages[%d]", i), raw, kindObject), checkMessageShape(i, parsed[i])); err != nil {
			return nil, err
		}
	}
	return parsed, nil
}

func checkMessageShape(index int, m object) *APIError {
	at, role := fmt.Sprintf("messages[%d]", index), asString(m["role"])
	if err := cmp.Or(checkRole(at, m["role"]), checkContent(at, role, m["content"]), checkAuthor(at+".name", m["name"])); err != nil {
		return err
	}
	if id := m["tool_call_id"]; given(id) && kindOf(id) != kindString {
		return expect(at+".tool_call_id", id, kindString)
	}
	return checkCalls(index, role, m)
}

func checkRole(at string, role json.RawMessage) *APIError {
	if err := require(at+".role", role, kindString); err != nil {
		return err
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
		if err := cmp.Or(expect(where, part, kindObject), checkPart(where, role, asObject(part))); err != nil {
			return err
		}
	}
	return nil
}

func checkPart(where, role string, part object) *APIError {
	if kindOf(part["type"]) == kindAbsent {
		return missingParameter(where + ".type")
	}
	name := asString(part["type"]) // the field that holds the value has the same
	if allowed := partNames(role); !slices.Contains(allowed, name) {
		return wrongValue(where+".type", name, allowed...)
	}
	if err := require(where+"."+name, part[name], partKind(name)); err != nil {
		return err
	}
	if name == "image_url" && kindOf(asObject(part[name])["url"]) != kindString {
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

func checkAuthor(param string, name json.RawMessage) *APIError {
	if !given(name) {
		return nil
	}
	err := expect(param, name, kindString)
	if err == nil && !authorRegexp.MatchString(asString(name)) {
		err = badPattern(param, authorPattern)
	}
	return err
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
	if err := expect(at+".tool_calls", calls, kindArray); err != nil {
		return err
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
	call := asObject(raw)
	if err := cmp.Or(expect(at, raw, kindObject), checkCallID(at+".id", call["id"])); err != nil {
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
	err := require(param, id, kindString)
	if err == nil && asString(id) == "" {
		err = emptyString(param)
	}
	return err
}

// checkInvocation judges the function (or custom tool) of a call. Its input must be a string, but not valid JSON: models
// write broken JSON, and agents send it back.
func checkInvocation(at, input string, raw json.RawMessage) *APIError {
	f := asObject(raw)
	return cmp.Or(require(at, raw, kindObject), checkFunctionName(at+".name", f["name"]), require(at+"."+input, f[input], kindString))
}

func checkFunctionName(param string, raw json.RawMessage) *APIError {
	if err := require(param, raw, kindString); err != nil {
		return err
	}
	switch name := asString(raw); {
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
