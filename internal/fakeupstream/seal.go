package fakeupstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Seal is a form in which answers carry sealed reasoning, and what it is bound to.
type Seal string

// The forms. Reasoning of the first two is bound to all that stands before it, as Anthropic documents: it is refused where a
// message or a tool before it has changed, or where one block between two others is missing. The third is bound to its own
// message (OpenAI): one is refused without the other. The fourth must be there in the current turn (Gemini).
const (
	SealThinkingBlocks   Seal = "thinking_blocks"
	SealClaudeDetails    Seal = "anthropic-claude-v1"
	SealResponsesDetails Seal = "openai-responses-v1"
	SealThoughtSignature Seal = "thought_signature"
)

// Seals lists the forms.
func Seals() []Seal {
	return []Seal{SealThinkingBlocks, SealClaudeDetails, SealResponsesDetails, SealThoughtSignature}
}

func (f Seal) bindsPrefix() bool { return f == SealThinkingBlocks || f == SealClaudeDetails }

// seals is what a server that seals remembers of its answers: which calls came with reasoning. It is guarded by Server.mu.
type seals struct {
	answers int             // so far
	calls   map[string]bool // ids of calls that came with reasoning
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

// digest is a short name for all parts together.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// maker marks a request's model in what it signs: other models drop it.
func maker(r *Request) string {
	sum := sha256.Sum256([]byte(r.Model))
	return hex.EncodeToString(sum[:4])
}

// drops reports whether a signed block that does not belong is dropped rather than refused: that of another model always, others where
// the request asks for it. https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) drops(signature string) bool {
	asked := textAt(x.top["thinking"], "block_binding", "prefix_mismatch_behavior") == "drop_block" &&
		strings.Contains(x.req.Header.Get("Anthropic-Beta"), "thinking-binding-controls")
	return asked || !strings.Contains(signature, "."+maker(x.req)+".")
}

// seal gives an answer its sealed reasoning.
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
		if id := form.signature(m); id != "" {
			previous = id
		}
	}
	return form.attach(message, form.sign(x.req, len(x.req.Messages), message, lastPart(previous)))
}

// sign makes the signature of a message that stands at index n of a request, behind a block whose signature ends so.
func (f Seal) sign(r *Request, n int, message json.RawMessage, previous string) string {
	switch {
	case f.bindsPrefix():
		parts := [][]byte{r.Tools}
		for _, m := range r.Messages[:n] {
			parts = append(parts, f.detach(m), []byte{0})
		}
		return "prefix." + previous + "." + maker(r) + "." + digest(append(parts, []byte(previous))...)
	case f == SealThoughtSignature:
		return string(f) + "." + digest([]byte(firstCall(message)))
	}
	essence := contentText(at(message, "content"))
	for _, c := range asArray(at(message, "tool_calls")) {
		essence += "\x00" + textAt(c, "id")
	}
	return string(f) + "." + digest([]byte(essence))
}

func lastPart(signature string) string {
	return signature[strings.LastIndexByte(signature, '.')+1:]
}

func firstCall(message json.RawMessage) string {
	for _, c := range asArray(at(message, "tool_calls")) {
		return textAt(c, "id")
	}
	return ""
}

// attach puts a signature into a message.
func (f Seal) attach(message json.RawMessage, signature string) json.RawMessage {
	members := membersOf(message)
	add := func(key string, element json.RawMessage) json.RawMessage {
		return joinObject(append(members, member{key, mustJSON([]json.RawMessage{element})}))
	}
	switch f {
	case SealThinkingBlocks:
		return add("thinking_blocks", build("signature", signature, "thinking", "A thought.", "type", "thinking"))
	case SealClaudeDetails:
		return add("reasoning_details", build("format", f, "index", 0, "signature", signature, "text", "A thought.", "type", "reasoning.text"))
	case SealResponsesDetails:
		return add("reasoning_details", build("data", signature, "format", f, "id", "rs_"+lastPart(signature), "index", 0, "type", "reasoning.encrypted"))
	}
	for i, m := range members {
		if m.key == "tool_calls" {
			calls := asArray(m.value)
			extra := member{"extra_content", build("google", build("thought_signature", signature))}
			calls[0] = joinObject(append(membersOf(calls[0]), extra))
			members[i].value = mustJSON(calls)
		}
	}
	return joinObject(members)
}

// detach gives a message without its sealed reasoning, where that is bound to all before it.
func (f Seal) detach(message json.RawMessage) json.RawMessage {
	return edited(message, func(m *member) bool { return m.key != "thinking_blocks" && m.key != "reasoning_details" })
}

