package fakeupstream

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// deltas splits an assistant message as a stream does: the first delta has the role and all that is not streamed, then
// come the texts in pieces, then the tool calls, the input of each in pieces. Put together again they give the message.
func deltas(message json.RawMessage, runes int) []json.RawMessage {
	var first []member
	var texts []json.RawMessage
	var calls []json.RawMessage
	for _, m := range membersOf(message) {
		switch {
		case isStreamed(m):
			first = append(first, member{m.key, json.RawMessage(`""`)})
			texts = append(texts, textDeltas(m, runes)...)
		case m.key == "tool_calls" && len(asArray(m.value)) > 0:
			calls = callDeltas(asArray(m.value), runes)
		default:
			first = append(first, m)
		}
	}
	all := append([]json.RawMessage{joinObject(first)}, texts...)
	return append(all, calls...)
}

// isStreamed tells the members whose text comes bit by bit.
func isStreamed(m member) bool {
	switch m.key {
	case "content", "reasoning_content", "reasoning", "refusal":
		return kindOf(m.value) == kindString
	}
	return false
}

func textDeltas(m member, runes int) []json.RawMessage {
	var all []json.RawMessage
	for _, piece := range splitString(m.value, runes) {
		all = append(all, joinObject([]member{{m.key, piece}}))
	}
	return all
}

func callDeltas(calls []json.RawMessage, runes int) []json.RawMessage {
	var all []json.RawMessage
	for i, call := range calls {
		opening, rest := openCall(i, call, runes)
		all = append(append(all, inToolCalls(opening)), rest...)
	}
	return all
}

// openCall returns the call with an empty input, and the deltas that bring the input.
func openCall(index int, call json.RawMessage, runes int) (json.RawMessage, []json.RawMessage) {
	number := member{"index", mustJSON(index)}
	opening := []member{number}
	var rest []json.RawMessage
	for _, m := range membersOf(call) {
		input := map[string]string{"function": "arguments", "custom": "input"}[m.key]
		if text := asObject(m.value)[input]; input != "" && kindOf(text) == kindString {
			for _, piece := range splitString(text, runes) {
				inner := joinObject([]member{{input, piece}})
				rest = append(rest, inToolCalls(joinObject([]member{number, {m.key, inner}})))
			}
			m.value = withEmpty(m.value, input)
		}
		if m.key != "index" {
			opening = append(opening, m)
		}
	}
	return joinObject(opening), rest
}

func inToolCalls(call json.RawMessage) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"tool_calls":[%s]}`, call))
}

// withEmpty returns the object with "" for one member.
func withEmpty(o json.RawMessage, key string) json.RawMessage {
	members := membersOf(o)
	for i := range members {
		if members[i].key == key {
			members[i].value = json.RawMessage(`""`)
		}
	}
	return joinObject(members)
}

// splitString splits a JSON string literal into literals of so many characters each. It never decodes, so that every
// escape stays as it was written, and never splits a character, an escape or a pair of surrogates.
func splitString(literal json.RawMessage, runes int) []json.RawMessage {
	text := literal[1 : len(literal)-1]
	var pieces []json.RawMessage
	start, count := 0, 0
	for i := 0; i < len(text); {
		i += charLength(text[i:])
		if count++; count == runes || i == len(text) {
			pieces = append(pieces, json.RawMessage(`"`+string(text[start:i])+`"`))
			start, count = i, 0
		}
	}
	return pieces
}

// charLength returns the length of the first character of the inside of a valid JSON string.
func charLength(text []byte) int {
	const escape, pair = len(`\u1234`), len(`\ud834\udd1e`)
	if text[0] != '\\' {
		_, n := utf8.DecodeRune(text)
		return n
	}
	if text[1] != 'u' {
		return 2
	}
	if isSurrogate(text, "89abAB") && len(text) >= pair && isSurrogate(text[escape:], "cdefCDEF") {
		return pair
	}
	return escape
}

// isSurrogate reports whether the text begins with \ud? where ? is one of the digits.
func isSurrogate(text []byte, digits string) bool {
	if text[0] != '\\' || text[1] != 'u' || text[2]|0x20 != 'd' {
		return false
	}
	for i := range digits {
		if text[3] == digits[i] {
			return true
		}
	}
	return false
}
