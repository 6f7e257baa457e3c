package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// messages answers a request of Anthropic's Messages API. Answers are scripted in OpenAI's format and sent in Anthropic's.
// https://docs.claude.com/en/api/messages
func (x *exchange) messages() {
	if x.top.at("compaction").given() {
		x.play(Answer{}, func(a Answer) reply { return x.message(a, "compaction", x.compactionBlock()) })
		return
	}
	words := map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}
	x.respond(func(a Answer) reply {
		message := a.message()
		blocks, stop := x.think(contentBlocks(message)), words[a.finishReason(message)]
		if trigger := compactsAt(x.top.at("context_management")); trigger > 0 && x.req.PromptTokens > trigger {
			blocks = slices.Insert(blocks, 0, x.compactionBlock())
		}
		return x.message(a, stop, blocks...)
	})
}

// countTokens answers with the number of tokens of a request.
// https://docs.claude.com/en/api/messages-count-tokens
func (x *exchange) countTokens() { x.sendJSON(`{"input_tokens":%d}`, x.measure().prompt) }

func messagesLimits(s size) *APIError {
	switch {
	case s.prompt > s.window:
		return refuse("", "context_length_exceeded", "prompt is too long: %d tokens > %d maximum", s.prompt, s.window)
	case s.prompt+s.output > s.window:
		return refuse("", "context_length_exceeded", "input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or "+
			"`max_tokens` and try again", s.prompt, s.output, s.window)
	}
	return nil
}

// compactionBlock returns a block that replaces all messages of the request.
func (x *exchange) compactionBlock() value {
	return object("type", "compaction", "content", compactionOf(x.history), "encrypted_content", nil)
}

// compactsAt returns the number of tokens above which an edit compacts, or 0 if none does. 150,000 is the API's default.
func compactsAt(management value) int {
	for _, edit := range management.at("edits").elements {
		if edit.at("type").text == "compact_20260112" {
			return cmp.Or(asCount(edit.at("trigger", "value")), 150_000)
		}
	}
	return 0
}

// unmarked removes cache_control at any depth: caching marks are not part of a prefix.
func unmarked(v value) json.RawMessage {
	switch v.kind {
	case kindArray:
		return mustJSON(each(v.elements, unmarked))
	case kindObject:
		return edited(v, func(m *value) bool {
			m.raw = unmarked(*m)
			return m.key != "cache_control"
		})
	}
	return v.raw
}

// contentBlocks translates an OpenAI assistant message to Anthropic's blocks.
func contentBlocks(message value) []value {
	var blocks []value
	if text := contentText(message); strings.TrimSpace(text) != "" {
		blocks = append(blocks, textBlock(text))
	}
	for _, call := range message.at("tool_calls").elements {
		input := json.RawMessage(call.at("function", "arguments").text)
		if parse(input).kind != kindObject {
			input = build("arguments", string(input))
		}
		blocks = append(blocks, object("type", "tool_use", "id", call.at("id"), "name", call.at("function", "name"), "input", input))
	}
	return blocks
}

func textBlock(text string) value { return object("text", text, "type", "text") }

// message returns the reply to a request of the Messages API. The settings count as the start of the prompt: changing one invalidates
// the cached messages. The events: https://docs.claude.com/en/docs/build-with-claude/streaming
func (x *exchange) message(a Answer, stop string, blocks ...value) reply {
	prompt := []json.RawMessage{unmarked(x.top.at("system")), x.top.at("tool_choice").raw, x.top.at("thinking").raw}
	used := x.bill(a, x.top.at("output_config"), append(prompt, each(x.history, unmarked)...), blocks...)
	head := func(content []value, stop any, output int) json.RawMessage {
		var usage any = map[string]int{
			"input_tokens": used.Prompt - used.Cached - used.Written, "cache_read_input_tokens": used.Cached,
			"cache_creation_input_tokens": used.Written, "output_tokens": output,
		}
		if a.OmitUsage {
			usage = nil
		}
		return build("id", fmt.Sprintf("msg_%06d", x.req.Index), "type", "message", "role", "assistant", "model", x.req.Model,
			"content", raws(content), "stop_reason", stop, "stop_sequence", nil, "usage", usage)
	}
	return reply{head(blocks, stop, used.Completion), func(runes int, add func(event []byte)) {
		add(event("message_start", "message", head(nil, nil, 1)))
		add(event("ping"))
		for i, block := range blocks {
			opening, deltas := streamedBlock(block, runes)
			add(event("content_block_start", "index", i, "content_block", opening))
			for _, delta := range deltas {
				add(event("content_block_delta", "index", i, "delta", delta))
			}
			add(event("content_block_stop", "index", i))
		}
		add(event("message_delta", "delta", build("stop_reason", stop, "stop_sequence", nil), "usage", build("output_tokens", used.Completion)))
		add(event("message_stop"))
	}}
}

// event returns an event of a stream with its type and further members.
func event(kind string, pairs ...any) []byte {
	return fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, build(append([]any{"type", kind}, pairs...)...))
}

// streamedBlock returns the block that opens a content block in a stream, and the deltas that fill it.
func streamedBlock(block value, runes int) (opening json.RawMessage, deltas []json.RawMessage) {
	key := block.at("type").text
	kind, of, text, empty := key+"_delta", key, block.at(key).raw, `""`
	switch key {
	case "tool_use":
		key, kind, of, text, empty = "input", "input_json_delta", "partial_json", mustJSON(string(block.at("input").raw)), "{}"
	case "compaction":
		whole := build("type", kind, "content", block.at("content"), "encrypted_content", block.at("encrypted_content"))
		return build("type", "compaction", "content", nil), []json.RawMessage{whole}
	}
	opening = changed(block, map[string]string{key: empty, "signature": ""})
	for _, piece := range splitString(text, runes) {
		deltas = append(deltas, build("type", kind, of, piece))
	}
	if signature := block.at("signature"); signature.given() {
		deltas = append(deltas, build("type", "signature_delta", "signature", signature))
	}
	return opening, deltas
}
