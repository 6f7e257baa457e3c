package fakeupstream

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// judgeMessages checks a request, regardless of its size, and drops what precedes the newest compaction. The rules come from
// https://docs.claude.com/en/api/messages, https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use (order
// and pairing), and https://docs.claude.com/en/docs/build-with-claude/prompt-caching (four marks).
func (x *exchange) judgeMessages(v *verdict) {
	top, all := x.top, x.history
	v.sayIf(x.r.Header.Get("Anthropic-Version") == "", "anthropic-version: header is required")
	v.fail(checkContentType(x.r.Header))
	counted := strings.HasSuffix(x.r.URL.Path, "/count_tokens") // only the tokens are requested, not an answer
	v.sayIf(top.kind != kindObject, "The request body is not valid JSON: expected an object")
	v.sayIf(x.req.Model == "", "model: Field required")
	v.sayIf(!counted && asCount(top.at("max_tokens")) < 1, "max_tokens: Field required")
	v.sayIf(top.at("messages").kind != kindArray, "messages: Field required")
	v.sayIf(len(all) == 0, "messages: at least one message is required")
	edits, compacts := top.at("context_management").given(), top.at("compaction").given()
	v.sayIf(x.server.unable && edits, "context_management: Extra inputs are not permitted")
	v.sayIf(x.server.unable && compacts, "compaction: Extra inputs are not permitted")
	v.sayIf(compacts && edits, "compaction: cannot be combined with context_management")
	v.sayIf(marks(top) > 4, "A maximum of 4 blocks with cache_control may be provided. Found %d.", marks(top))
	if !x.server.options.serves(x.req.Model) {
		v.fail(&APIError{http.StatusNotFound, "model: " + x.req.Model, "not_found_error", "", ""})
	}
	for n, m := range all {
		v.element(n, m, n == len(all)-1)
	}
	v.placement(all)
	v.pairs(all)
	for n, m := range slices.Backward(all) {
		blocks := m.at("content").elements
		if i := slices.IndexFunc(blocks, func(b value) bool { return b.at("type").text == "compaction" }); i >= 0 {
			x.history = slices.Concat([]value{object("role", "assistant", "content", raws(blocks[i:]))}, all[n+1:])
			break
		}
	}
}

// sayIf refuses a request that is wrong. Anthropic's errors name no parameter.
func (v *verdict) sayIf(wrong bool, format string, args ...any) {
	v.refuseIf(wrong, "", "", format, args...)
}

// marks counts the blocks marked for caching.
func marks(v value) (n int) {
	for _, e := range v.elements {
		n += marks(e)
	}
	for i, m := range v.members {
		switch again := func(later value) bool { return later.key == m.key }; {
		case m.key == "input", m.key == "input_schema", slices.ContainsFunc(v.members[i+1:], again): // the last of equal keys counts
		case m.key == "cache_control" && m.given():
			n++
		default:
			n += marks(m)
		}
	}
	return n
}

func (v *verdict) element(n int, message value, last bool) {
	role, blocks := message.at("role").text, blocksOf(message)
	known := []string{"role", "content"}
	if role == "system" {
		known = append(known, "clear_at", "output_config")
	}
	key := firstUnknown(message, known)
	v.sayIf(key != "", "messages.%d.%s: Extra inputs are not permitted", n, key)
	speaks := role == "user" || role == "assistant" || role == "system" && n > 0 // newer models accept later system messages
	v.sayIf(!speaks, "messages.%d.role: Input should be 'user' or 'assistant'", n)
	compacts := len(blocks) > 0 && blocks[0].at("type").text == "compaction"
	v.sayIf(n == 0 && role != "user" && !compacts, "messages: first message must use the \"user\" role")
	sets := role == "system" && message.at("output_config").kind == kindObject // such a message may be empty
	if sets && strings.TrimSpace(message.at("content").text) == "" && len(message.at("content").elements) == 0 {
		return
	}
	v.sayIf(len(blocks) == 0 && !(last && role == "assistant"),
		"messages.%d: all messages must have non-empty content except for the optional final assistant message", n)
	for i, b := range blocks {
		v.block(fmt.Sprintf("messages.%d.content.%d", n, i), role, b)
	}
}

