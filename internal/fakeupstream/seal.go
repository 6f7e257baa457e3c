package fakeupstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Seal is a format in which answers carry sealed reasoning. The format decides what the reasoning is bound to.
type Seal string

// The formats. Reasoning in the first two is bound to everything before it, as Anthropic documents: it is refused if an earlier
// message or tool has changed, or if a sealed block between two others is missing. In the third it is bound to its own message
// (OpenAI): neither is accepted without the other. In the fourth it is required in the current turn (Gemini).
const (
	SealThinkingBlocks   Seal = "thinking_blocks"
	SealClaudeDetails    Seal = "anthropic-claude-v1"
	SealResponsesDetails Seal = "openai-responses-v1"
	SealThoughtSignature Seal = "thought_signature"
)

// Seals returns all formats.
func Seals() []Seal {
	return []Seal{SealThinkingBlocks, SealClaudeDetails, SealResponsesDetails, SealThoughtSignature}
}

func (f Seal) bindsPrefix() bool { return f == SealThinkingBlocks || f == SealClaudeDetails }

// seals records which calls were sealed. It is guarded by Server.mu.
type seals struct {
	answers int             // so far
	calls   map[string]bool // IDs of calls that came with reasoning
}

// sealsNext reports whether the next answer carries reasoning.
func (s *Server) sealsNext() bool {
	if s.options.Seals == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.sealed.answers
	s.sealed.answers++
	return s.options.SealWhen == nil || s.options.SealWhen(n)
}

// digest returns a short hash of all parts.
func digest(parts ...json.RawMessage) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// maker identifies the model of a request in the signatures it makes. Other models drop these.
func maker(r *Request) string { return digest(json.RawMessage(r.Model))[:8] }

// bind signs reasoning that is bound to the tools, to the given parts, and to the sealed block before it, if any.
func (x *exchange) bind(previous string, parts ...json.RawMessage) string {
	parts = append(parts, x.req.Tools, json.RawMessage(previous))
	return "prefix." + previous + "." + maker(x.req) + "." + digest(parts...)
}

// drops reports whether a block with the wrong signature is dropped instead of refused. Blocks of another model always are, others
// only if the request asks for it. https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) drops(signature string) bool {
	asked := textAt(x.top["thinking"], "block_binding", "prefix_mismatch_behavior") == "drop_block" &&
		strings.Contains(x.req.Header.Get("Anthropic-Beta"), "thinking-binding-controls")
	return asked || !strings.Contains(signature, "."+maker(x.req)+".")
}

