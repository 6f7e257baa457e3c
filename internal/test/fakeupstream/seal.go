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

// The formats. In the first two, reasoning is bound to everything before it, as Anthropic documents: it is refused if an earlier message or
// tool has changed, or if a sealed block between two others is missing. In the third, it is bound to its own message (OpenAI): neither is
// accepted without the other. In the fourth, it is required in the current turn (Gemini).
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

// seals reports whether the answer carries reasoning. With thinking enabled, the first answer of a tool loop always does.
func (x *exchange) seals(calls []value) bool {
	s, when := x.server, x.server.options.SealWhen
	if s.options.Seals == "" {
		return false
	}
	first, _ := x.openLoop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept.answers++
	seals := when == nil || when(s.kept.answers-1) || x.thinks() && first < 0
	for _, c := range calls {
		s.kept.sealed[c.at("id").text] = seals
	}
	return seals
}

// thinks reports whether the request enables manual thinking.
func (x *exchange) thinks() bool { return x.top.at("thinking", "type").text == "enabled" }

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

// drops reports whether a block with a wrong signature is dropped rather than refused. Blocks of another model are always dropped, others only
// if the request asks for it. https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) drops(signature string) bool {
	asked := x.top.at("thinking", "block_binding", "prefix_mismatch_behavior").text == "drop_block" &&
		strings.Contains(x.req.Header.Get("Anthropic-Beta"), "thinking-binding-controls")
	return asked || !strings.Contains(signature, "."+maker(x.req)+".")
}

// seal adds sealed reasoning to an answer.
func (x *exchange) seal(message value) value {
	form, calls := x.server.options.Seals, message.at("tool_calls").elements
	if !x.seals(calls) || form == SealThoughtSignature && len(calls) == 0 {
		return message
	}
	previous := ""
	for _, m := range x.history {
		previous = cmp.Or(form.signature(m), previous)
	}
	return parse(form.attach(message, x.sign(each(x.history, unsealed), message, lastPart(previous))))
}

// unsealed returns a message without the reasoning that is bound to the messages before it.
func unsealed(m value) json.RawMessage {
	return changed(m, map[string]string{"thinking_blocks": "", "reasoning_details": ""})
}

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

// firstCall returns the id of a message's first call, empty if there is none.
func firstCall(message value) string {
	for _, c := range slices.Concat(blocksOf(message), message.at("tool_calls").elements) {
		if id := c.at("id").text; id != "" {
			return id
		}
	}
	return ""
}

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
		return changed(message, map[string]string{"tool_calls": string(mustJSON(calls))})
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
func (x *exchange) checkSeals(v *verdict) {
	form, messages := x.server.options.Seals, x.history
	if form == "" || x.req.Summary {
		return
	}
	x.checkLoop(v)
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	turn, _ := x.openLoop()
	before, previous := each(messages, unsealed), ""
	for n, m := range messages {
		if m.at("role").text != "assistant" {
			continue
		}
		at, signature := place(n), form.signature(m)
		switch id := firstCall(m); {
		case signature == "" && (id == "" || !x.server.kept.sealed[id]):
		case signature == "" && form == SealResponsesDetails:
			v.refuse(at, "", "Item 'fc_%s' of type 'function_call' was provided without its required 'reasoning' item.", id)
		case signature == "" && form == SealThoughtSignature && turn >= 0 && n >= turn:
			v.refuse(at, "", "Function call is missing a thought_signature in functionCall parts.")
		case signature == "":
		case form.bindsPrefix():
			previous = x.follow(v, n, previous, signature, func(after string) string { return x.sign(before[:n], m, after) })
		case signature != x.sign(nil, m, ""):
			v.refuse(at, "", "%s: the reasoning belongs to another item.", at)
		}
	}
}

func place(n int) string { return fmt.Sprintf("messages.%d", n) }

// openLoop returns the indexes of the first and the newest assistant message of the tool loop that a request continues, -1 if it continues none.
func (x *exchange) openLoop() (first, newest int) {
	first, newest = -1, -1
	results := false // the messages after n that are not answers include a tool result
	for n := len(x.history) - 1; n >= 0; n-- {
		m := x.history[n]
		switch role := m.at("role").text; {
		case role == "system":
		case role != "assistant":
			inBlock := slices.ContainsFunc(blocksOf(m), func(b value) bool { return b.at("type").text == "tool_result" })
			results = role == "tool" || inBlock || results && n+1 != first
		case !results:
			return first, newest
		default:
			first, newest = n, max(newest, n)
		}
	}
	return first, newest
}

