package fakeupstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
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

// seal gives an answer its sealed reasoning.
func (s *Server) seal(x *exchange, message json.RawMessage) json.RawMessage {
	form := s.options.Seals
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.sealed.answers
	s.sealed.answers++
	calls := asArray(asObject(message)["tool_calls"])
	if s.options.SealWhen != nil && !s.options.SealWhen(n) || form == SealThoughtSignature && len(calls) == 0 {
		return message
	}
	if s.sealed.calls == nil {
		s.sealed.calls = map[string]bool{}
	}
	for _, c := range calls {
		s.sealed.calls[asString(asObject(c)["id"])] = true
		if form == SealThoughtSignature {
			break // the first call of a message carries it for all
		}
	}
	previous := ""
	for _, m := range x.req.Messages {
		if id := form.signature(m); id != "" {
			previous = id
		}
	}
	return form.attach(message, form.sign(x.req, len(x.req.Messages), message, previous))
}

// sign makes the signature of a message that stands at index n of a request.
func (f Seal) sign(r *Request, n int, message json.RawMessage, previous string) string {
	h := sha256.New()
	switch {
	case f.bindsPrefix():
		h.Write(r.Tools)
		for _, m := range r.Messages[:n] {
			h.Write(f.detach(m))
			h.Write([]byte{0})
		}
		h.Write([]byte(lastPart(previous)))
		return "prefix." + lastPart(previous) + "." + maker(r) + "." + hex.EncodeToString(h.Sum(nil)[:12])
	case f == SealThoughtSignature:
		h.Write([]byte(firstCall(message)))
	default:
		h.Write([]byte(essence(message)))
	}
	return string(f) + "." + hex.EncodeToString(h.Sum(nil)[:12])
}

// maker marks a request's model in what it signs: other models drop it.
func maker(r *Request) string {
	sum := sha256.Sum256([]byte(r.Model))
	return hex.EncodeToString(sum[:4])
}

// drops reports whether a signed block that does not belong is dropped rather than refused: that of another model always, others where
// the request asks for it. https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (x *exchange) drops(signature string) bool {
	binding := asObject(asObject(x.top["thinking"])["block_binding"])
	asked := asString(binding["prefix_mismatch_behavior"]) == "drop_block" &&
		strings.Contains(x.req.Header.Get("Anthropic-Beta"), "thinking-binding-controls")
	return asked || !strings.Contains(signature, "."+maker(x.req)+".")
}

func lastPart(signature string) string {
	return signature[strings.LastIndexByte(signature, '.')+1:]
}

// essence is what reasoning that is bound to its message is bound to.
func essence(message json.RawMessage) string {
	var b strings.Builder
	o := asObject(message)
	b.WriteString(contentText(o["content"]))
	for _, c := range asArray(o["tool_calls"]) {
		b.WriteString("\x00" + asString(asObject(c)["id"]))
	}
	return b.String()
}

func firstCall(message json.RawMessage) string {
	for _, c := range asArray(asObject(message)["tool_calls"]) {
		return asString(asObject(c)["id"])
	}
	return ""
}

// attach puts a signature into a message.
func (f Seal) attach(message json.RawMessage, signature string) json.RawMessage {
	members := membersOf(message)
	switch f {
	case SealThinkingBlocks:
		members = append(members, member{"thinking_blocks", mustJSON([]map[string]string{
			{"type": "thinking", "thinking": "A thought.", "signature": signature},
		})})
	case SealClaudeDetails:
		members = append(members, member{"reasoning_details", mustJSON([]map[string]any{
			{"type": "reasoning.text", "text": "A thought.", "signature": signature, "format": string(f), "index": 0},
		})})
	case SealResponsesDetails:
		members = append(members, member{"reasoning_details", mustJSON([]map[string]any{
			{"type": "reasoning.encrypted", "data": signature, "id": "rs_" + lastPart(signature), "format": string(f), "index": 0},
		})})
	case SealThoughtSignature:
		for i := range members {
			if members[i].key == "tool_calls" {
				calls := asArray(members[i].value)
				calls[0] = joinObject(append(membersOf(calls[0]), member{
					"extra_content", mustJSON(map[string]any{"google": map[string]string{"thought_signature": signature}}),
				}))
				members[i].value = mustJSON(calls)
			}
		}
	}
	return joinObject(members)
}