// seal adds sealed reasoning to an answer.
func (x *exchange) seal(message json.RawMessage) json.RawMessage {
	s, form := x.server, x.server.options.Seals
	calls := asArray(at(message, "tool_calls"))
	if !s.sealsNext() || form == SealThoughtSignature && len(calls) == 0 {
		return message
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range calls {
		if form != SealThoughtSignature || i == 0 { // the first call of a message carries it for all
			s.sealed.calls[textAt(c, "id")] = true
		}
	}
	previous := ""
	for _, m := range x.req.Messages {
		if signature := form.signature(m); signature != "" {
			previous = signature
		}
	}
	return form.attach(message, x.sign(len(x.req.Messages), message, lastPart(previous)))
}

// sign returns the signature of the message at index n. previous is the last part of the signature before it.
func (x *exchange) sign(n int, message json.RawMessage, previous string) string {
	form := x.server.options.Seals
	switch {
	case form.bindsPrefix():
		var parts []json.RawMessage
		for _, m := range x.req.Messages[:n] {
			parts = append(parts, without(m, "thinking_blocks", "reasoning_details"))
		}
		return x.bind(previous, parts...)
	case form == SealThoughtSignature:
		return string(form) + "." + digest(json.RawMessage(firstCall(message)))
	}
	parts := []json.RawMessage{json.RawMessage(contentText(at(message, "content")))}
	for _, c := range asArray(at(message, "tool_calls")) {
		parts = append(parts, at(c, "id"))
	}
	return string(form) + "." + digest(parts...)
}

func lastPart(signature string) string {
	return signature[strings.LastIndexByte(signature, '.')+1:]
}

// first returns the first element of an array, or nil.
func first(array json.RawMessage) json.RawMessage {
	if all := asArray(array); len(all) > 0 {
		return all[0]
	}
	return nil
}

func firstCall(message json.RawMessage) string { return textAt(first(at(message, "tool_calls")), "id") }

// attach adds a signature to a message.
func (f Seal) attach(message json.RawMessage, signature string) json.RawMessage {
	add := func(key string, element json.RawMessage) json.RawMessage {
		return joinObject(append(membersOf(message), member{key, mustJSON([]json.RawMessage{element})}))
	}
	switch f {
	case SealThinkingBlocks:
		return add("thinking_blocks", build("signature", signature, "thinking", "A thought.", "type", "thinking"))
	case SealClaudeDetails:
		return add("reasoning_details", build("format", f, "index", 0, "signature", signature, "text", "A thought.", "type", "reasoning.text"))
	case SealResponsesDetails:
		return add("reasoning_details", build("data", signature, "format", f, "id", "rs_"+lastPart(signature), "index", 0, "type", "reasoning.encrypted"))
	}
	calls := asArray(at(message, "tool_calls"))
	extra := member{"extra_content", build("google", build("thought_signature", signature))}
	calls[0] = joinObject(append(membersOf(calls[0]), extra))
	return replaced(message, "tool_calls", mustJSON(calls))
}

// signature returns the signature of a message, or "".
func (f Seal) signature(message json.RawMessage) string {
	switch f {
	case SealThinkingBlocks:
		return textAt(first(at(message, "thinking_blocks")), "signature")
	case SealThoughtSignature:
		return textAt(first(at(message, "tool_calls")), "extra_content", "google", "thought_signature")
	}
	details := first(at(message, "reasoning_details"))
	return textAt(details, "signature") + textAt(details, "data")
}

// checkSeals checks the sealed reasoning in a Chat Completions request.
func (x *exchange) checkSeals() *APIError {
	form, messages := x.server.options.Seals, x.req.Messages
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	var v verdict
	x.checkOpenLoop(&v)
	turn, previous := lastOf(messages, "user"), ""
	for n, m := range messages {
		if textAt(m, "role") != "assistant" {
			continue
		}
		at, signature := place(n), form.signature(m)
		switch id := firstCall(m); {
		case signature == "" && (id == "" || !x.server.sealed.calls[id]):
		case signature == "" && form == SealResponsesDetails:
			v.refuse(at, "", "Item 'fc_%s' of type 'function_call' was provided without its required 'reasoning' item.", id)
		case signature == "" && form == SealThoughtSignature && n > turn:
			v.refuse(at, "", "Function call is missing a thought_signature in functionCall parts.")
		case signature == "":
		case form.bindsPrefix():
			before, _, _ := strings.Cut(strings.TrimPrefix(signature, "prefix."), ".")
			torn := previous != "" && lastPart(previous) != before
			if torn || signature != x.sign(n, m, before) {
				if x.drops(signature) {
					continue
				}
				v.refuse(at, "", "%s: the thinking block is bound to a different conversation.", at)
			}
			previous = signature
		case signature != x.sign(n, m, ""):
			v.refuse(at, "", "%s: the reasoning belongs to another item.", at)
		}
	}
	return v.err
}

func place(n int) string { return fmt.Sprintf("messages.%d", n) }

// lastOf returns the index of the newest message of a role, or -1.
func lastOf(messages []json.RawMessage, role string) int {
	for n := len(messages) - 1; n >= 0; n-- {
		if textAt(messages[n], "role") == role {
			return n
		}
	}
	return -1
}

const noThinking = "%s.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`."

// checkOpenLoop checks that with thinking enabled, the newest assistant message of an open tool loop begins with its thinking.
func (x *exchange) checkOpenLoop(v *verdict) {
	form, messages := x.server.options.Seals, x.req.Messages
	last := len(messages) - 1
	if !form.bindsPrefix() || textAt(x.top["thinking"], "type") != "enabled" || last < 0 || textAt(messages[last], "role") != "tool" {
		return
	}
	n := lastOf(messages, "assistant")
	if n >= 0 && x.server.sealed.calls[firstCall(messages[n])] && form.signature(messages[n]) == "" {
		v.refuse(place(n), "", noThinking, place(n), "tool_use")
	}
}

// think puts a signed block at the front of a Messages API answer, bound to everything before it.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) think(blocks []json.RawMessage) []json.RawMessage {
	if !x.server.sealsNext() {
		return blocks
	}
	return slices.Insert(blocks, 0, build("type", "thinking", "thinking", "A thought.", "signature", x.bindBlocks(len(x.req.Messages))))
}

