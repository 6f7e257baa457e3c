package fakeupstream

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// responses answers a request of the Responses API. Answers are scripted as Chat Completions messages and sent as items.
// https://platform.openai.com/docs/api-reference/responses/create
func (x *exchange) responses() {
	if n := len(x.history); n > 0 && typeOf(x.history[n-1]) == "compaction_trigger" {
		x.play(Answer{}, func(a Answer) reply { return x.response(a, x.compaction()) })
		return
	}
	x.respond(func(a Answer) reply { return x.response(a, x.itemsOf(a.message())...) })
}

// inputTokens answers with the number of tokens of a request.
// https://platform.openai.com/docs/api-reference/responses/input-tokens
func (x *exchange) inputTokens() {
	x.sendJSON(`{"object":"response.input_tokens","input_tokens":%d}`, x.measure().prompt)
}

// compact answers with one item that replaces the whole input.
// https://platform.openai.com/docs/api-reference/responses/compact
func (x *exchange) compact() {
	x.sendJSON(`{"id":"resp_%06d","object":"response.compaction","output":[%s],"usage":%s}`, x.req.Index, x.compaction().raw,
		responsesUsage(Usage{Prompt: x.measure().prompt, Completion: 1}, 0))
}

// compaction returns an item that replaces a history.
func (x *exchange) compaction() value {
	return object("type", "compaction", "id", fmt.Sprintf("cmp_%06d", x.req.Index), "encrypted_content", compactionOf(x.history))
}

// compacted is the prefix of the content of every compaction that this server made.
const compacted = "compacted."

// compactionOf returns the content of a compaction of messages or items.
func compactionOf(all []value) string {
	return fmt.Sprintf("%s%d.%x", compacted, len(all), sha256.Sum256(mustJSON(raws(all))))
}

func responsesLimits(s size) *APIError {
	if s.prompt+s.output > s.window {
		return refuse("input", "context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	}
	return nil
}

// itemsOf translates an assistant message to items, with sealed reasoning first if the server seals its answers.
func (x *exchange) itemsOf(message value) []value {
	var items []value
	calls := message.at("tool_calls")
	if text := contentText(message); strings.TrimSpace(text) != "" || !calls.given() {
		items = append(items, object("type", "message", "id", fmt.Sprintf("msg_%06d", x.req.Index), "status", "completed",
			"role", "assistant", "content", []json.RawMessage{outputText(text)}))
	}
	for n, call := range calls.elements {
		name := call.at("function", "name")
		members := []any{"type", "function_call", "id", fmt.Sprintf("fc_%06d_%d", x.req.Index, n), "status", "completed",
			"call_id", call.at("id"), "name", name, "arguments", call.at("function", "arguments")}
		if space := namespaceOf(x.top.at("tools").elements, name.text); space.given() {
			members = append(members, "namespace", space)
		}
		items = append(items, object(members...))
	}
	if x.req.Summary {
		return items
	}
	return x.reason(items)
}

// namespaceOf returns the namespace whose tools include that name, or an absent value.
func namespaceOf(tools []value, name string) value {
	for _, space := range tools {
		if slices.ContainsFunc(space.at("tools").elements, func(inner value) bool { return inner.at("name").text == name }) {
			return space.at("name")
		}
	}
	return value{}
}

func outputText(text string) json.RawMessage {
	return build("type", "output_text", "text", text, "annotations", []string{})
}

func typeOf(item value) string {
	if kind := item.at("type").text; kind != "" || !item.at("role").given() {
		return kind
	}
	return "message"
}

// response returns the reply to a request of the Responses API, and stores it unless the request sets store to false. The events:
// https://platform.openai.com/docs/api-reference/responses-streaming
func (x *exchange) response(a Answer, output ...value) reply {
	id, status := fmt.Sprintf("resp_%06d", x.req.Index), "completed"
	tools, incomplete := x.top.at("tools"), json.RawMessage(nil)
	if tools.kind == kindAbsent {
		tools.raw = json.RawMessage("[]")
	}
	if a.FinishReason == "length" {
		status, incomplete = "incomplete", build("reason", "max_output_tokens")
	}
	state := func(status string, incomplete json.RawMessage, output []value, usage json.RawMessage) json.RawMessage {
		return build("id", id, "object", "response", "created_at", created, "status", status, "error", nil, "incomplete_details", incomplete,
			"instructions", nil, "metadata", struct{}{}, "model", x.req.Model, "output", raws(output),
			"parallel_tool_calls", true, "temperature", 1, "tool_choice", "auto", "tools", tools, "top_p", 1, "usage", usage)
	}
	reasoning := 0
	if len(output) > 0 && typeOf(output[0]) == "reasoning" {
		reasoning = 1
	}
	prompt := append([]json.RawMessage{x.top.at("instructions").raw}, raws(x.history)...)
	usage := responsesUsage(x.bill(a, x.top.at("text", "format"), prompt, output...), reasoning)
	if a.OmitUsage {
		usage = nil
	}
	body := state(status, incomplete, output, usage)
	if string(x.top.at("store").raw) != "false" {
		x.server.store(id, slices.Concat(x.history, output))
	}
	return reply{body, func(runes int, add func(event []byte)) {
		n := 0
		send := func(kind string, pairs ...any) {
			add(event(kind, append([]any{"sequence_number", n}, pairs...)...))
			n++
		}
		begun := state("in_progress", nil, nil, nil)
		send("response.created", "response", begun)
		send("response.in_progress", "response", begun)
		for i, item := range output {
			stream(i, item, runes, send)
		}
		send("response."+status, "response", body)
	}}
}

func responsesUsage(u Usage, reasoning int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,`+
		`"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`, u.Prompt, u.Cached, u.Completion, reasoning, u.Prompt+u.Completion))
}

// stream adds the events of one item: the item without its content, the content in pieces, and the whole item.
func stream(index int, item value, runes int, add func(kind string, pairs ...any)) {
	begun := map[string]string{"content": "[]", "arguments": `""`, "status": `"in_progress"`}
	add("response.output_item.added", "output_index", index, "item", changed(item, begun))
	of := func(kind string, pairs ...any) {
		add("response."+kind, append([]any{"item_id", item.at("id"), "output_index", index}, pairs...)...)
	}
	switch typeOf(item) {
	case "message":
		part := item.at("content").first()
		of("content_part.added", "content_index", 0, "part", outputText(""))
		for _, piece := range splitString(part.at("text").raw, runes) {
			of("output_text.delta", "content_index", 0, "delta", piece, "logprobs", []string{})
		}
		of("output_text.done", "content_index", 0, "text", part.at("text"), "logprobs", []string{})
		of("content_part.done", "content_index", 0, "part", part)
	case "function_call":
		for _, piece := range splitString(item.at("arguments").raw, runes) {
			of("function_call_arguments.delta", "delta", piece)
		}
		of("function_call_arguments.done", "name", item.at("name"), "arguments", item.at("arguments"))
	}
	add("response.output_item.done", "output_index", index, "item", item)
}
