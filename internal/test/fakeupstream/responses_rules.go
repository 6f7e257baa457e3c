package fakeupstream

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// judgeResponses checks a request, regardless of its size. From then on, its history includes the items that the
// server has stored for it. The rules come from
// https://platform.openai.com/docs/api-reference/responses/create (items and their members),
// https://platform.openai.com/docs/guides/function-calling (calls and outputs),
// https://platform.openai.com/docs/guides/reasoning (reasoning and the item after it) and
// https://platform.openai.com/docs/guides/conversation-state (stored responses).
func (x *exchange) judgeResponses(v *verdict) {
	v.fail(checkContentType(x.r.Header))
	v.refuseIf(x.top.kind != kindObject, "", "", "We could not parse the JSON body of your request.")
	v.missingIf(x.req.Model == "", "model")
	v.missingIf(!x.top.at("input").given() && !x.top.at("previous_response_id").given(), "input")
	if !x.server.options.serves(x.req.Model) {
		v.fail(unknownModel(x.req.Model))
	}
	for n, item := range x.history {
		last := n == len(x.history)-1
		v.item(fmt.Sprintf("input[%d]", n), item, last, x.server.unable)
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	x.history = x.resolved(v)
	v.ids(x.history)
	v.itemCalls(x.history)
	if x.server.options.Seals != "" {
		x.checkReasoning(v)
	}
}

// resolved returns the items with stored ones filled in. The caller holds Server.mu.
func (x *exchange) resolved(v *verdict) (items []value) {
	kept := &x.server.kept
	if id := x.top.at("previous_response_id").text; id != "" {
		known, ok := kept.responses[id]
		v.refuseIf(!ok, "previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found.", id)
		items = slices.Clone(known)
	}
	for _, item := range x.history {
		if typeOf(item) == "item_reference" {
			id := item.at("id").text
			known, ok := kept.items[id]
			if !ok {
				v.fail(&APIError{http.StatusNotFound, fmt.Sprintf("Item with id '%s' not found. Items are not persisted when `store` is "+
					"set to false. Try again with `store` set to true, or remove this item from your input.", id), invalidRequest, "input", ""})
			}
			item = known
		}
		items = append(items, item)
	}
	return items
}

// memory is what the server remembers of its answers, to judge later requests. It is guarded by Server.mu.
type memory struct {
	answers   int                // that could be sealed, so far
	sealed    map[string]bool    // whether answers with calls came with reasoning, by the IDs of the calls
	responses map[string][]value // whole histories, by response ID
	items     map[string]value   // by item ID
	reasons   map[string]string  // ID of the reasoning that an item must follow, by item ID
}

// store keeps the history of a response.
func (s *Server) store(id string, items []value) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.responses[id] = items
	for _, item := range items {
		if id := item.at("id").text; id != "" {
			s.kept.items[id] = item
		}
	}
}

// itemMembers lists the required members of an item, by its type.
var itemMembers = map[string][]string{
	"message": {"role", "content"}, "function_call": {"call_id", "name", "arguments"}, "function_call_output": {"call_id", "output"},
	"custom_tool_call": {"call_id", "name", "input"}, "custom_tool_call_output": {"call_id", "output"}, "reasoning": {"summary"},
	"local_shell_call": {"call_id", "action"}, "local_shell_call_output": {"output"}, "web_search_call": {"id", "status"},
	"item_reference": {"id"}, "compaction": {"encrypted_content"}, "compaction_trigger": {},
	"additional_tools": {"tools"}, "configuration_update": {}, "agent_message": {"author", "recipient", "content"},
	"tool_search_call": {"arguments"}, "tool_search_output": {"tools"},
}

// item checks a single item. unable means that the server does not support compaction.
func (v *verdict) item(at string, item value, last, unable bool) {
	v.is(at, item, kindObject)
	kind := typeOf(item)
	needed, known := itemMembers[kind]
	sealed := item.at("encrypted_content").text
	v.refuseIf(!known || unable && strings.HasPrefix(kind, "compaction"), at+".type", "invalid_value",
		"Invalid value: '%s'. Supported values are: 'message', 'function_call', 'function_call_output' and others.", kind)
	v.refuseIf(kind == "compaction_trigger" && !last, at, "invalid_value", "A compaction_trigger must be the last item of the input.")
	v.refuseIf(kind == "compaction" && !strings.HasPrefix(sealed, compacted), at, "invalid_encrypted_content",
		"The encrypted content %.20s... could not be verified.", sealed)
	for _, name := range needed {
		v.missingIf(item.at(name).kind == kindAbsent, at+"."+name)
	}
	switch kind {
	case "message":
		v.messageItem(at, item)
	case "function_call":
		v.is(at+".arguments", item.at("arguments"), kindString)
	}
}

// itemParts lists the part types that a message may have, by its role.
var itemParts = map[string][]string{
	"user": {"input_text", "input_image", "input_file"}, "system": {"input_text"}, "developer": {"input_text"},
	"assistant": {"output_text", "refusal"},
}

func (v *verdict) messageItem(at string, item value) {
	role := item.at("role").text
	parts, known := itemParts[role]
	v.refuseIf(!known, at+".role", "invalid_value",
		"Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", role)
	for i, p := range item.at("content").elements {
		kind := p.at("type").text
		v.refuseIf(!slices.Contains(parts, kind), fmt.Sprintf("%s.content[%d]", at, i), "invalid_value",
			"Invalid value: '%s'. Supported values are: '%s'.", kind, strings.Join(parts, "', '"))
	}
}

func (v *verdict) ids(items []value) {
	seen := map[string]bool{}
	for _, item := range items {
		id := item.at("id").text
		v.refuseIf(id != "" && seen[id], "input", "",
			"Duplicate item found with id %s. Remove duplicate items from your input and try again.", id)
		seen[id] = true
	}
}

// itemCalls checks that each call has a later output and each output an earlier call.
func (v *verdict) itemCalls(items []value) {
	var open []string
	called := map[string]bool{}
	for _, item := range items {
		id, kind := item.at("call_id").text, typeOf(item)
		switch {
		case id == "":
		case !strings.HasSuffix(kind, "_output"):
			called[id], open = true, append(open, id)
		case !called[id]:
			v.refuse("input", "", "No tool call found for function call output with call_id %s.", id)
		default:
			open = slices.DeleteFunc(open, func(o string) bool { return o == id })
		}
	}
	if len(open) > 0 {
		v.refuse("input", "", "No tool output found for function call %s.", open[0])
	}
}