// bindBlocks returns the signature of thinking in the message at index n.
func (x *exchange) bindBlocks(n int) string {
	parts := []json.RawMessage{unmarked(x.top["system"])}
	for _, m := range x.req.Messages[:n] {
		blocks := slices.DeleteFunc(blocksOf(m), isThinking)
		parts = append(parts, at(m, "role"), unmarked(mustJSON(blocks)))
	}
	return x.bind("", parts...)
}

func isThinking(block json.RawMessage) bool {
	kind := textAt(block, "type")
	return kind == "thinking" || kind == "redacted_thinking"
}

// checkThinking refuses thinking that was made after other messages. With thinking enabled it also refuses an open tool loop whose
// newest message does not begin with thinking.
func (x *exchange) checkThinking() *APIError {
	var v verdict
	messages := x.req.Messages
	for n, m := range messages {
		for _, b := range blocksOf(m) {
			if signature := textAt(b, "signature"); isThinking(b) && signature != x.bindBlocks(n) && !x.drops(signature) {
				v.say("%s: the thinking block is bound to a different conversation.", place(n))
			}
		}
	}
	last := len(messages) - 1
	if textAt(x.top["thinking"], "type") != "enabled" || last < 1 || x.server.options.SealWhen != nil {
		return v.err
	}
	called := blocksOf(messages[last-1])
	answers := slices.ContainsFunc(blocksOf(messages[last]), func(b json.RawMessage) bool { return textAt(b, "type") == "tool_result" })
	if answers && len(called) > 0 && !isThinking(called[0]) {
		v.say(noThinking, place(last-1), textAt(called[0], "type"))
	}
	return v.err
}

// reason puts reasoning at the front of items. It is bound to everything before it if the server's seal is, else to the first item:
// neither is accepted without the other.
// https://platform.openai.com/docs/guides/reasoning
func (x *exchange) reason(items, before []json.RawMessage) []json.RawMessage {
	s := x.server
	if !s.sealsNext() {
		return items
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("rs_%06d", x.req.Index)
	members := []any{"type", "reasoning", "id", id, "summary", []string{}}
	if s.options.Seals.bindsPrefix() {
		members = append(members, "format", SealClaudeDetails, "signature", x.bindItems(before))
	} else {
		for _, item := range items {
			s.kept.reasons[textAt(item, "id")] = id
		}
		members = append(members, "encrypted_content", encrypted(id, items[0]))
	}
	return slices.Insert(items, 0, build(members...))
}

// bindItems returns the signature of reasoning after these items.
func (x *exchange) bindItems(items []json.RawMessage) string {
	parts := []json.RawMessage{x.top["instructions"]}
	for _, item := range items {
		if typeOf(item) != "reasoning" {
			parts = append(parts, without(item, "id", "status"))
		}
	}
	return x.bind("", parts...)
}

// encrypted returns the sealed content of reasoning that belongs to an item. It does not depend on the server.
func encrypted(id string, follower json.RawMessage) string {
	return "sealed." + id + "." + digest(json.RawMessage(typeOf(follower)), at(follower, "call_id"), json.RawMessage(contentText(at(follower, "content"))))
}

// checkReasoning refuses reasoning without the item it belongs to, an item without its reasoning, and reasoning bound to another
// history. The caller holds Server.mu.
func (x *exchange) checkReasoning(v *verdict, items []json.RawMessage) {
	seen := map[string]bool{}
	for i, item := range items {
		id, kind := textAt(item, "id"), typeOf(item)
		if needed := x.server.kept.reasons[id]; needed != "" && !seen[needed] {
			v.refuse("input", "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, kind, needed)
		}
		if kind != "reasoning" {
			continue
		}
		if signature := textAt(item, "signature"); signature != "" && signature != x.bindItems(items[:i]) && !x.drops(signature) {
			v.refuse("input", "", "input[%d]: the reasoning is bound to a different conversation.", i)
		}
		sealed := textAt(item, "encrypted_content")
		parts := strings.Split(sealed, ".")
		switch {
		case sealed == "":
		case len(parts) != 3 || parts[0] != "sealed":
			v.refuse("input", "invalid_encrypted_content", "The encrypted content for item %s could not be verified.", id)
		case i+1 == len(items) || encrypted(parts[1], items[i+1]) != sealed:
			v.refuse("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", parts[1])
		default:
			seen[parts[1]] = true
		}
	}
}