// placement checks the positions of system messages. Consecutive ones count as one.
// https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages#limitations
func (v *verdict) placement(all []value) {
	isSystem := func(m value) bool { return m.at("role").text == "system" }
	for n := 1; n < len(all); n++ {
		before, blocks := all[n-1], blocksOf(all[n-1])
		afterResult := len(blocks) > 0 && strings.HasSuffix(blocks[len(blocks)-1].at("type").text, "_tool_result")
		follows := isSystem(before) || before.at("role").text == "user" || afterResult
		v.sayIf(isSystem(all[n]) && !follows,
			"messages.%d: role 'system' must follow a 'user' message or an 'assistant' message ending in a server tool result", n)
		v.sayIf(isSystem(before) && all[n].at("role").text == "user",
			"messages.%d: role 'system' must precede an 'assistant' message or end the array", n-1)
	}
}

// blocksOf returns the blocks of a message. A string counts as one text block.
func blocksOf(message value) []value {
	content := message.at("content")
	if content.kind == kindString {
		return []value{textBlock(content.text)}
	}
	return content.elements
}

// blockMembers lists the required members of a block, by its type.
var blockMembers = map[string][]string{
	"text": {"text"}, "image": {"source"}, "document": {"source"}, "tool_use": {"id", "name", "input"}, "tool_result": {"tool_use_id"},
	"thinking": {"thinking", "signature"}, "redacted_thinking": {"data"}, "compaction": {"content"},
}

func (v *verdict) block(at, role string, o value) {
	kind := o.at("type").text
	needed, known := blockMembers[kind]
	generated := kind == "tool_use" || kind == "compaction" || isThinking(o)
	v.sayIf(!known, "%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, kind)
	v.sayIf(generated && role == "user", "%s: `%s` blocks can only be in `assistant` messages", at, kind)
	v.sayIf(kind == "tool_result" && role == "assistant", "%s: `tool_result` blocks can only be in `user` messages", at)
	ours := strings.HasPrefix(o.at("content").text, compacted)
	v.sayIf(kind == "compaction" && !ours, "%s.compaction: the block was not made by this API", at)
	v.sayIf(kind == "tool_use" && o.at("input").kind != kindObject, "%s.tool_use.input: Input should be a valid dictionary", at)
	for _, key := range needed {
		v.sayIf(o.at(key).kind == kindAbsent, "%s.%s.%s: Field required", at, kind, key)
	}
	v.sayIf(kind == "text" && strings.TrimSpace(o.at("text").text) == "", "messages: text content blocks must be non-empty")
}

// pairs checks calls and results. Consecutive messages of one role are one turn. The results of all calls of a turn must come
// first in the next turn.
func (v *verdict) pairs(messages []value) {
	var open, seen []string // IDs of calls without a result yet; IDs of all calls
	messages = slices.DeleteFunc(slices.Clone(messages), func(m value) bool { return m.at("role").text == "system" })
	for n := 0; n < len(messages); {
		role, first := messages[n].at("role").text, n
		var blocks []value
		for ; n < len(messages) && messages[n].at("role").text == role; n++ {
			blocks = append(blocks, blocksOf(messages[n])...)
		}
		if role == "user" {
			v.results(first, blocks, open)
			open = nil
			continue
		}
		for _, b := range blocks {
			if id := b.at("id").text; b.at("type").text == "tool_use" {
				v.sayIf(slices.Contains(seen, id), "messages.%d: `tool_use` ids must be unique", first)
				open, seen = append(open, id), append(seen, id)
			}
		}
	}
}

// results checks the blocks of a user turn. open has the IDs of the calls of the turn before.
func (v *verdict) results(turn int, blocks []value, open []string) {
	others := false // whether a block other than a result came before
	for i, b := range blocks {
		if b.at("type").text != "tool_result" {
			others = true
			continue
		}
		id := b.at("tool_use_id").text
		place := slices.Index(open, id)
		v.sayIf(place < 0, "messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` "+
			"block must have a corresponding `tool_use` block in the previous message.", turn, i, id)
		if place < 0 {
			return
		}
		v.sayIf(others, "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s.", turn, id)
		open = slices.Delete(open, place, place+1)
	}
	v.sayIf(len(open) > 0, "messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each "+
		"`tool_use` block must have a corresponding `tool_result` block in the next message.", turn-1, strings.Join(open, ", "))
}