// signature is that of a message, empty if it has none.
func (f Seal) signature(message json.RawMessage) string {
	key := map[Seal]string{SealThinkingBlocks: "thinking_blocks", SealThoughtSignature: "tool_calls"}[f]
	if key == "" {
		key = "reasoning_details"
	}
	all := asArray(at(message, key))
	switch {
	case len(all) == 0:
		return ""
	case f == SealThoughtSignature:
		return textAt(all[0], "extra_content", "google", "thought_signature")
	case f == SealThinkingBlocks:
		return textAt(all[0], "signature")
	}
	return textAt(all[0], "signature") + textAt(all[0], "data")
}

// checkSeals judges the sealed reasoning of a chat completion.
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
			if torn || signature != form.sign(x.req, n, m, lastPart(before)) {
				if x.drops(signature) {
					continue
				}
				v.refuse(at, "", "%s: the thinking block is bound to a different conversation.", at)
			}
			previous = signature
		case signature != form.sign(x.req, n, m, ""):
			v.refuse(at, "", "%s: the reasoning belongs to another item.", at)
		}
	}
	return v.err
}

func place(n int) string { return fmt.Sprintf("messages.%d", n) }

// lastOf is the index of the newest message of a role, -1 if there is none.
func lastOf(messages []json.RawMessage, role string) int {
	for n := len(messages) - 1; n >= 0; n-- {
		if textAt(messages[n], "role") == role {
			return n
		}
	}
	return -1
}

const noThinking = "%s.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`."

// checkOpenLoop: where thinking is switched on by hand, the newest assistant message of an open tool loop begins with its thinking.
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

// think puts a signed block in front of an answer of the Messages API, bound to all that stands before it.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) think(blocks []json.RawMessage) []json.RawMessage {
	if !x.server.sealsNext() {
		return blocks
	}
	return slices.Insert(blocks, 0, build("type", "thinking", "thinking", "A thought.", "signature", x.bound(len(x.req.Messages))))
}

// bound is the signature of thinking in the message at index n.
func (x *exchange) bound(n int) string {
	parts := [][]byte{x.req.Tools, unmarked(x.top["system"])}
	for _, m := range x.req.Messages[:n] {
		rest := []json.RawMessage{at(m, "role")}
		for _, b := range blocksOf(m) {
			if !isThinking(b) {
				rest = append(rest, unmarked(b))
			}
		}
		parts = append(parts, mustJSON(rest), []byte{0})
	}
	return "bound." + maker(x.req) + "." + digest(parts...)
}

func isThinking(block json.RawMessage) bool {
	kind := textAt(block, "type")
	return kind == "thinking" || kind == "redacted_thinking"
}

// checkThinking refuses thinking that stood behind something else when it was made, and, where thinking was switched on by hand,
// an open tool loop whose newest message does not begin with it though it was made so.
func (x *exchange) checkThinking() *APIError {
	var v verdict
	messages := x.req.Messages
	for n, m := range messages {
		for _, b := range blocksOf(m) {
			if signature := textAt(b, "signature"); isThinking(b) && signature != x.bound(n) && !x.drops(signature) {
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

// reason puts reasoning in front of items. It is bound to all that stands before it where the server's seal is, else to the first of the
// items: one is refused without the other.
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
		members = append(members, "format", SealClaudeDetails, "signature", x.boundTo(before))
	} else {
		for _, item := range items {
			s.kept.reasons[textAt(item, "id")] = id
		}
		members = append(members, "encrypted_content", encrypted(id, items[0]))
	}
	return slices.Insert(items, 0, build(members...))
}

// boundTo is the signature of reasoning that stands behind items.
func (x *exchange) boundTo(items []json.RawMessage) string {
	parts := [][]byte{x.req.Tools, x.top["instructions"]}
	for _, item := range items {
		if typeOf(item) == "reasoning" {
			continue
		}
		for _, m := range membersOf(item) {
			if m.key != "id" && m.key != "status" {
				parts = append(parts, []byte(m.key), m.value)
			}
		}
	}
	return "prefix." + maker(x.req) + "." + digest(parts...)
}

// encrypted is what reasoning holds that belongs to an item: any server tells by it.
func encrypted(id string, follower json.RawMessage) string {
	essence := typeOf(follower) + "\x00" + textAt(follower, "call_id") + "\x00" + contentText(at(follower, "content"))
	return "sealed." + id + "." + digest([]byte(essence))
}

// checkReasoning refuses reasoning without what follows it, what follows it without it, and what was bound to another history. It needs
// Server.mu.
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
		if signature := textAt(item, "signature"); signature != "" && signature != x.boundTo(items[:i]) && !x.drops(signature) {
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
