package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

const maxTools = 128

func checkTools(top object) *APIError {
	tools, there := top["tools"]
	if !there || kindOf(tools) == kindNull {
		return nil
	}
	if err := expect("tools", tools, kindArray); err != nil {
		return err
	}
	all := asArray(tools)
	if len(all) == 0 {
		return emptyArray("tools")
	}
	if len(all) > maxTools {
		return refuse("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with "+
			"maximum length %d, but got an array with length %d instead.", maxTools, len(all))
	}
	for i, tool := range all {
		if err := checkTool(fmt.Sprintf("tools[%d]", i), tool); err != nil {
			return err
		}
	}
	return nil
}

func checkTool(at string, raw json.RawMessage) *APIError {
	if err := expect(at, raw, kindObject); err != nil {
		return err
	}
	tool := asObject(raw)
	switch name := asString(tool["type"]); {
	case kindOf(tool["type"]) == kindAbsent:
		return missingParameter(at + ".type")
	case name == "function":
		return checkFunction(at+".function", tool["function"])
	case name == "custom":
		return checkFunctionName(at+".custom.name", asObject(tool["custom"])["name"])
	default:
		return wrongValue(at+".type", name, "function", "custom")
	}
}

func checkFunction(at string, raw json.RawMessage) *APIError {
	f := asObject(raw)
	if err := cmp.Or(require(at, raw, kindObject), checkFunctionName(at+".name", f["name"])); err != nil {
		return err
	}
	if !given(f["parameters"]) {
		return nil
	}
	return checkParameters(at+".parameters", asString(f["name"]), f["parameters"], isTrue(f["strict"]))
}

func checkParameters(param, name string, schema json.RawMessage, strict bool) *APIError {
	if err := expect(param, schema, kindObject); err != nil {
		return err
	}
	if t := asString(asObject(schema)["type"]); t != "object" {
		if t == "" {
			t = "None"
		}
		return refuse(param, "invalid_function_parameters",
			"Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"%s\"'.", name, t)
	}
	if !strict {
		return nil
	}
	if fault := strictFault(schema, nil); fault != "" {
		return refuse(param, "invalid_function_parameters", "Invalid schema for function '%s': %s", name, fault)
	}
	return nil
}

func checkToolChoice(top object) *APIError {
	none := !given(top["tools"])
	if none && given(top["parallel_tool_calls"]) {
		return refuse("parallel_tool_calls", "",
			"Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.")
	}
	choice := top["tool_choice"]
	if !given(choice) {
		return nil
	}
	if none {
		return refuse("tool_choice", "",
			"Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
	}
	switch kindOf(choice) {
	case kindString:
		return checkChoiceWord(asString(choice))
	case kindObject:
		return checkChosenTool(asObject(choice), asArray(top["tools"]))
	default:
		return wrongType("tool_choice", "one of a string or object", choice)
	}
}

func checkChoiceWord(word string) *APIError {
	switch word {
	case "none", "auto", "required":
		return nil
	}
	return wrongValue("tool_choice", word, "none", "auto", "required")
}

func checkChosenTool(choice object, tools []json.RawMessage) *APIError {
	kind := asString(choice["type"])
	if kind == "allowed_tools" {
		return nil
	}
	if kind != "function" && kind != "custom" {
		return wrongValue("tool_choice.type", kind, "function", "allowed_tools", "custom")
	}
	name := asString(asObject(choice[kind])["name"])
	if name == "" {
		return missingParameter("tool_choice." + kind + ".name")
	}
	for _, tool := range tools {
		if asString(asObject(asObject(tool)[kind])["name"]) == name {
			return nil
		}
	}
	return refuse("tool_choice", "", "Invalid value for 'tool_choice': no function named '%s' was specified in the 'tools' parameter.", name)
}

func checkResponseFormat(top object) *APIError {
	raw := top["response_format"]
	if !given(raw) {
		return nil
	}
	if err := expect("response_format", raw, kindObject); err != nil {
		return err
	}
	format := asObject(raw)
	switch name := asString(format["type"]); {
	case kindOf(format["type"]) == kindAbsent:
		return missingParameter("response_format.type")
	case name == "text":
		return nil
	case name == "json_object":
		return checkMentionsJSON(top)
	case name == "json_schema":
		return checkFormatSchema(format["json_schema"])
	default:
		return wrongValue("response_format.type", name, "json_object", "json_schema", "text")
	}
}

func checkMentionsJSON(top object) *APIError {
	for _, raw := range asArray(top["messages"]) {
		if strings.Contains(strings.ToLower(contentText(asObject(raw)["content"])), "json") {
			return nil
		}
	}
	return refuse("messages", "", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
}

func checkFormatSchema(raw json.RawMessage) *APIError {
	const at = "response_format.json_schema"
	if !given(raw) {
		return missingParameter(at)
	}
	format := asObject(raw)
	if err := cmp.Or(expect(at, raw, kindObject), checkFunctionName(at+".name", format["name"])); err != nil {
		return err
	}
	if !isTrue(format["strict"]) {
		return nil
	}
	if !given(format["schema"]) {
		return missingParameter(at + ".schema")
	}
	if fault := strictFault(format["schema"], nil); fault != "" {
		return refuse("response_format", "", "Invalid schema for response_format '%s': %s", asString(format["name"]), fault)
	}
	return nil
}

// strictFault walks a schema of strict mode, in which every object must close itself and require all its properties. It
// returns what is wrong in OpenAI's words, with the place as the Python tuple that OpenAI prints; "" is fine.
func strictFault(raw json.RawMessage, path []string) string {
	schema := asObject(raw)
	if properties, ok := schema["properties"]; ok || asString(schema["type"]) == "object" {
		if closed := schema["additionalProperties"]; string(closed) != "false" {
			return fmt.Sprintf("In context=%s, 'additionalProperties' is required to be supplied and to be false.", tuple(path))
		}
		if fault := propertiesFault(properties, schema["required"], path); fault != "" {
			return fault
		}
	}
	if items := schema["items"]; given(items) {
		return strictFault(items, extend(path, "items"))
	}
	for i, branch := range asArray(schema["anyOf"]) {
		if fault := strictFault(branch, extend(path, "anyOf", fmt.Sprint(i))); fault != "" {
			return fault
		}
	}
	return ""
}

func propertiesFault(properties, required json.RawMessage, path []string) string {
	needed := map[string]bool{}
	for _, name := range asArray(required) {
		needed[asString(name)] = true
	}
	for _, p := range membersOf(properties) {
		if !needed[p.key] {
			return fmt.Sprintf("In context=%s, 'required' is required to be supplied and to be an array including every "+
				"key in properties. Missing '%s'.", tuple(path), p.key)
		}
		if fault := strictFault(p.value, extend(path, "properties", p.key)); fault != "" {
			return fault
		}
	}
	return ""
}

func extend(path []string, names ...string) []string {
	return append(path[:len(path):len(path)], names...)
}

func tuple(path []string) string {
	if len(path) == 1 {
		return "('" + path[0] + "',)"
	}
	return "(" + strings.Join(quoted(path), ", ") + ")"
}