// detach gives a message without its sealed reasoning.
func (f Seal) detach(message json.RawMessage) json.RawMessage {
	if f == SealThoughtSignature {
		return message
	}
	var kept []member
	for _, m := range membersOf(message) {
		if m.key != "thinking_blocks" && m.key != "reasoning_details" {
			kept = append(kept, m)
		}
	}
	return joinObject(kept)
}

// signature is that of a message, empty if it has none.
func (f Seal) signature(message json.RawMessage) string {
	o := asObject(message)
	switch f {
	case SealThinkingBlocks:
		for _, b := range asArray(o["thinking_blocks"]) {
			return asString(asObject(b)["signature"])
		}
	case SealThoughtSignature:
		for _, c := range asArray(o["tool_calls"]) {
			return asString(asObject(asObject(asObject(c)["extra_content"])["google"])["thought_signature"])
		}
	default:
		if details := asArray(o["reasoning_details"]); len(details) > 0 {
			first := asObject(details[0])
			return asString(first["signature"]) + asString(first["data"])
		}
	}
	return ""
}

// checkSeals judges the sealed reasoning of a request.
func (s *Server) checkSeals(x *exchange) *APIError {
	form := s.options.Seals
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.thinks(x); err != nil {
		return err
	}
	turn := currentTurn(x.req.Messages)
	previous := ""
	for n, m := range x.req.Messages {
		if asString(asObject(m)["role"]) != "assistant" {
			continue
		}
		signature := form.signature(m)
		switch {
		case signature == "":
			if err := s.missing(form, n, m, n > turn); err != nil {
				return err
			}
			continue
		case form.bindsPrefix():
			before, _, _ := strings.Cut(strings.TrimPrefix(signature, "prefix."), ".")
			torn := previous != "" && lastPart(previous) != before
			if torn || signature != form.sign(x.req, n, m, before) {
				if x.drops(signature) {
					continue
				}
				return refuse(fmt.Sprintf("messages.%d", n), "", "messages.%d: the thinking block is bound to a different conversation.", n)
			}
		case signature != form.sign(x.req, n, m, ""):
			return refuse(fmt.Sprintf("messages.%d", n), "", "messages.%d: the reasoning belongs to another item.", n)
		}
		previous = signature
	}
	return nil
}

// missing refuses a message whose reasoning has gone from where it must be.
func (s *Server) missing(form Seal, n int, message json.RawMessage, inTurn bool) *APIError {
	id := firstCall(message)
	switch {
	case id == "" || !s.sealed.calls[id]:
	case form == SealResponsesDetails:
		return refuse(fmt.Sprintf("messages.%d", n), "",
			"Item 'fc_%s' of type 'function_call' was provided without its required 'reasoning' item.", id)
	case form == SealThoughtSignature && inTurn:
		return refuse(fmt.Sprintf("messages.%d", n), "", "Function call is missing a thought_signature in functionCall parts.")
	}
	return nil
}

// thinks: where thinking is switched on by hand, the newest assistant message of an open tool loop begins with its thinking.
func (s *Server) thinks(x *exchange) *APIError {
	last := len(x.req.Messages) - 1
	if !s.options.Seals.bindsPrefix() || asString(asObject(x.top["thinking"])["type"]) != "enabled" || last < 0 ||
		asString(asObject(x.req.Messages[last])["role"]) != "tool" {
		return nil
	}
	for n := last; n >= 0; n-- {
		m := x.req.Messages[n]
		if asString(asObject(m)["role"]) != "assistant" {
			continue
		}
		if s.sealed.calls[firstCall(m)] && s.options.Seals.signature(m) == "" {
			return refuse(fmt.Sprintf("messages.%d", n), "",
				"messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", n)
		}
		return nil
	}
	return nil
}

// currentTurn is the index of the newest user message, -1 if there is none.
func currentTurn(messages []json.RawMessage) int {
	for n := len(messages) - 1; n >= 0; n-- {
		if asString(asObject(messages[n])["role"]) == "user" {
			return n
		}
	}
	return -1
}
