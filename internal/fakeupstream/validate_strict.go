package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"
)

// maxIDLength is the longest tool call id that OpenAI accepts, in characters. Other makers' models give longer ones, and
// their agents send them back to compatible servers.
const maxIDLength = 40

func checkKnownArguments(top object) *APIError {
	if name := firstUnknown(top, knownArguments()); name != "" {
		return refuse("", "", "Unrecognized request argument supplied: %s", name)
	}
	return nil
}

func checkKnownMessageFields(top object) *APIError {
	known := knownMessageFields()
	for i, raw := range asArray(top["messages"]) {
		if name := firstUnknown(asObject(raw), known); name != "" {
			return unknownParameter(fmt.Sprintf("messages[%d].%s", i, name))
		}
	}
	return nil
}

func checkIDLengths(top object) *APIError {
	var err *APIError
	for i, raw := range asArray(top["messages"]) {
		m := asObject(raw)
		err = cmp.Or(err, checkIDLength(fmt.Sprintf("messages[%d].tool_call_id", i), m["tool_call_id"]))
		for j, call := range asArray(m["tool_calls"]) {
			err = cmp.Or(err, checkIDLength(fmt.Sprintf("messages[%d].tool_calls[%d].id", i, j), asObject(call)["id"]))
		}
	}
	return err
}

func checkIDLength(param string, id json.RawMessage) *APIError {
	if n := utf8.RuneCountInString(asString(id)); n > maxIDLength {
		return longString(param, maxIDLength, n)
	}
	return nil
}

// firstUnknown returns the first key, in the order of the alphabet, that is not known.
func firstUnknown(o object, known []string) string {
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(known, key) {
			return key
		}
	}
	return ""
}

func knownArguments() []string {
	return []string{"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs",
		"max_completion_tokens", "max_tokens", "messages", "metadata", "modalities", "model", "n", "parallel_tool_calls",
		"prediction", "presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort",
		"response_format", "safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options",
		"temperature", "tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity", "web_search_options"}
}

func knownMessageFields() []string {
	return []string{"annotations", "audio", "content", "function_call", "name", "refusal", "role", "tool_call_id", "tool_calls"}
}