// checkLoop checks that with thinking enabled, a tool loop begins with thinking, and that its newest answer has the thinking that it was made
// with. It knows only the server's own answers.
func (x *exchange) checkLoop(v *verdict) {
	form := x.server.options.Seals
	if x.server.options.ByAuthor && x.top.at("thinking", "block_binding").kind != kindAbsent {
		v.refuse("", "", "thinking.enabled.block_binding: Extra inputs are not permitted")
	}
	if !x.thinks() || !form.bindsPrefix() {
		return
	}
	x.server.mu.Lock()
	defer x.server.mu.Unlock()
	first, newest := x.openLoop()
	for n, m := range x.history {
		sealed, known := x.server.kept.sealed[firstCall(m)]
		needed := n == newest && sealed || n == first && known
		if needed && form.signature(m) == "" && !isThinking(m.at("content").first()) {
			v.refuse("", "", "%s.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", place(n))
		}
	}
}

// think puts a signed block at the front of a Messages API answer, bound to everything before it.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) think(blocks []value) []value {
	if !x.seals(blocks) {
		return blocks
	}
	signature := x.bind(lastPart(x.checkThinking(&verdict{})), x.boundParts()...)
	return slices.Insert(blocks, 0, object("type", "thinking", "thinking", "A thought.", "signature", signature))
}

// boundParts returns what thinking is bound to: the system prompt, then the role and the other blocks of each message.
func (x *exchange) boundParts() []json.RawMessage {
	parts := []json.RawMessage{unmarked(x.top.at("system"))}
	for _, m := range x.history {
		blocks := slices.DeleteFunc(slices.Clone(blocksOf(m)), isThinking)
		parts = append(parts, m.at("role").raw, mustJSON(each(blocks, unmarked)))
	}
	return parts
}

func isThinking(block value) bool { return strings.HasSuffix(block.at("type").text, "thinking") }

// checkBlocks checks the thinking in a request of the Messages API.
func (x *exchange) checkBlocks(v *verdict) {
	if x.server.options.Seals != "" {
		x.checkThinking(v)
		x.checkLoop(v)
	}
}

// checkThinking refuses thinking that was made after other messages. It returns the last signature.
func (x *exchange) checkThinking(v *verdict) (last string) {
	parts := x.boundParts()
	for n, m := range x.history {
		for _, b := range blocksOf(m) {
			if isThinking(b) {
				last = x.follow(v, n, last, b.at("signature").text, func(after string) string { return x.bind(after, parts[:1+2*n]...) })
			}
		}
	}
	return last
}

// follow checks the signature of the nth block and returns the signature that the next one must follow. previous is the signature that this
// one must follow, "" for the first. sign computes the correct signature.
func (x *exchange) follow(v *verdict, n int, previous, signature string, sign func(after string) string) string {
	if x.server.options.ByAuthor && strings.HasPrefix(signature, "prefix.") {
		return signature
	}
	after, _, _ := strings.Cut(strings.TrimPrefix(signature, "prefix."), ".")
	torn := previous != "" && lastPart(previous) != after
	if !torn && signature == sign(after) {
		return signature
	}
	if x.drops(signature) {
		x.server.record.change(func() { x.req.Dropped = append(x.req.Dropped, signature) })
		return previous
	}
	v.refuse("", "", "%s: the thinking block is bound to a different conversation.", place(n))
	return signature
}

// reason puts reasoning at the front of items. It is bound to everything before it if the server's seal is, else to the first item:
// neither is accepted without the other.
// https://platform.openai.com/docs/guides/reasoning
func (x *exchange) reason(items []value) []value {
	s := x.server
	if !x.seals(nil) {
		return items
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := fmt.Sprintf("rs_%06d", x.req.Index)
	members := []any{"type", "reasoning", "id", id, "summary", []string{}}
	if s.options.Seals.bindsPrefix() {
		members = append(members, "format", SealClaudeDetails, "signature", x.bindItems(x.history))
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
			parts = append(parts, changed(item, map[string]string{"id": "", "status": ""}))
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
func (x *exchange) checkReasoning(v *verdict) {
	items := x.history
	seen := map[string]bool{}
	for i, item := range items {
		id, kind := item.at("id").text, typeOf(item)
		needed := x.server.kept.reasons[id]
		v.refuseIf(needed != "" && !seen[needed], "input", "",
			"Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, kind, needed)
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
