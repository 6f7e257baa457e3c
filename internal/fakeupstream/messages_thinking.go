package fakeupstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// think puts a signed block in front of an answer, bound to all that stands before it.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) think(blocks []json.RawMessage) []json.RawMessage {
	s := x.server
	s.mu.Lock()
	n := s.sealed.answers
	s.sealed.answers++
	s.mu.Unlock()
	if s.options.SealWhen != nil && !s.options.SealWhen(n) {
		return blocks
	}
	block := joinObject([]member{
		{"type", mustJSON("thinking")}, {"thinking", mustJSON("A thought.")}, {"signature", mustJSON(x.signature(len(x.req.Messages)))},
	})
	return append([]json.RawMessage{block}, blocks...)
}

// signature is that of thinking in the message at index n.
func (x *exchange) signature(n int) string {
	h := sha256.New()
	h.Write(x.req.Tools)
	h.Write(unmarked(x.top["system"]))
	for _, m := range x.req.Messages[:n] {
		h.Write(mustJSON(withoutThinking(m)))
		h.Write([]byte{0})
	}
	return "bound." + maker(x.req) + "." + hex.EncodeToString(h.Sum(nil)[:12])
}

// withoutThinking is a message's role and its other blocks, without caching marks.
func withoutThinking(message json.RawMessage) []json.RawMessage {
	out := []json.RawMessage{asObject(message)["role"]}
	for _, b := range blocksOf(asObject(message)["content"]) {
		if !isThinking(b) {
			out = append(out, unmarked(b))
		}
	}
	return out
}

func isThinking(block json.RawMessage) bool {
	kind := asString(asObject(block)["type"])
	return kind == "thinking" || kind == "redacted_thinking"
}

// blocksOf gives the blocks of a content; a text is one.
func blocksOf(content json.RawMessage) []json.RawMessage {
	if kindOf(content) == kindString {
		return []json.RawMessage{mustJSON(map[string]string{"type": "text", "text": asString(content)})}
	}
	return asArray(content)
}

// checkThinking refuses thinking that stood behind something else when it was made, and, where thinking was switched on by hand,
// an open tool loop whose newest message does not begin with it though it was made so.
func (x *exchange) checkThinking() *APIError {
	messages := x.req.Messages
	for n, m := range messages {
		for _, b := range blocksOf(asObject(m)["content"]) {
			if signature := asString(asObject(b)["signature"]); isThinking(b) && signature != x.signature(n) && !x.drops(signature) {
				return refuse("", "", "messages.%d: the thinking block is bound to a different conversation.", n)
			}
		}
	}
	last := len(messages) - 1
	if asString(asObject(x.top["thinking"])["type"]) != "enabled" || last < 1 || x.server.options.SealWhen != nil || !hasResult(messages[last]) {
		return nil
	}
	if called := blocksOf(asObject(messages[last-1])["content"]); len(called) > 0 && !isThinking(called[0]) {
		return refuse("", "", "messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`.", last-1,
			asString(asObject(called[0])["type"]))
	}
	return nil
}

func hasResult(message json.RawMessage) bool {
	return slices.ContainsFunc(blocksOf(asObject(message)["content"]), func(b json.RawMessage) bool {
		return asString(asObject(b)["type"]) == "tool_result"
	})
}
