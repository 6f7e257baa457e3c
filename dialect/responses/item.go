package responses

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// item is what is known of an element of the list.
type item struct {
	kind, role, content                   rawjson.Value
	id, call, approval                    rawjson.Value
	name, space, arguments, input, action rawjson.Value
	output, summary                       rawjson.Value
	seal                                  seal

	raw []byte
}

// seal is how gateways mark reasoning of providers other than OpenAI.
type seal struct{ format, signature rawjson.Value }

// Slot gives the place of a known key.
func (it *item) Slot(name []byte) *rawjson.Value {
	switch string(name) {
	case "type":
		return &it.kind
	case "role":
		return &it.role
	case "content":
		return &it.content
	case "id":
		return &it.id
	case "call_id":
		return &it.call
	case "approval_request_id":
		return &it.approval
	case "name":
		return &it.name
	case "namespace":
		return &it.space
	case "arguments":
		return &it.arguments
	case "input":
		return &it.input
	case "action":
		return &it.action
	case "output":
		return &it.output
	case "summary":
		return &it.summary
	case "format":
		return &it.seal.format
	case "signature":
		return &it.seal.signature
	}
	return nil
}

// class is what an item is to the rest of the house.
type class int

const (
	said   class = iota // by the model
	result              // of a call
	typed               // by a user
	system              // a system message, or what takes its place
	wish                // for a compaction by upstream
	odd                 // none of that
)

func (it *item) class() class {
	switch {
	case it.isMessage():
		return it.speaker()
	case it.kind.Kind != rawjson.String:
		return odd
	case it.kind.Is("compaction"), it.kind.Is("compaction_summary"), it.kind.Is("context_compaction"):
		return system
	case it.kind.Is("compaction_trigger"):
		return wish
	case it.kind.Is("mcp_approval_response"), bytes.HasSuffix(it.kind.Inner(), []byte("_output")):
		return result
	}
	return said
}

func (it *item) isMessage() bool {
	return it.kind.Kind == 0 && it.role.Kind != 0 || it.kind.Is("message")
}

func (it *item) speaker() class {
	switch {
	case it.role.Is("assistant"):
		return said
	case it.role.Is("user"):
		return typed
	case it.role.Is("system"), it.role.Is("developer"):
		return system
	}
	return odd
}

// calls is the id of the call that the client has to answer; its kind is 0 where the item is none.
func (it *item) calls() rawjson.Value {
	if it.kind.Is("mcp_approval_request") {
		return it.id
	}
	return it.call
}

// answers is the id of the call that a result answers.
func (it *item) answers() rawjson.Value {
	for _, id := range [...]rawjson.Value{it.call, it.approval} {
		if id.Kind == rawjson.String {
			return id
		}
	}
	return it.id
}

func (it *item) isReasoning() bool { return it.kind.Is("reasoning") }

// bound reports whether the item is reasoning that its provider bound to all that stood before it: not OpenAI's, which is bound to the
// item behind it, but that of other providers, which gateways write in the same form.
func (it *item) bound() bool {
	switch {
	case !it.isReasoning():
		return false
	case it.seal.format.Kind == rawjson.String:
		return agents.BindingOf("reasoning_details", it.seal.format.Text()) == agents.Prefix
	case len(it.seal.signature.Inner()) > 0:
		return true
	}
	return agents.BindingOf(list, "reasoning") == agents.Prefix
}

// plain reports whether there is only text in the item, and what a call says.
func (it *item) plain() bool {
	return it.isMessage() || it.isReasoning() || it.kind.Is("function_call") || it.kind.Is("custom_tool_call")
}

// leans reports whether what a model said is bound to reasoning in an earlier message: its items have ids, by which upstream knows what
// belonged to what, and there is no reasoning among them.
func leans(items []item) bool {
	named := false
	for i := range items {
		if items[i].isReasoning() || items[i].kind.Is("item_reference") {
			return false
		}
		named = named || items[i].id.Kind == rawjson.String
	}
	return named
}

// sealed reports whether what a model said may not stay as it is behind a history that has changed. before is the message that it
// said before that in the same turn, nil if there is none.
func sealed(items []item, before *session.Message) bool {
	return slices.ContainsFunc(items, bound) || before != nil && leans(items) && (before.Sealed || reasons(before.Raw))
}

func bound(it item) bool { return it.bound() }

// reasons reports whether a message has reasoning of its own.
func reasons(raw []byte) bool {
	items, err := itemsOf(raw)
	return err == nil && slices.ContainsFunc(items, func(it item) bool { return it.isReasoning() || it.kind.Is("item_reference") })
}
