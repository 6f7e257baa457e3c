package fakeupstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// messages handles a request of Anthropic's Messages API. Answers are scripted in OpenAI's format and sent in Anthropic's.
// https://docs.claude.com/en/api/messages
func (x *exchange) messages() *APIError {
	if err := x.judgeMessages(true); err != nil {
		return err
	}
	if err := x.admit(x.req.Messages, messagesLimits); err != nil {
		return err
	}
	if x.server.options.Seals != "" {
		if err := x.checkThinking(); err != nil {
			return err
		}
	}
	if given(x.top["compaction"]) {
		x.play(Answer{}, func(a Answer) reply { return x.message(a, "compaction", x.compactionBlock()) })
		return nil
	}
	x.respond(func(a Answer) reply {
		blocks := x.think(contentBlocks(a.message()))
		stop := "end_turn"
		switch last := len(blocks) - 1; {
		case a.FinishReason == "length":
			stop = "max_tokens"
		case last >= 0 && textAt(blocks[last], "type") == "tool_use":
			stop = "tool_use"
		}
		if trigger := compactsAt(x.top["context_management"]); trigger > 0 && x.req.PromptTokens > trigger {
			blocks = slices.Insert(blocks, 0, x.compactionBlock())
		}
		return x.message(a, stop, blocks...)
	})
	return nil
}

// countTokens answers with the number of tokens of a request.
// https://docs.claude.com/en/api/messages-count-tokens
func (x *exchange) countTokens() *APIError {
	if err := x.judgeMessages(false); err != nil {
		return err
	}
	x.sendJSON(`{"input_tokens":%d}`, x.measure(x.req.Messages).prompt)
	return nil
}

func messagesLimits(s size, window int) *APIError {
	switch {
	case window == 0:
		return nil
	case s.prompt > window:
		return refuse("", "context_length_exceeded", "prompt is too long: %d tokens > %d maximum", s.prompt, window)
	case s.prompt+s.output > window:
		return refuse("", "context_length_exceeded", "input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or "+
			"`max_tokens` and try again", s.prompt, s.output, window)
	}
	return nil
}

// compactionBlock returns a block that replaces all messages of the request.
func (x *exchange) compactionBlock() json.RawMessage {
	return build("type", "compaction", "content", compactionOf(x.req.Messages), "encrypted_content", nil)
}

// compactsAt returns the number of tokens above which an edit compacts, or 0 if none does. 150,000 is the API's default.
func compactsAt(management json.RawMessage) int {
	for _, edit := range asArray(at(management, "edits")) {
		if textAt(edit, "type") == "compact_20260112" {
			if trigger := at(edit, "trigger", "value"); given(trigger) {
				return asCount(trigger)
			}
			return 150_000
		}
	}
	return 0
}

// unmarked removes cache_control at any depth: caching marks are not part of a prefix.
func unmarked(raw json.RawMessage) json.RawMessage {
	switch kindOf(raw) {
	case kindArray:
		all := asArray(raw)
		for i := range all {
			all[i] = unmarked(all[i])
		}
		return mustJSON(all)
	case kindObject:
		return edited(raw, func(m *member) bool {
			m.value = unmarked(m.value)
			return m.key != "cache_control"
		})
	}
	return raw
}

// contentBlocks translates an OpenAI assistant message to Anthropic's blocks.
func contentBlocks(message json.RawMessage) []json.RawMessage {
	var blocks []json.RawMessage
	if text := contentText(at(message, "content")); strings.TrimSpace(text) != "" {
		blocks = append(blocks, textBlock(text))
	}
	for _, call := range asArray(at(message, "tool_calls")) {
		input := json.RawMessage(textAt(call, "function", "arguments"))
		if kindOf(input) != kindObject || !json.Valid(input) {
			input = build("arguments", string(input))
		}
		blocks = append(blocks, build("type", "tool_use", "id", at(call, "id"), "name", at(call, "function", "name"), "input", input))
	}
	return blocks
}

func textBlock(text string) json.RawMessage { return build("text", text, "type", "text") }

// anthropicMessage is the reply to a request of the Messages API.
type anthropicMessage struct {
	index       int
	model, stop string
	blocks      []json.RawMessage
	usage       Usage
}

// message returns the reply. The settings count as the start of the prompt: changing one invalidates the cached messages.
func (x *exchange) message(a Answer, stop string, blocks ...json.RawMessage) reply {
	prompt := []json.RawMessage{unmarked(x.top["system"]), x.top["tool_choice"], x.top["thinking"]}
	prompt = append(prompt, asArray(unmarked(mustJSON(x.req.Messages)))...)
	return &anthropicMessage{
		index: x.req.Index, model: x.req.Model, blocks: blocks, stop: stop, usage: x.bill(a, x.top["output_config"], prompt, blocks...),
	}
}

func (m *anthropicMessage) head(content []json.RawMessage, stop any, output int) json.RawMessage {
	usage := map[string]int{
		"input_tokens": m.usage.Prompt - m.usage.Cached, "cache_read_input_tokens": m.usage.Cached, "cache_creation_input_tokens": 0, "output_tokens": output,
	}
	return build("id", fmt.Sprintf("msg_%06d", m.index), "type", "message", "role", "assistant", "model", m.model,
		"content", append([]json.RawMessage{}, content...), "stop_reason", stop, "stop_sequence", nil, "usage", usage)
}

func (m *anthropicMessage) whole() []byte { return m.head(m.blocks, m.stop, m.usage.Completion) }

// events: https://docs.claude.com/en/docs/build-with-claude/streaming
func (m *anthropicMessage) events(runes int) [][]byte {
	var all [][]byte
	add := func(kind string, pairs ...any) {
		all = append(all, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, build(append([]any{"type", kind}, pairs...)...)))
	}
	add("message_start", "message", m.head(nil, nil, 1))
	add("ping")
	for i, block := range m.blocks {
		opening, deltas := streamedBlock(block, runes)
		add("content_block_start", "index", i, "content_block", opening)
		for _, delta := range deltas {
			add("content_block_delta", "index", i, "delta", delta)
		}
		add("content_block_stop", "index", i)
	}
	add("message_delta", "delta", build("stop_reason", m.stop, "stop_sequence", nil), "usage", build("output_tokens", m.usage.Completion))
	add("message_stop")
	return all
}

// streamedBlock returns the block that opens a content block in a stream, and the deltas that fill it.
func streamedBlock(block json.RawMessage, runes int) (opening json.RawMessage, deltas []json.RawMessage) {
	key, o := textAt(block, "type"), asObject(block)
	kind, of, text, empty := key+"_delta", key, o[key], json.RawMessage(`""`)
	switch key {
	case "text", "thinking":
	case "tool_use":
		key, kind, of, text, empty = "input", "input_json_delta", "partial_json", mustJSON(string(o["input"])), json.RawMessage("{}")
	case "compaction":
		whole := build("type", kind, "content", o["content"], "encrypted_content", o["encrypted_content"])
		return build("type", "compaction", "content", nil), []json.RawMessage{whole}
	default:
		return block, nil
	}
	opening = without(replaced(block, key, empty), "signature")
	for _, piece := range splitString(text, runes) {
		deltas = append(deltas, build("type", kind, of, piece))
	}
	if given(o["signature"]) {
		deltas = append(deltas, build("type", "signature_delta", "signature", o["signature"]))
	}
	return opening, deltas
}
