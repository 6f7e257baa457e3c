package fakeupstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// reason puts reasoning in front of items. It is bound to all that stands before it where the server's seal is, else to the first of the
// items: one is refused without the other.
// https://platform.openai.com/docs/guides/reasoning
func (x *exchange) reason(items, before []json.RawMessage) []json.RawMessage {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.sealed.answers
	s.sealed.answers++
	if s.options.SealWhen != nil && !s.options.SealWhen(n) {
		return items
	}
	id := fmt.Sprintf("rs_%06d", x.req.Index)
	members := []member{{"type", mustJSON("reasoning")}, {"id", mustJSON(id)}, {"summary", json.RawMessage("[]")}}
	if s.options.Seals.bindsPrefix() {
		members = append(members, member{"format", mustJSON(string(SealClaudeDetails))}, member{"signature", mustJSON(x.boundTo(before))})
		return append([]json.RawMessage{joinObject(members)}, items...)
	}
	if s.kept.reasons == nil {
		s.kept.reasons = map[string]string{}
	}
	for _, item := range items {
		s.kept.reasons[asString(asObject(item)["id"])] = id
	}
	members = append(members, member{"encrypted_content", mustJSON(encrypted(id, items[0]))})
	return append([]json.RawMessage{joinObject(members)}, items...)
}

// boundTo is the signature of reasoning that stands behind items.
func (x *exchange) boundTo(items []json.RawMessage) string {
	h := sha256.New()
	h.Write(x.req.Tools)
	h.Write(x.top["instructions"])
	for _, item := range items {
		if typeOf(item) == "reasoning" {
			continue
		}
		for _, m := range membersOf(item) {
			if m.key != "id" && m.key != "status" {
				h.Write([]byte(m.key))
				h.Write(m.value)
			}
		}
	}
	return "prefix." + maker(x.req) + "." + hex.EncodeToString(h.Sum(nil)[:12])
}

// encrypted is what reasoning holds that belongs to an item: any server tells by it.
func encrypted(id string, follower json.RawMessage) string {
	sum := sha256.Sum256([]byte(itemEssence(follower)))
	return "sealed." + id + "." + hex.EncodeToString(sum[:12])
}

// itemEssence tells an item of a model's from others.
func itemEssence(item json.RawMessage) string {
	o := asObject(item)
	return typeOf(item) + "\x00" + asString(o["call_id"]) + "\x00" + contentText(o["content"])
}

// checkReasoning refuses reasoning without what follows it, what follows it without it, and what was bound to another history.
func (x *exchange) checkReasoning(items []json.RawMessage) *APIError {
	s := x.server
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[string]bool{}
	for i, item := range items {
		o := asObject(item)
		id := asString(o["id"])
		if needed := s.kept.reasons[id]; needed != "" && !seen[needed] {
			return refuse("input", "", "Item '%s' of type '%s' was provided without its required 'reasoning' item: '%s'.", id, typeOf(item), needed)
		}
		if typeOf(item) != "reasoning" {
			continue
		}
		if signature := asString(o["signature"]); signature != "" && signature != x.boundTo(items[:i]) && !x.drops(signature) {
			return refuse("input", "", "input[%d]: the reasoning is bound to a different conversation.", i)
		}
		sealed := asString(o["encrypted_content"])
		parts := strings.Split(sealed, ".")
		switch {
		case sealed == "":
			continue
		case len(parts) != 3 || parts[0] != "sealed":
			return refuse("input", "invalid_encrypted_content", "The encrypted content for item %s could not be verified.", id)
		case i+1 == len(items) || encrypted(parts[1], items[i+1]) != sealed:
			return refuse("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", parts[1])
		}
		seen[parts[1]] = true
	}
	return nil
}
