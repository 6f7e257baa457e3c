package responses

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// item is an element of the list.
type item struct{ *split.Object }

// itemKeys are the keys that are known of an item. By format and signature gateways mark reasoning of providers other than OpenAI.
var itemKeys = []string{
	"type", "role", "content", "id", "call_id", "name", "arguments", "output", "approval_request_id", "namespace", "input", "action", "summary",
	"format", "signature",
}

func itemOf(v rawjson.Value) *item {
	o := split.Read(v, itemKeys)
	return &item{&o}
}

// is reports whether the item is of a type.
func (it *item) is(kind string) bool { return it.Get("type").Is(kind) }

// class is what an item is to the rest of the house.
type class int

const (
	odd    class = iota // none of these
	said                // by the model
	result              // of a call
	typed               // by a user
	system              // a system message, or what takes its place
	wish                // for a compaction by upstream
)

// What messages are by their role, and other items by their type.
var (
	speakers = map[string]class{"assistant": said, "user": typed, "system": system, "developer": system}
	classes  = map[string]class{
		"compaction": system, "compaction_summary": system, "context_compaction": system, "compaction_trigger": wish,
		"mcp_approval_response": result,
	}
)

func (it *item) class() class {
	kind := it.Get("type")
	known, is := classes[kind.Text()]
	switch {
	case it.isMessage():
		return speakers[it.Get("role").Text()]
	case kind.Kind != rawjson.String:
		return odd
	case is:
		return known
	case bytes.HasSuffix(kind.Inner(), []byte("_output")):
		return result
	}
	return said
}

func (it *item) isMessage() bool {
	return it.Get("type").Kind == 0 && it.Get("role").Kind != 0 || it.is("message")
}

// calls is the id of the call that the client has to answer; its kind is 0 where the item is none.
func (it *item) calls() rawjson.Value {
	if it.is("mcp_approval_request") {
		return it.Get("id")
	}
	return it.Get("call_id")
}

// answers is the id of the call that a result answers.
func (it *item) answers() rawjson.Value {
	for _, id := range [...]rawjson.Value{it.Get("call_id"), it.Get("approval_request_id")} {
		if id.Kind == rawjson.String {
			return id
		}
	}
	return it.Get("id")
}

func (it *item) isReasoning() bool { return it.is("reasoning") }

// bound reports whether the item is reasoning that its provider bound to all that stood before it: not OpenAI's, which is bound to the
// item behind it, but that of other providers, which gateways write in the same form.
func (it *item) bound() bool {
	switch {
	case !it.isReasoning():
		return false
	case it.Get("format").Kind == rawjson.String:
		return agents.BindingOf("reasoning_details", it.Get("format").Text()) == agents.Prefix
	case len(it.Get("signature").Inner()) > 0:
		return true
	}
	return agents.BindingOf(list, "reasoning") == agents.Prefix
}

// plain reports whether there is only text in the item, and what a call says.
func (it *item) plain() bool {
	return it.isMessage() || it.isReasoning() || it.is("function_call") || it.is("custom_tool_call")
}

// leans reports whether what a model said is bound to reasoning in an earlier message: its items have ids, by which upstream knows what
// belonged to what, and there is no reasoning among them.
func leans(items []*item) bool {
	named := false
	for i := range items {
		if items[i].isReasoning() || items[i].is("item_reference") {
			return false
		}
		named = named || items[i].Get("id").Kind == rawjson.String
	}
	return named
}

// sealed reports whether what a model said may not stay as it is behind a history that has changed. before is the message that it
// said before that in the same turn, nil if there is none.
func sealed(items []*item, before *session.Message) bool {
	return slices.ContainsFunc(items, bound) || before != nil && leans(items) && (before.Sealed || reasons(before.Raw))
}

func bound(it *item) bool { return it.bound() }

// reasons reports whether a message has reasoning of its own.
func reasons(raw []byte) bool {
	items, err := itemsOf(raw)
	return err == nil && slices.ContainsFunc(items, func(it *item) bool { return it.isReasoning() || it.is("item_reference") })
}
