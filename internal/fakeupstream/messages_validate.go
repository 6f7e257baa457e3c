package fakeupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// judgeMessages returns why a request is refused, whatever its size. The rules are those of
// https://docs.claude.com/en/api/messages, of https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use (order
// and pairing), and of https://docs.claude.com/en/docs/build-with-claude/prompt-caching (four marks).
func (x *exchange) judgeMessages(answered bool) *APIError {
	if x.r.Header.Get("Anthropic-Version") == "" {
		return refuse("", "", "anthropic-version: header is required")
	}
	if err := checkContentType(x.r.Header); err != nil {
		return err
	}
	switch top := x.top; {
	case top == nil:
		return refuse("", "", "The request body is not valid JSON: expected an object")
	case x.req.Model == "":
		return refuse("", "", "model: Field required")
	case answered && asCount(top["max_tokens"]) < 1:
		return refuse("", "", "max_tokens: Field required")
	case kindOf(top["messages"]) != kindArray:
		return refuse("", "", "messages: Field required")
	case len(x.req.Messages) == 0:
		return refuse("", "", "messages: at least one message is required")
	case x.server.unable && given(top["context_management"]):
		return refuse("", "", "context_management: Extra inputs are not permitted")
	case x.server.unable && given(top["compaction"]):
		return refuse("", "", "compaction: Extra inputs are not permitted")
	case given(top["compaction"]) && given(top["context_management"]):
		return refuse("", "", "compaction: cannot be combined with context_management")
	case marks(x.req.Body) > 4:
		return refuse("", "", "A maximum of 4 blocks with cache_control may be provided. Found %d.", marks(x.req.Body))
	}
	if known := x.server.options.Models; len(known) > 0 && !slices.Contains(known, x.req.Model) {
		return &APIError{http.StatusNotFound, "model: " + x.req.Model, "not_found_error", "", ""}
	}
	for n, m := range x.req.Messages {
		if err := checkElement(n, m, n == len(x.req.Messages)-1); err != nil {
			return err
		}
	}
	return checkPairs(x.req.Messages)
}

// marks counts the blocks that are marked for caching.
func marks(body json.RawMessage) (n int) {
	switch kindOf(body) {
	case kindArray:
		for _, e := range asArray(body) {
			n += marks(e)
		}
	case kindObject:
		for key, v := range asObject(body) {
			if key == "cache_control" && given(v) {
				n++
			} else if key != "input" && key != "input_schema" {
				n += marks(v)
			}
		}
	}
	return n
}

func checkElement(n int, message json.RawMessage, last bool) *APIError {
	o := asObject(message)
	for key := range o {
		if key != "role" && key != "content" {
			return refuse("", "", "messages.%d.%s: Extra inputs are not permitted", n, key)
		}
	}
	role := asString(o["role"])
	if role != "user" && role != "assistant" && (role != "system" || n == 0) { // newer models take system messages in between
		return refuse("", "", "messages.%d.role: Input should be 'user' or 'assistant'", n)
	}
	blocks := blocksOf(o["content"])
	compacts := len(blocks) > 0 && asString(asObject(blocks[0])["type"]) == "compaction"
	if n == 0 && role != "user" && !compacts {
		return refuse("", "", "messages: first message must use the \"user\" role")
	}
	if len(blocks) == 0 && !(last && role == "assistant") {
		return refuse("", "", "messages.%d: all messages must have non-empty content except for the optional final assistant message", n)
	}
	for i, b := range blocks {
		if err := checkBlock(fmt.Sprintf("messages.%d.content.%d", n, i), role, b); err != nil {
			return err
		}
	}
	return nil
}

// blockMembers are those that a block must have, by its type.
var blockMembers = map[string][]string{
	"text": {"text"}, "image": {"source"}, "document": {"source"}, "tool_use": {"id", "name", "input"}, "tool_result": {"tool_use_id"},
	"thinking": {"thinking", "signature"}, "redacted_thinking": {"data"}, "compaction": {"content"},
}

func checkBlock(at, role string, block json.RawMessage) *APIError {
	o := asObject(block)
	kind := asString(o["type"])
	needed, known := blockMembers[kind]
	switch spoken := kind == "tool_use" || kind == "compaction" || strings.HasSuffix(kind, "thinking"); {
	case !known:
		return refuse("", "", "%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, kind)
	case spoken && role == "user":
		return refuse("", "", "%s: `%s` blocks can only be in `assistant` messages", at, kind)
	case kind == "tool_result" && role == "assistant":
		return refuse("", "", "%s: `tool_result` blocks can only be in `user` messages", at)
	case kind == "compaction" && !strings.HasPrefix(asString(o["content"]), compacted):
		return refuse("", "", "%s.compaction: the block was not made by this API", at)
	case kind == "tool_use" && kindOf(o["input"]) != kindObject:
		return refuse("", "", "%s.tool_use.input: Input should be a valid dictionary", at)
	}
	for _, key := range needed {
		if kindOf(o[key]) == kindAbsent {
			return refuse("", "", "%s.%s.%s: Field required", at, kind, key)
		}
	}
	if kind == "text" && strings.TrimSpace(asString(o["text"])) == "" {
		return refuse("", "", "messages: text content blocks must be non-empty")
	}
	return nil
}

// checkPairs: turns of one role that follow each other are one; the results of all calls of a turn begin the next one.
func checkPairs(messages []json.RawMessage) *APIError {
	var open, seen []string // ids of calls that wait for a result; of all calls
	messages = slices.DeleteFunc(slices.Clone(messages), func(m json.RawMessage) bool { return asString(asObject(m)["role"]) == "system" })
	for n := 0; n < len(messages); {
		role := asString(asObject(messages[n])["role"])
		at, blocks := n, []json.RawMessage(nil)
		for ; n < len(messages) && asString(asObject(messages[n])["role"]) == role; n++ {
			blocks = append(blocks, blocksOf(asObject(messages[n])["content"])...)
		}
		if role == "user" {
			var err *APIError
			if open, err = checkResults(at, blocks, open); err != nil {
				return err
			}
			continue
		}
		for _, b := range blocks {
			o := asObject(b)
			if asString(o["type"]) != "tool_use" {
				continue
			}
			id := asString(o["id"])
			if slices.Contains(seen, id) {
				return refuse("", "", "messages.%d: `tool_use` ids must be unique", at)
			}
			open, seen = append(open, id), append(seen, id)
		}
	}
	return nil
}

func checkResults(at int, blocks []json.RawMessage, open []string) ([]string, *APIError) {
	behind := false
	for i, b := range blocks {
		o := asObject(b)
		if asString(o["type"]) != "tool_result" {
			behind = true
			continue
		}
		id := asString(o["tool_use_id"])
		place := slices.Index(open, id)
		if place < 0 {
			return nil, refuse("", "", "messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` "+
				"block must have a corresponding `tool_use` block in the previous message.", at, i, id)
		}
		if behind {
			return nil, refuse("", "", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s.", at, id)
		}
		open = slices.Delete(open, place, place+1)
	}
	if len(open) > 0 {
		return nil, refuse("", "", "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each "+
			"`tool_use` block must have a corresponding `tool_result` block in the next message.", at-1, strings.Join(open, ", "))
	}
	return nil, nil
}
