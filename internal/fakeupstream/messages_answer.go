package fakeupstream

import (
	"encoding/json"
	"fmt"
)

// anthropicMessage is an answer with what Anthropic puts around it.
type anthropicMessage struct {
	index                 int
	model, stop           string
	blocks                []json.RawMessage
	fresh, cached, output int // tokens
}

func (m *anthropicMessage) usage(output int) json.RawMessage {
	return mustJSON(map[string]int{
		"input_tokens": m.fresh, "cache_read_input_tokens": m.cached, "cache_creation_input_tokens": 0, "output_tokens": output,
	})
}

func (m *anthropicMessage) head(content []json.RawMessage, stop json.RawMessage, output int) json.RawMessage {
	if content == nil {
		content = []json.RawMessage{}
	}
	return joinObject([]member{
		{"id", mustJSON(fmt.Sprintf("msg_%06d", m.index))}, {"type", mustJSON("message")}, {"role", mustJSON("assistant")},
		{"model", mustJSON(m.model)}, {"content", mustJSON(content)}, {"stop_reason", stop}, {"stop_sequence", json.RawMessage("null")},
		{"usage", m.usage(output)},
	})
}

// whole is the body of an answer that is not streamed.
func (m *anthropicMessage) whole() []byte { return m.head(m.blocks, mustJSON(m.stop), m.output) }

// events are those of a stream: https://docs.claude.com/en/docs/build-with-claude/streaming
func (m *anthropicMessage) events(runes int) [][]byte {
	var all [][]byte
	add := func(kind string, members ...member) {
		data := joinObject(append([]member{{"type", mustJSON(kind)}}, members...))
		all = append(all, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data))
	}
	add("message_start", member{"message", m.head(nil, json.RawMessage("null"), 1)})
	add("ping")
	for i, block := range m.blocks {
		index := member{"index", mustJSON(i)}
		opening, deltas := streamedBlock(block, runes)
		add("content_block_start", index, member{"content_block", opening})
		for _, delta := range deltas {
			add("content_block_delta", index, member{"delta", delta})
		}
		add("content_block_stop", index)
	}
	add("message_delta", member{"delta", mustJSON(map[string]any{"stop_reason": m.stop, "stop_sequence": nil})},
		member{"usage", mustJSON(map[string]int{"output_tokens": m.output})})
	add("message_stop")
	return all
}

// streamedBlock is how a block begins in a stream, and what follows.
func streamedBlock(block json.RawMessage, runes int) (opening json.RawMessage, deltas []json.RawMessage) {
	var key, kind string
	o, empty := asObject(block), json.RawMessage(`""`)
	switch asString(o["type"]) {
	case "text":
		key, kind = "text", "text_delta"
	case "thinking":
		key, kind = "thinking", "thinking_delta"
	case "tool_use":
		key, kind, empty = "input", "input_json_delta", json.RawMessage("{}")
	case "compaction":
		whole := joinObject([]member{{"type", mustJSON("compaction_delta")}, {"content", o["content"]}, {"encrypted_content", o["encrypted_content"]}})
		return json.RawMessage(`{"type":"compaction","content":null}`), []json.RawMessage{whole}
	default:
		return block, nil
	}
	var first []member
	for _, m := range membersOf(block) {
		if m.key == key {
			m.value = empty
		}
		if m.key != "signature" {
			first = append(first, m)
		}
	}
	text, of := o[key], key
	if key == "input" {
		text, of = mustJSON(string(text)), "partial_json"
	}
	for _, piece := range splitString(text, runes) {
		deltas = append(deltas, joinObject([]member{{"type", mustJSON(kind)}, {of, piece}}))
	}
	if given(o["signature"]) {
		deltas = append(deltas, joinObject([]member{{"type", mustJSON("signature_delta")}, {"signature", o["signature"]}}))
	}
	return joinObject(first), deltas
}
