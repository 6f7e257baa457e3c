package fakeupstream

import (
	"cmp"
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

// sealsNext reports whether the next answer carries reasoning.
func (s *Server) sealsNext() bool {
	if s.options.Seals == "" {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.kept.answers
	s.kept.answers++
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
	parts = append(slices.Clip(parts), x.req.Tools, json.RawMessage(previous))
	return "prefix." + previous + "." + maker(x.req) + "." + digest(parts...)
}

// drops reports whether a block with the wrong signature is dropped instead of refused. Blocks of another model always are, others
// only if the request asks for it. https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) drops(signature string) bool {
	asked := x.top.at("thinking", "block_binding", "prefix_mismatch_behavior").text == "drop_block" &&
		strings.Contains(x.req.Header.Get("Anthropic-Beta"), "thinking-binding-controls")
	return asked || !strings.Contains(signature, "."+maker(x.req)+".")
}

// seal adds sealed reasoning to an answer.
func (x *exchange) seal(message value) value {
	s, form := x.server, x.server.options.Seals
	calls := message.at("tool_calls").elements
	if !s.sealsNext() || form == SealThoughtSignature && len(calls) == 0 {
		return message
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, c := range calls {
		if form != SealThoughtSignature || i == 0 { // the first call of a message carries it for all
			s.kept.sealed[c.at("id").text] = true
		}
	}
	previous := ""
	for _, m := range x.history {
		previous = cmp.Or(form.signature(m), previous)
	}
	return parse(form.attach(message, x.sign(each(x.history, unsealed), message, lastPart(previous))))
}

// unsealed returns a message without the reasoning that is bound to the messages before it.
func unsealed(m value) json.RawMessage { return without(m, "thinking_blocks", "reasoning_details") }

// sign returns the signature of a message after the unsealed messages before. previous is the last part of the signature before it.
func (x *exchange) sign(before []json.RawMessage, message value, previous string) string {
	form := x.server.options.Seals
	switch {
	case form.bindsPrefix():
		return x.bind(previous, before...)
	case form == SealThoughtSignature:
		return string(form) + "." + digest(json.RawMessage(firstCall(message)))
	}
	parts := []json.RawMessage{json.RawMessage(contentText(message))}
	for _, c := range message.at("tool_calls").elements {
		parts = append(parts, c.at("id").raw)
	}
	return string(form) + "." + digest(parts...)
}

func lastPart(signature string) string { return signature[strings.LastIndexByte(signature, '.')+1:] }

func firstCall(message value) string { return message.at("tool_calls").first().at("id").text }

// attach adds a signature to a message.
func (f Seal) attach(message value, signature string) json.RawMessage {
	key, element := "reasoning_details", json.RawMessage(nil)
	switch f {
	case SealThinkingBlocks:
		key, element = "thinking_blocks", build("signature", signature, "thinking", "A thought.", "type", "thinking")
	case SealClaudeDetails:
		element = build("format", f, "index", 0, "signature", signature, "text", "A thought.", "type", "reasoning.text")
	case SealResponsesDetails:
		element = build("data", signature, "format", f, "id", "rs_"+lastPart(signature), "index", 0, "type", "reasoning.encrypted")
	case SealThoughtSignature:
		calls := raws(message.at("tool_calls").elements)
		calls[0] = withMember(message.at("tool_calls").first(), "extra_content", build("google", build("thought_signature", signature)))
		return replaced(message, "tool_calls", mustJSON(calls))
	}
	return withMember(message, key, mustJSON([]json.RawMessage{element}))
}

// signature returns the signature of a message, or "".
func (f Seal) signature(message value) string {
	switch f {
	case SealThinkingBlocks:
		return message.at("thinking_blocks").first().at("signature").text
	case SealThoughtSignature:
		return message.at("tool_calls").first().at("extra_content", "google", "thought_signature").text
	}
	details := message.at("reasoning_details").first()
	return details.at("signature").text + details.at("data").text
}

// checkSeals checks the sealed reasoning in a Chat Completions request.
func (x *exchange) checkSeals() *APIError {
	form, messages := x.server.options.Seals, x.history
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	var v verdict
	x.checkOpenLoop(&v)
	turn, previous := lastOf(messages, "user"), ""
	before := each(messages, unsealed)
	for n, m := range messages {
		if m.at("role").text != "assistant" {
			continue
		}
		at, signature := place(n), form.signature(m)
		switch id := firstCall(m); {
		case signature == "" && (id == "" || !x.server.kept.sealed[id]):
		case signature == "" && form == SealResponsesDetails:
			v.refuse(at, "", "Item 'fc_%s' of type 'function_call' was provided without its required 'reasoning' item.", id)
		case signature == "" && form == SealThoughtSignature && n > turn:
			v.refuse(at, "", "Function call is missing a thought_signature in functionCall parts.")
		case signature == "":
		case form.bindsPrefix():
			after, _, _ := strings.Cut(strings.TrimPrefix(signature, "prefix."), ".")
			torn := previous != "" && lastPart(previous) != after
			if torn || signature != x.sign(before[:n], m, after) {
				if x.drops(signature) {
					continue
				}
				v.refuse(at, "", "%s: the thinking block is bound to a different conversation.", at)
			}
			previous = signature
		case signature != x.sign(nil, m, ""):
			v.refuse(at, "", "%s: the reasoning belongs to another item.", at)
		}
	}
	return v.err
}

func place(n int) string { return fmt.Sprintf("messages.%d", n) }

// lastOf returns the index of the newest message of a role, or -1.
func lastOf(messages []value, role string) int {
	for n := len(messages) - 1; n >= 0; n-- {
		if messages[n].at("role").text == role {
			return n
		}
	}
	return -1
}

const noThinking = "%s.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`."

// checkOpenLoop checks that with thinking enabled, the newest assistant message of an open tool loop begins with its thinking.
func (x *exchange) checkOpenLoop(v *verdict) {
	form, messages := x.server.options.Seals, x.history
	last := len(messages) - 1
	if !form.bindsPrefix() || x.top.at("thinking", "type").text != "enabled" || last < 0 || messages[last].at("role").text != "tool" {
		return
	}
	n := lastOf(messages, "assistant")
	if n >= 0 && x.server.kept.sealed[firstCall(messages[n])] && form.signature(messages[n]) == "" {
		v.refuse(place(n), "", noThinking, place(n), "tool_use")
	}
}

// think puts a signed block at the front of a Messages API answer, bound to everything before it.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) think(blocks []value) []value {
	if !x.server.sealsNext() {
		return blocks
	}
	return slices.Insert(blocks, 0, object("type", "thinking", "thinking", "A thought.", "signature", x.bindBlocks(len(x.history))))
}

// bindBlocks returns the signature of thinking in the message at index n.
func (x *exchange) bindBlocks(n int) string {
	parts := []json.RawMessage{unmarked(x.top.at("system"))}
	for _, m := range x.history[:n] {
		blocks := slices.DeleteFunc(slices.Clone(blocksOf(m)), isThinking)
		parts = append(parts, m.at("role").raw, mustJSON(each(blocks, unmarked)))
	}
	return x.bind("", parts...)
}

func isThinking(block value) bool { return strings.HasSuffix(block.at("type").text, "thinking") }

// checkThinking refuses thinking that was made after other messages. With thinking enabled it also refuses an open tool loop whose
// newest message does not begin with thinking.
func (x *exchange) checkThinking() *APIError {
	var v verdict
	messages := x.history
	for n, m := range messages {
		for _, b := range blocksOf(m) {
			if signature := b.at("signature").text; isThinking(b) && signature != x.bindBlocks(n) && !x.drops(signature) {
				v.say("%s: the thinking block is bound to a different conversation.", place(n))
			}
		}
	}
	last := len(messages) - 1
	if x.top.at("thinking", "type").text != "enabled" || last < 1 || x.server.options.SealWhen != nil {
		return v.err
	}
	called := blocksOf(messages[last-1])
	answers := slices.ContainsFunc(blocksOf(messages[last]), func(b value) bool { return b.at("type").text == "tool_result" })
	if answers && len(called) > 0 && !isThinking(called[0]) {
		v.say(noThinking, place(last-1), called[0].at("type").text)
	}
	return v.err
}

// reason puts reasoning at the front of items. It is bound to everything before it if the server's seal is, else to the first item:
// neither is accepted without the other.
// https://platform.openai.com/docs/guides/reasoning
func (x *exchange) reason(items, before []value) []value {
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
			s.kept.reasons[item.at("id").text] = id
		}
		members = append(members, "encrypted_content", encrypted(id, items[0]))
	}
	return slices.Insert(items, 0, object(members...))
}

