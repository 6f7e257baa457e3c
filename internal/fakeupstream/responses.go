package fakeupstream

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// responses judges a request of the Responses API and answers it. Answers are scripted as assistant messages of Chat Completions and
// told as items.
// https://platform.openai.com/docs/api-reference/responses/create
func (x *exchange) responses() {
	items, err := x.judgeResponses()
	if err != nil {
		x.refuse(err)
		return
	}
	takes := x.measureResponses(items)
	if err := x.checkResponsesLimits(takes); err != nil {
		x.refuse(err)
		return
	}
	x.account(takes)
	if asks(items) {
		x.playItems(Answer{}, items, []json.RawMessage{x.compaction(items)})
		return
	}
	a := x.server.answer(x)
	if a.Error != nil || a.Raw != nil {
		x.play(a)
		return
	}
	x.playItems(a, items, x.itemsOf(a.message(), items))
}

// inputTokens tells what a request would take.
// https://platform.openai.com/docs/api-reference/responses/input-tokens
func (x *exchange) inputTokens() {
	items, err := x.judgeResponses()
	if err != nil {
		x.refuse(err)
		return
	}
	x.sendJSON(fmt.Sprintf(`{"object":"response.input_tokens","input_tokens":%d}`, x.measureResponses(items).prompt()))
}

// compact gives a history in the form of one item.
// https://platform.openai.com/docs/api-reference/responses/compact
func (x *exchange) compact() {
	if x.server.unable {
		x.refuse(unknownURL(x.r))
		return
	}
	items, err := x.judgeResponses()
	if err != nil {
		x.refuse(err)
		return
	}
	x.sendJSON(fmt.Sprintf(`{"id":"resp_%06d","object":"response.compaction","output":[%s],"usage":%s}`, x.req.Index, x.compaction(items),
		responsesUsage(Usage{Prompt: x.measureResponses(items).prompt(), Completion: 1}, 0)))
}

// compaction is an item that stands for a history.
func (x *exchange) compaction(items []json.RawMessage) json.RawMessage {
	return joinObject([]member{
		{"type", mustJSON("compaction")}, {"id", mustJSON(fmt.Sprintf("cmp_%06d", x.req.Index))},
		{"encrypted_content", mustJSON(compactionOf(items))},
	})
}

// compacted begins what this server has compacted.
const compacted = "compacted."

// compactionOf stands for messages or items.
func compactionOf(all []json.RawMessage) string {
	return fmt.Sprintf("%s%d.%x", compacted, len(all), sha256.Sum256(mustJSON(all)))
}

// asks reports whether a compaction is asked for.
func asks(items []json.RawMessage) bool {
	return len(items) > 0 && typeOf(items[len(items)-1]) == "compaction_trigger"
}

// measureResponses counts instructions as a message.
func (x *exchange) measureResponses(items []json.RawMessage) size {
	count := x.server.options.CountTokens
	s := measure(x.top, items, count)
	if given(x.top["instructions"]) {
		s.messages += count(x.top["instructions"])
	}
	s.outputKey, s.output = "max_output_tokens", asCount(x.top["max_output_tokens"])
	return s
}

func (x *exchange) checkResponsesLimits(s size) *APIError {
	if window := x.server.options.window(x.req.Model); window > 0 && s.prompt()+s.output > window {
		return refuse("input", "context_length_exceeded", "Your input exceeds the context window of this model. Please adjust your input and try again.")
	}
	return nil
}

// playItems answers with items, whole or streamed.
func (x *exchange) playItems(a Answer, input, output []json.RawMessage) {
	count := x.server.options.CountTokens
	p := prompt{owner: x.r.Header.Get("Authorization"), model: x.req.Model, tools: x.req.Tools, form: asObject(x.top["text"])["format"], messages: []json.RawMessage{x.top["instructions"]}}
	p.messages = append(p.messages, input...)
	usage := Usage{Prompt: x.req.PromptTokens, Cached: x.server.cache.use(p, count)}
	for _, item := range output {
		usage.Completion += count(item)
	}
	if a.Usage != nil {
		usage = *a.Usage
	}
	x.server.record.change(func() { x.req.CachedTokens = usage.Cached })
	reply := responseReply{index: x.req.Index, model: x.req.Model, tools: x.req.Tools, output: output, usage: usage, cut: a.FinishReason == "length"}
	if !isFalse(x.top["store"]) {
		x.server.store(reply.id(), slices.Concat(input, output))
	}
	if !x.req.Stream {
		x.play(Answer{Raw: &Raw{http.StatusOK, "application/json", reply.whole()}, Header: a.Header, Fault: a.Fault})
		return
	}
	x.header(a, "text/event-stream; charset=utf-8").Set("Cache-Control", "no-cache")
	err := x.open(http.StatusOK)
	if err == nil {
		err = x.send(reply.events(x.server.options.ChunkRunes), a.Fault)
	}
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

func isFalse(raw json.RawMessage) bool { return string(raw) == "false" }

// itemsOf are the items for an assistant message, with reasoning in front of them where the server seals.
func (x *exchange) itemsOf(message json.RawMessage, before []json.RawMessage) []json.RawMessage {
	var items []json.RawMessage
	o := asObject(message)
	if text := contentText(o["content"]); strings.TrimSpace(text) != "" || !given(o["tool_calls"]) {
		items = append(items, joinObject([]member{
			{"type", mustJSON("message")}, {"id", mustJSON(fmt.Sprintf("msg_%06d", x.req.Index))}, {"status", mustJSON("completed")},
			{"role", mustJSON("assistant")}, {"content", mustJSON([]json.RawMessage{outputText(text)})},
		}))
	}
	for n, c := range asArray(o["tool_calls"]) {
		call := asObject(c)
		function := asObject(call["function"])
		members := []member{
			{"type", mustJSON("function_call")}, {"id", mustJSON(fmt.Sprintf("fc_%06d_%d", x.req.Index, n))}, {"status", mustJSON("completed")},
			{"call_id", call["id"]}, {"name", function["name"]}, {"arguments", function["arguments"]},
		}
		if space := namespaceOf(asArray(x.top["tools"]), asString(function["name"])); space != nil {
			members = append(members, member{"namespace", space})
		}
		items = append(items, joinObject(members))
	}
	if x.server.options.Seals != "" && !x.req.Summary {
		items = x.reason(items, before)
	}
	return items
}

// namespaceOf is the namespace among the tools that has a tool of that name; nil if none has.
func namespaceOf(tools []json.RawMessage, name string) json.RawMessage {
	for _, t := range tools {
		space := asObject(t)
		for _, inner := range asArray(space["tools"]) {
			if asString(asObject(inner)["name"]) == name {
				return space["name"]
			}
		}
	}
	return nil
}

func outputText(text string) json.RawMessage {
	return joinObject([]member{{"type", mustJSON("output_text")}, {"text", mustJSON(text)}, {"annotations", json.RawMessage("[]")}})
}

func (x *exchange) speaksResponses() bool { return strings.HasSuffix(x.r.URL.Path, "/responses") }

func typeOf(item json.RawMessage) string {
	o := asObject(item)
	if kind := asString(o["type"]); kind != "" || !given(o["role"]) {
		return kind
	}
	return "message"
}
