package fakeupstream

import (
	"encoding/json"
	"fmt"
	"slices"
)

// chat answers a Chat Completions request.
func (x *exchange) chat() {
	x.respond(func(a Answer) reply {
		message := a.message()
		if x.server.options.Seals != "" && !x.req.Summary {
			message = x.seal(message)
			if a.Sealed != nil {
				a.Sealed(message.raw)
			}
		}
		return x.completion(a, message)
	})
}

// judgeChat checks the request, regardless of its size.
func (x *exchange) judgeChat(v *verdict) {
	o := x.server.options
	v.fail(checkContentType(x.r.Header))
	v.completion(x.top)
	if o.Strict {
		v.known(x.top)
	}
	if o.Alternates {
		v.turns(x.history)
	}
	if !o.serves(x.req.Model) {
		v.fail(unknownModel(x.req.Model))
	}
}

// serves reports whether a model is known.
func (o *Options) serves(model string) bool {
	return len(o.Models) == 0 || slices.Contains(o.Models, model) || slices.Contains(o.SummariserModels, model)
}

// chatLimits refuses a request that is too long for the model.
func chatLimits(s size) *APIError {
	if s.output > s.maxOutput {
		return refuse(s.outputKey, "invalid_value", "%s is too large: %d. This model supports at most %d completion "+
			"tokens, whereas you provided %d.", s.outputKey, s.output, s.maxOutput, s.output)
	}
	if s.prompt+s.output <= s.window {
		return nil
	}
	requested := fmt.Sprintf("you requested %d tokens (%d in the messages, %d in the completion)", s.prompt+s.output, s.prompt, s.output)
	if s.prompt > s.window { // even without the reserved output
		requested = fmt.Sprintf("your messages resulted in %d tokens", s.prompt)
	}
	return refuse("messages", "context_length_exceeded", "This model's maximum context length is %d tokens. However, %s. "+
		"Please reduce the length of the messages or completion.", s.window, requested)
}

// created is the time of every completion. The server has no clock.
const created = 1735689600

// completion returns the reply to a Chat Completions request. A stream ends with the usage if the client asked for it.
func (x *exchange) completion(a Answer, message value) reply {
	usage, finish := x.bill(a, x.top.at("response_format"), x.req.Messages, message).json(), mustJSON(a.finishReason(message))
	head := func(object string) string { // opens the JSON object of a completion or of a chunk of one
		return fmt.Sprintf(`{"id":"chatcmpl-%06d","object":"%s","created":%d,"model":%s,"service_tier":"default",`+
			`"system_fingerprint":"fp_fakeupstream"`, x.req.Index, object, created, mustJSON(x.req.Model))
	}
	body := fmt.Sprintf(`%s,"choices":[{"index":0,"message":%s,"logprobs":null,"finish_reason":%s}]`, head("chat.completion"), message.raw, finish)
	if !a.OmitUsage {
		body += `,"usage":` + string(usage)
	}
	return reply{[]byte(body + "}\n"), func(runes int, add func(event []byte)) {
		withUsage := x.top.at("stream_options", "include_usage").isTrue() && !a.OmitUsage
		head, tail := head("chat.completion.chunk"), "}"
		if withUsage {
			tail = `,"usage":null}`
		}
		const chunk = "data: %s,\"choices\":[{\"index\":0,\"delta\":%s,\"logprobs\":null,\"finish_reason\":%s}]%s\n\n"
		for _, delta := range deltas(message, runes) {
			add(fmt.Appendf(nil, chunk, head, delta, "null", tail))
		}
		add(fmt.Appendf(nil, chunk, head, "{}", finish, tail))
		if withUsage {
			add(fmt.Appendf(nil, "data: %s,\"choices\":[],\"usage\":%s}\n\n", head, usage))
		}
		add([]byte("data: [DONE]\n\n"))
	}}
}

func (u Usage) json() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,`+
		`"prompt_tokens_details":{"cached_tokens":%d,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":0,`+
		`"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`,
		u.Prompt, u.Completion, u.Prompt+u.Completion, u.Cached))
}

// deltas splits an assistant message for a stream. The first delta has the role and everything that is not streamed. Then come
// the texts in pieces and the tool calls, each with its input in pieces. Joined, the deltas give the message again.
func deltas(message value, runes int) []json.RawMessage {
	var texts, calls []json.RawMessage
	streamed := []string{"content", "reasoning_content", "reasoning", "refusal"}
	first := edited(message, func(m *value) bool {
		if m.kind == kindString && slices.Contains(streamed, m.key) {
			for _, piece := range splitString(m.raw, runes) {
				texts = append(texts, build(m.key, piece))
			}
			m.raw = json.RawMessage(`""`)
		}
		if m.key != "tool_calls" || len(m.elements) == 0 {
			return true
		}
		for i, call := range m.elements {
			calls = append(calls, callDeltas(i, call, runes)...)
		}
		return false
	})
	return slices.Concat([]json.RawMessage{first}, texts, calls)
}

// callDeltas returns a call with an empty input, and then the pieces of the input.
func callDeltas(index int, call value, runes int) []json.RawMessage {
	delta := func(members ...any) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"tool_calls":[%s]}`, build(append([]any{"index", index}, members...)...)))
	}
	var opening []any
	var pieces []json.RawMessage
	for _, m := range call.members {
		if input := m.at(inputKeys[m.key]); input.kind == kindString {
			for _, piece := range splitString(input.raw, runes) {
				pieces = append(pieces, delta(m.key, build(input.key, piece)))
			}
			m.raw = changed(m, map[string]string{input.key: `""`})
		}
		if m.key != "index" {
			opening = append(opening, m.key, m)
		}
	}
	return slices.Insert(pieces, 0, delta(opening...))
}