// bindItems returns the signature of reasoning after these items.
func (x *exchange) bindItems(items []value) string {
	parts := []json.RawMessage{x.top.at("instructions").raw}
	for _, item := range items {
		if typeOf(item) != "reasoning" {
			parts = append(parts, without(item, "id", "status"))
		}
	}
	return x.bind("", parts...)
}

// encrypted returns the sealed content of reasoning that belongs to an item. It does not depend on the server.
func encrypted(id string, follower value) string {
	return "sealed." + id + "." + digest(json.RawMessage(typeOf(follower)), follower.at("call_id").raw, json.RawMessage(contentText(follower)))
}

// checkReasoning refuses reasoning without the item it belongs to, an item without its reasoning, and reasoning bound to another
// history. The caller holds Server.mu.
func (x *exchange) checkReasoning(v *verdict, items []value) {
	seen := map[string]bool{}
	for i, item := range items {
		id, kind := item.at("id").text, typeOf(item)
		if needed := x.server.kept.reasons[id]; needed != "" && !seen[needed] {
			v.refuse("input", "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, kind, needed)
		}
		if kind != "reasoning" {
			continue
		}
		if signature := item.at("signature").text; signature != "" && signature != x.bindItems(items[:i]) && !x.drops(signature) {
			v.refuse("input", "", "input[%d]: the reasoning is bound to a different conversation.", i)
		}
		sealed := item.at("encrypted_content").text
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
