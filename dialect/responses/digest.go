package responses

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// The canonical form of a message is the version below, followed by frames:
//
//	role             developer counts as system; assistant for all output of a model
//	content          of a message, see split.Digest.Content
//	each call        id; type, unless function_call; name and namespace; arguments, input or action
//	call id, output  of a result
//	each other item  its members, sorted by name
//
// Reasoning, the ids and states of items, annotations and logprobs are ignored, since clients leave them out.
const version = "dewpoint/responses/1\n"

// Fields of a frame, in addition to those of all dialects.
const (
	fieldCall      = 'C' // starts a call
	fieldID        = 'i'
	fieldType      = 't'
	fieldName      = 'n'
	fieldSpace     = 's'
	fieldArguments = 'a'
	fieldInput     = 'I'
	fieldAction    = 'A'
	fieldResult    = 'R'
	fieldOutput    = 'o'
	fieldItem      = 'O' // starts another item
	fieldKey       = 'k'
	fieldValue     = 'v'
)

func resultDigest(h *split.Digest, it *item) session.Hash {
	h.Begin("tool")
	if !it.is("function_call_output") {
		h.Value(fieldType, it.Get("type"))
	}
	h.Value(fieldResult, it.resultID())
	h.Content(fieldOutput, it.Get("output"))
	return h.End()
}

// turnDigest returns the digest of a model's output.
func turnDigest(h *split.Digest, items []*item) session.Hash {
	h.Begin("assistant")
	for _, it := range items {
		it.addTo(h)
	}
	return h.End()
}

func (it *item) addTo(h *split.Digest) {
	switch {
	case it.isReasoning():
	case it.isMessage():
		h.Content(split.FieldContent, it.Get("content"))
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
		it.addMembersTo(h)
	}
}

// addMembersTo adds all members of an item whose content is not read.
func (it *item) addMembersTo(h *split.Digest) {
	h.Mark(fieldItem)
	type member struct {
		key   []byte
		value rawjson.Value
	}
	var all []member
	for key, v := range rawjson.Members(it.Raw) {
		if name := string(key.Raw); name == "status" || name == "id" && !it.isReference() {
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
