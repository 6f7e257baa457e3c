package fakeupstream

import (
	"encoding/json"
	"fmt"
)

// responseReply is an answer with what the Responses API puts around it.
type responseReply struct {
	index  int
	model  string
	tools  json.RawMessage // that it was asked with; nil: none
	output []json.RawMessage
	usage  Usage
	cut    bool // by its length
}

func (r *responseReply) id() string { return fmt.Sprintf("resp_%06d", r.index) }

func responsesUsage(u Usage, reasoning int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"input_tokens":%d,"input_tokens_details":{"cached_tokens":%d},"output_tokens":%d,`+
		`"output_tokens_details":{"reasoning_tokens":%d},"total_tokens":%d}`, u.Prompt, u.Cached, u.Completion, reasoning, u.Prompt+u.Completion))
}

// object is the response, in one of its states.
func (r *responseReply) object(status string, output []json.RawMessage, usage json.RawMessage) json.RawMessage {
	if output == nil {
		output = []json.RawMessage{}
	}
	tools := r.tools
	if tools == nil {
		tools = json.RawMessage("[]")
	}
	incomplete := json.RawMessage("null")
	if status == "incomplete" {
		incomplete = json.RawMessage(`{"reason":"max_output_tokens"}`)
	}
	return joinObject([]member{
		{"id", mustJSON(r.id())}, {"object", mustJSON("response")}, {"created_at", mustJSON(created)}, {"status", mustJSON(status)},
		{"error", json.RawMessage("null")}, {"incomplete_details", incomplete}, {"instructions", json.RawMessage("null")},
		{"metadata", json.RawMessage("{}")}, {"model", mustJSON(r.model)}, {"output", mustJSON(output)},
		{"parallel_tool_calls", json.RawMessage("true")}, {"temperature", json.RawMessage("1")}, {"tool_choice", mustJSON("auto")},
		{"tools", tools}, {"top_p", json.RawMessage("1")}, {"usage", usage},
	})
}

func (r *responseReply) final() (status string, body json.RawMessage) {
	status = "completed"
	if r.cut {
		status = "incomplete"
	}
	reasoning := 0
	for _, item := range r.output {
		if typeOf(item) == "reasoning" {
			reasoning++
		}
	}
	return status, r.object(status, r.output, responsesUsage(r.usage, reasoning))
}

// whole is the body of an answer that is not streamed.
func (r *responseReply) whole() []byte {
	_, body := r.final()
	return body
}

// events are those of a stream: https://platform.openai.com/docs/api-reference/responses-streaming
func (r *responseReply) events(runes int) [][]byte {
	var all [][]byte
	add := func(kind string, members ...member) {
		numbered := append([]member{{"type", mustJSON(kind)}, {"sequence_number", mustJSON(len(all))}}, members...)
		all = append(all, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, joinObject(numbered)))
	}
	begun := member{"response", r.object("in_progress", nil, json.RawMessage("null"))}
	add("response.created", begun)
	add("response.in_progress", begun)
	for i, item := range r.output {
		r.stream(i, item, runes, add)
	}
	status, body := r.final()
	add("response."+status, member{"response", body})
	return all
}

// stream tells of an item: how it begins, what is added to it, what it is.
func (r *responseReply) stream(index int, item json.RawMessage, runes int, add func(string, ...member)) {
	at, o := member{"output_index", mustJSON(index)}, asObject(item)
	add("response.output_item.added", at, member{"item", opening(item)})
	id := member{"item_id", o["id"]}
	switch typeOf(item) {
	case "message":
		part := asArray(o["content"])[0]
		text, content := asObject(part)["text"], member{"content_index", json.RawMessage("0")}
		add("response.content_part.added", id, at, content, member{"part", outputText("")})
		for _, piece := range splitString(text, runes) {
			add("response.output_text.delta", id, at, content, member{"delta", piece}, member{"logprobs", json.RawMessage("[]")})
		}
		add("response.output_text.done", id, at, content, member{"text", text}, member{"logprobs", json.RawMessage("[]")})
		add("response.content_part.done", id, at, content, member{"part", part})
	case "function_call":
		for _, piece := range splitString(o["arguments"], runes) {
			add("response.function_call_arguments.delta", id, at, member{"delta", piece})
		}
		add("response.function_call_arguments.done", id, at, member{"name", o["name"]}, member{"arguments", o["arguments"]})
	}
	add("response.output_item.done", at, member{"item", item})
}

// opening is an item as it begins: without what is added to it.
func opening(item json.RawMessage) json.RawMessage {
	var out []member
	for _, m := range membersOf(item) {
		switch m.key {
		case "content":
			m.value = json.RawMessage("[]")
		case "arguments":
			m.value = json.RawMessage(`""`)
		case "status":
			m.value = mustJSON("in_progress")
		}
		out = append(out, m)
	}
	return joinObject(out)
}
