package fakeupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// judgeResponses gives the items of a request, those that the server keeps in front of its own, or why it is refused, whatever its
// size. The rules are those of https://platform.openai.com/docs/api-reference/responses/create (items and their members), of
// https://platform.openai.com/docs/guides/function-calling (calls and outputs), of
// https://platform.openai.com/docs/guides/reasoning (reasoning and what follows it) and of
// https://platform.openai.com/docs/guides/conversation-state (what the server keeps).
func (x *exchange) judgeResponses() ([]json.RawMessage, *APIError) {
	if err := checkContentType(x.r.Header); err != nil {
		return nil, err
	}
	switch {
	case x.top == nil:
		return nil, refuse("", "", "We could not parse the JSON body of your request.")
	case x.req.Model == "":
		return nil, missingParameter("model")
	case !given(x.top["input"]) && !given(x.top["previous_response_id"]):
		return nil, missingParameter("input")
	}
	if known := x.server.options.Models; len(known) > 0 && !slices.Contains(known, x.req.Model) && !slices.Contains(x.server.options.SummariserModels, x.req.Model) {
		return nil, unknownModel(x.req.Model)
	}
	for n, item := range x.req.Messages {
		if err := x.checkItem(fmt.Sprintf("input[%d]", n), item, n == len(x.req.Messages)-1); err != nil {
			return nil, err
		}
	}
	items, err := x.resolved()
	if err != nil {
		return nil, err
	}
	checks := []func([]json.RawMessage) *APIError{checkIDs, checkItemCalls}
	if x.server.options.Seals != "" {
		checks = append(checks, x.checkReasoning)
	}
	for _, check := range checks {
		if err := check(items); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// resolved are the items with those that the server keeps.
func (x *exchange) resolved() ([]json.RawMessage, *APIError) {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []json.RawMessage
	if id := asString(x.top["previous_response_id"]); id != "" {
		known, ok := s.kept.responses[id]
		if !ok {
			return nil, refuse("previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found.", id)
		}
		items = slices.Clone(known)
	}
	for _, item := range x.req.Messages {
		if typeOf(item) == "item_reference" {
			id := asString(asObject(item)["id"])
			known, ok := s.kept.items[id]
			if !ok {
				return nil, &APIError{http.StatusNotFound, fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is "+
					"set to false. Try again with `store` set to true, or remove this item from your input.", id), invalidRequest, "input", ""}
			}
			item = known
		}
		items = append(items, item)
	}
	return items, nil
}

// stored is what a server keeps of its answers. It is guarded by Server.mu.
type stored struct {
	responses map[string][]json.RawMessage // whole histories, by the id of the response
	items     map[string]json.RawMessage   // by their ids
	reasons   map[string]string            // the id of the reasoning that an item follows, by its own id
}

// store keeps a history.
func (s *Server) store(id string, items []json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.responses == nil {
		s.kept.responses, s.kept.items = map[string][]json.RawMessage{}, map[string]json.RawMessage{}
	}
	s.kept.responses[id] = items
	for _, item := range items {
		if id := asString(asObject(item)["id"]); id != "" {
			s.kept.items[id] = item
		}
	}
}

// itemMembers are those that an item must have, by its type.
var itemMembers = map[string][]string{
	"message": {"role", "content"}, "function_call": {"call_id", "name", "arguments"}, "function_call_output": {"call_id", "output"},
	"custom_tool_call": {"call_id", "name", "input"}, "custom_tool_call_output": {"call_id", "output"}, "reasoning": {"summary"},
	"local_shell_call": {"call_id", "action"}, "local_shell_call_output": {"output"}, "web_search_call": {"id", "status"},
	"item_reference": {"id"}, "compaction": {"encrypted_content"}, "compaction_trigger": {},
}

func (x *exchange) checkItem(at string, item json.RawMessage, last bool) *APIError {
	if kindOf(item) != kindObject {
		return wrongType(at, "an object", item)
	}
	o, kind := asObject(item), typeOf(item)
	needed, known := itemMembers[kind]
	compacts := strings.HasPrefix(kind, "compaction")
	switch {
	case !known || compacts && x.server.unable:
		return refuse(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'message', 'function_call', 'function_call_output' "+
			"and others.", kind)
	case kind == "compaction_trigger" && !last:
		return refuse(at, "invalid_value", "A compaction_trigger must be the last item of the input.")
	case kind == "compaction" && !strings.HasPrefix(asString(o["encrypted_content"]), compacted):
		return refuse(at, "invalid_encrypted_content", "The encrypted content %.20s... could not be verified.", asString(o["encrypted_content"]))
	}
	for _, name := range needed {
		if kindOf(o[name]) == kindAbsent {
			return missingParameter(at + "." + name)
		}
	}
	switch kind {
	case "message":
		return checkMessageItem(at, o)
	case "function_call":
		return expect(at+".arguments", o["arguments"], kindString)
	}
	return nil
}

// itemParts are the parts that a message of a role may have.
var itemParts = map[string][]string{
	"user": {"input_text", "input_image", "input_file"}, "system": {"input_text"}, "developer": {"input_text"},
	"assistant": {"output_text", "refusal"},
}

func checkMessageItem(at string, o object) *APIError {
	role := asString(o["role"])
	parts, known := itemParts[role]
	if !known {
		return refuse(at+".role", "invalid_value", "Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", role)
	}
	if kindOf(o["content"]) == kindString {
		return nil
	}
	for i, p := range asArray(o["content"]) {
		kind := asString(asObject(p)["type"])
		if !slices.Contains(parts, kind) {
			return refuse(fmt.Sprintf("%s.content[%d]", at, i), "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", kind,
				strings.Join(parts, "', '"))
		}
	}
	return nil
}

func checkIDs(items []json.RawMessage) *APIError {
	seen := map[string]bool{}
	for _, item := range items {
		if id := asString(asObject(item)["id"]); id != "" {
			if seen[id] {
				return refuse("input", "", "Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
			}
			seen[id] = true
		}
	}
	return nil
}

// checkItemCalls: each call has an output behind it, and each output a call before it.
func checkItemCalls(items []json.RawMessage) *APIError {
	var open []string
	called := map[string]bool{}
	for _, item := range items {
		id, kind := asString(asObject(item)["call_id"]), typeOf(item)
		switch {
		case id == "":
		case !strings.HasSuffix(kind, "_output"):
			called[id], open = true, append(open, id)
		case !called[id]:
			return refuse("input", "", "No tool call found for function call output with call_id %s.", id)
		default:
			open = slices.DeleteFunc(open, func(o string) bool { return o == id })
		}
	}
	if len(open) > 0 {
		return refuse("input", "", "No tool output found for function call %s.", open[0])
	}
	return nil
}
