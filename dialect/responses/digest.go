package responses

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The canonical form of a message is the version below and then frames:
//
//	role             developer counts as system; assistant for all that a model said
//	content          of a message, as split.Digest has it
//	each call        id; type, if not function_call; name and namespace; arguments, input or action
//	call id, output  of a result
//	each other item  its members, by name
//
// Reasoning does not count, nor do the ids and states of items, annotations and logprobs: clients leave them out.
const version = "dewpoint/responses/1\n"

// Fields of a frame.
const (
	fieldRole      = 'r'
	fieldContent   = 'c'
	fieldPart      = 'p'
	fieldCall      = 'C' // begins a call
	fieldID        = 'i'
	fieldType      = 't'
	fieldName      = 'n'
	fieldSpace     = 's'
	fieldArguments = 'a'
	fieldInput     = 'I'
	fieldAction    = 'A'
	fieldResult    = 'R'
	fieldOutput    = 'o'
	fieldItem      = 'O' // begins another item
	fieldKey       = 'k'
	fieldValue     = 'v'
)

func messageDigest(h *split.Digest, role string, content rawjson.Value) session.Hash {
	if role == "developer" {
		role = "system"
	}
	h.Begin()
	h.Word(fieldRole, role)
	h.Content(fieldContent, fieldPart, content)
	return h.End()
}

func resultDigest(h *split.Digest, it *item) session.Hash {
	h.Begin()
	h.Word(fieldRole, "tool")
	if !it.is("function_call_output") {
		h.Value(fieldType, it.Get("type"))
	}
	h.Value(fieldResult, it.answers())
	h.Content(fieldOutput, fieldPart, it.Get("output"))
	return h.End()
}

// turnDigest is that of what a model said.
func turnDigest(h *split.Digest, items []*item) session.Hash {
	h.Begin()
	h.Word(fieldRole, "assistant")
	for i := range items {
		items[i].digest(h)
	}
	return h.End()
}

func (it *item) digest(h *split.Digest) {
	switch {
	case it.isReasoning():
	case it.isMessage():
		h.Content(fieldContent, fieldPart, it.Get("content"))
	case it.is("function_call"), it.is("custom_tool_call"), it.is("local_shell_call"):
		h.Mark(fieldCall)
		h.Value(fieldID, it.Get("call_id"))
		if !it.is("function_call") {
			h.Value(fieldType, it.Get("type"))
		}
		h.Value(fieldName, it.Get("name"))
		h.Value(fieldSpace, it.Get("namespace"))
		h.Arguments(fieldArguments, it.Get("arguments"))
		h.Value(fieldInput, it.Get("input"))
		h.Value(fieldAction, it.Get("action"))
	default:
		it.other(h)
	}
}

// other adds an item of a type that is not looked into.
func (it *item) other(h *split.Digest) {
	h.Mark(fieldItem)
	type member struct {
		key   []byte
		value rawjson.Value
	}
	var all []member
	for key, v := range rawjson.Members(it.Raw) {
		if name := string(key.Raw); name == "status" || name == "id" && !it.is("item_reference") {
			continue
		}
		all = append(all, member{key.Raw, v})
	}
	slices.SortStableFunc(all, func(a, b member) int { return bytes.Compare(a.key, b.key) })
	for _, m := range all {
		h.Word(fieldKey, string(m.key))
		h.Value(fieldValue, m.value)
	}
}
