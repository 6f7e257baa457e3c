package responses

import (
	"bytes"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// item is an element of the list.
type item struct{ *split.Object }

// itemKeys are the known keys of an item. Gateways set format and signature in the reasoning of providers other than OpenAI.
var itemKeys = []string{
	"type", "role", "content", "id", "call_id", "name", "arguments", "output", "approval_request_id",
	"namespace", "input", "action", "summary", "format", "signature",
}

func itemOf(v rawjson.Value) *item {
	o := split.Read(v, itemKeys)
	return &item{&o}
}

// is reports whether the item is of a type.
func (it *item) is(kind string) bool { return it.Get("type").Is(kind) }

// class says how the proxy treats an item.
type class int

const (
	unknownItem class = iota
	modelOutput
	toolResult
	userMessage
	systemMessage     // also a compaction, which is never hidden
	compactionTrigger // a request for a compaction
	standing          // defines or sets something for the following items; also an item of an unknown type. It is not in the chain
)

// The classes of messages by role, and of other items by type.
var (
	roleClasses = map[string]class{
		"assistant": modelOutput, "user": userMessage, "system": systemMessage, "developer": systemMessage,
	}
	typeClasses = map[string]class{
		"compaction": systemMessage, "compaction_summary": systemMessage, "context_compaction": systemMessage,
		"compaction_trigger": compactionTrigger, "mcp_approval_response": toolResult, "agent_message": userMessage,
		"reasoning": modelOutput, "item_reference": modelOutput, "mcp_approval_request": modelOutput,
	}
)

func (it *item) class() class {
	if it.isMessage() {
		return roleClasses[it.Get("role").Text()]
	}
	kind := it.Get("type")
	if kind.Kind != rawjson.String {
		return unknownItem
	}
	if c, ok := typeClasses[kind.Text()]; ok {
		return c
	}
	switch {
	case bytes.HasSuffix(kind.Inner(), []byte("_output")):
		return toolResult
	case bytes.HasSuffix(kind.Inner(), []byte("_call")), it.Get("call_id").Kind == rawjson.String:
		return modelOutput
	}
	return standing
}

// newTask is in the message with which Codex gives a sub-agent its task.
const newTask = "Message Type: NEW_TASK"

// lasts reports whether the item must never be hidden: a result that defines tools, or a sub-agent's task.
func (it *item) lasts() bool {
	return it.is("tool_search_output") || it.isRelayed() && bytes.Contains(it.Raw, []byte(newTask))
}

// isRelayed reports whether another agent wrote the item: it is a sub-agent's report, or the task that a sub-agent got from its parent.
func (it *item) isRelayed() bool { return it.is("agent_message") }

func (it *item) isMessage() bool {
	return it.Get("type").Kind == 0 && it.Get("role").Kind != 0 || it.is("message")
}

// callID returns the id of a call that the client has to answer. Its Kind is 0 if the item is not a call.
func (it *item) callID() rawjson.Value {
	if it.is("mcp_approval_request") {
		return it.Get("id")
	}
	return it.Get("call_id")
}

// resultID returns the id of the call that a result belongs to.
func (it *item) resultID() rawjson.Value {
	for _, id := range [...]rawjson.Value{it.Get("call_id"), it.Get("approval_request_id")} {
		if id.Kind == rawjson.String {
			return id
		}
	}
	return it.Get("id")
}

func (it *item) isReasoning() bool { return it.is("reasoning") }

// isPrefixBound reports whether the item is reasoning that its provider bound to all preceding items. OpenAI binds reasoning
// to the item after it, but gateways use the same items for the reasoning of other providers.
func (it *item) isPrefixBound() bool {
	if format := it.Get("format"); format.Kind == rawjson.String {
		return it.isReasoning() && agents.PrefixBound(format.Text())
	}
	return it.isReasoning() && len(it.Get("signature").Inner()) > 0
}

// isPlain reports whether the item contains only text or a call with text arguments.
func (it *item) isPlain() bool {
	return it.isMessage() || it.isReasoning() || it.is("function_call") || it.is("custom_tool_call")
}

// isReasoningOrReference reports whether the item is reasoning, or a reference, which may refer to reasoning.
func (it *item) isReasoningOrReference() bool { return it.isReasoning() || it.isReference() }

// dependsOnEarlier reports whether a model's output is bound to reasoning in an earlier message. That is so if at least one item has an id, by
// which upstream recognises it, and no item is reasoning or a reference.
func dependsOnEarlier(items []*item) bool {
	return !slices.ContainsFunc(items, (*item).isReasoningOrReference) &&
		slices.ContainsFunc(items, func(it *item) bool { return it.Get("id").Kind == rawjson.String })
}

// sealed reports whether a model's output must be changed if the history before it changes. before is the model's previous message in the
// same turn, or nil.
func sealed(items []*item, before *session.Message) bool {
	if slices.ContainsFunc(items, (*item).isPrefixBound) {
		return true
	}
	if before == nil || !dependsOnEarlier(items) {
		return false
	}
	earlier, err := itemsOf(before.Raw)
	return before.Sealed || err == nil && slices.ContainsFunc(earlier, (*item).isReasoningOrReference)
}
