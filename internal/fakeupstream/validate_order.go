package fakeupstream

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// unit is an assistant message with tool calls and the results that follow it.
type unit struct {
	ids      []string       // of the calls, in order
	answered map[string]int // id -> index of the message that answered it
}

// checkMessageOrder judges what a message may be in view of its neighbours. The shapes are known to be right.
func checkMessageOrder(messages []object) *APIError {
	var open *unit
	for i, m := range messages {
		if asString(m["role"]) == "tool" {
			if err := open.answer(i, m); err != nil {
				return err
			}
			continue
		}
		if err := open.close(fmt.Sprintf("messages.[%d].role", i)); err != nil {
			return err
		}
		if err := checkSubstance(i, m); err != nil {
			return err
		}
		open = openUnit(m["tool_calls"])
	}
	return open.close("messages")
}

func openUnit(calls json.RawMessage) *unit {
	if kindOf(calls) != kindArray {
		return nil
	}
	u := &unit{answered: map[string]int{}}
	for _, call := range asArray(calls) {
		u.ids = append(u.ids, asString(asObject(call)["id"]))
	}
	return u
}

// answer takes the tool message at index i; u is nil when no unit is open.
func (u *unit) answer(i int, m object) *APIError {
	if !given(m["tool_call_id"]) {
		return refuse(fmt.Sprintf("messages.[%d].tool_call_id", i), "",
			"Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.")
	}
	if u == nil {
		return refuse(fmt.Sprintf("messages.[%d].role", i), "",
			"Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
	}
	if err := u.match(i, asString(m["tool_call_id"])); err != nil {
		return err
	}
	return checkSubstance(i, m)
}

// match notes that message i answers the call with that id.
func (u *unit) match(i int, id string) *APIError {
	if !slices.Contains(u.ids, id) {
		return refuse(fmt.Sprintf("messages.[%d].tool_call_id", i), "",
			"Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
	}
	if before, seen := u.answered[id]; seen {
		return refuse(fmt.Sprintf("messages.[%d].tool_call_id", i), "",
			"Invalid parameter: Duplicate value for 'tool_call_id' of '%s', in messages[%d] and messages[%d].", id, before, i)
	}
	u.answered[id] = i
	return nil
}

// close ends the unit before the message that param names; every call must have been answered.
func (u *unit) close(param string) *APIError {
	if u == nil {
		return nil
	}
	var missing []string
	for _, id := range u.ids {
		if _, ok := u.answered[id]; !ok {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return refuse(param, "", "An assistant message with 'tool_calls' must be followed by tool messages responding to "+
		"each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(missing, ", "))
}

// checkSubstance refuses a message that says nothing: null or no content, and nothing that stands in for it.
func checkSubstance(i int, m object) *APIError {
	role := asString(m["role"])
	if role == "function" && !given(m["name"]) {
		return refuse(fmt.Sprintf("messages.[%d].name", i), "",
			"Missing parameter 'name': messages with role 'function' must have a 'name'.")
	}
	if given(m["content"]) {
		return nil
	}
	if role == "assistant" && (given(m["tool_calls"]) || given(m["function_call"]) || given(m["refusal"]) || given(m["audio"])) {
		return nil
	}
	return refuse(fmt.Sprintf("messages.[%d].content", i), "", "Invalid value for 'content': expected a string, got null.")
}

// checkTurns refuses what templates do that have users and assistants take turns, and Mistral's rule for results.
func checkTurns(messages []json.RawMessage) *APIError {
	last := "system"
	for _, raw := range messages {
		m := asObject(raw)
		role := asString(m["role"])
		switch {
		case role == "system" || role == "developer":
			continue
		case last == "tool" && role == "user":
			return refuse("", "3230", "Unexpected role 'user' after role 'tool'")
		case role == last && role != "tool", last == "system" && role != "user":
			return refuse("", "", "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...")
		}
		last = role
	}
	return nil
}
