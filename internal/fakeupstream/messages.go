package fakeupstream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// messages judges a request of Anthropic's Messages API and answers it. Its errors have Anthropic's shape. Answers are scripted in
// OpenAI's form and told in Anthropic's.
// https://docs.claude.com/en/api/messages
func (x *exchange) messages() {
	count := x.server.options.CountTokens
	if err := x.judgeMessages(true); err != nil {
		x.refuseAnthropic(err)
		return
	}
	takes := measureMessages(x.top, count)
	window := x.server.options.window(x.req.Model)
	if err := checkAnthropicLimits(takes, window); err != nil {
		x.refuseAnthropic(err)
		return
	}
	x.account(takes)
	if x.server.options.Seals != "" {
		if err := x.checkThinking(); err != nil {
			x.refuseAnthropic(err)
			return
		}
	}
	if given(x.top["compaction"]) {
		x.playBlocks(Answer{}, []json.RawMessage{x.compactionBlock()}, "compaction")
		return
	}
	a := x.server.answer(x)
	if a.Error != nil || a.Raw != nil {
		x.play(a)
		return
	}
	blocks := contentBlocks(a.message())
	if x.server.options.Seals != "" {
		blocks = x.think(blocks)
	}
	if trigger := compactsAt(x.top["context_management"]); trigger > 0 && x.req.PromptTokens > trigger {
		blocks = append([]json.RawMessage{x.compactionBlock()}, blocks...)
	}
	x.playBlocks(a, blocks, stopReason(a, blocks))
}

// compactionBlock stands for the messages before it.
func (x *exchange) compactionBlock() json.RawMessage {
	return joinObject([]member{
		{"type", mustJSON("compaction")}, {"content", mustJSON(compactionOf(x.req.Messages))}, {"encrypted_content", json.RawMessage("null")},
	})
}

// compactsAt is the number of tokens above which an edit compacts, 0 if none does. 150,000 is the API's default.
func compactsAt(management json.RawMessage) int {
	for _, edit := range asArray(asObject(management)["edits"]) {
		if o := asObject(edit); asString(o["type"]) == "compact_20260112" {
			if trigger := asObject(o["trigger"]); given(trigger["value"]) {
				return asCount(trigger["value"])
			}
			return 150_000
		}
	}
	return 0
}

// countTokens tells what a request would take.
// https://docs.claude.com/en/api/messages-count-tokens
func (x *exchange) countTokens() {
	if err := x.judgeMessages(false); err != nil {
		x.refuseAnthropic(err)
		return
	}
	x.sendJSON(fmt.Sprintf(`{"input_tokens":%d}`, measureMessages(x.top, x.server.options.CountTokens).prompt()))
}

// checkAnthropicKey judges the credential: a key as x-api-key, or a bearer token.
func checkAnthropicKey(header http.Header, keys []string) *APIError {
	if len(keys) == 0 {
		return nil
	}
	for _, known := range keys {
		if header.Get("X-Api-Key") == known || header.Get("Authorization") == "Bearer "+known {
			return nil
		}
	}
	return &APIError{http.StatusUnauthorized, "invalid x-api-key", "authentication_error", "", ""}
}

func measureMessages(top object, count func([]byte) int) size {
	s := measure(top, asArray(top["messages"]), count)
	if given(top["system"]) {
		s.messages += count(top["system"])
	}
	return s
}

func checkAnthropicLimits(s size, window int) *APIError {
	switch {
	case window == 0:
		return nil
	case s.prompt() > window:
		return refuse("", "context_length_exceeded", "prompt is too long: %d tokens > %d maximum", s.prompt(), window)
	case s.prompt()+s.output > window:
		return refuse("", "context_length_exceeded", "input length and `max_tokens` exceed context limit: %d + %d > %d, decrease input length or "+
			"`max_tokens` and try again", s.prompt(), s.output, window)
	}
	return nil
}

// refuseAnthropic answers with an error in Anthropic's shape.
// https://docs.claude.com/en/api/errors
func (x *exchange) refuseAnthropic(e *APIError) {
	x.server.record.change(func() { x.req.Refused, x.req.Summary = e, false })
	body := mustJSON(map[string]any{"type": "error", "error": map[string]string{"type": e.Type, "message": e.Message}})
	x.play(Answer{Raw: &Raw{e.Status, "application/json", body}})
}

// playBlocks answers with a message, whole or streamed.
func (x *exchange) playBlocks(a Answer, blocks []json.RawMessage, stop string) {
	count := x.server.options.CountTokens
	cached := x.server.cache.use(x.anthropicPrompt(), count)
	out := 0
	for _, b := range blocks {
		out += count(b)
	}
	x.server.record.change(func() { x.req.CachedTokens = cached })
	reply := anthropicMessage{
		index: x.req.Index, model: x.req.Model, blocks: blocks, stop: stop,
		fresh: x.req.PromptTokens - cached, cached: cached, output: out,
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

// anthropicPrompt is what the cache sees: caching marks are no part of a prefix.
func (x *exchange) anthropicPrompt() prompt {
	p := prompt{owner: x.r.Header.Get("X-Api-Key") + x.r.Header.Get("Authorization"), model: x.req.Model, tools: x.req.Tools, form: x.top["output_config"]}
	p.messages = append(p.messages, unmarked(x.top["system"]))
	for _, setting := range []string{"tool_choice", "thinking"} { // a change of them costs the messages
		p.messages = append(p.messages, x.top[setting])
	}
	for _, m := range x.req.Messages {
		p.messages = append(p.messages, unmarked(m))
	}
	return p
}

// unmarked leaves cache_control out, at whatever depth.
func unmarked(raw json.RawMessage) json.RawMessage {
	switch kindOf(raw) {
	case kindArray:
		all := asArray(raw)
		for i := range all {
			all[i] = unmarked(all[i])
		}
		return mustJSON(all)
	case kindObject:
		var kept []member
		for _, m := range membersOf(raw) {
			if m.key != "cache_control" {
				kept = append(kept, member{m.key, unmarked(m.value)})
			}
		}
		return joinObject(kept)
	}
	return raw
}

// contentBlocks translates an assistant message of OpenAI's.
func contentBlocks(message json.RawMessage) []json.RawMessage {
	var blocks []json.RawMessage
	o := asObject(message)
	if text := contentText(o["content"]); strings.TrimSpace(text) != "" {
		blocks = append(blocks, mustJSON(map[string]string{"type": "text", "text": text}))
	}
	for _, c := range asArray(o["tool_calls"]) {
		call := asObject(c)
		function := asObject(call["function"])
		input := json.RawMessage(asString(function["arguments"]))
		if kindOf(input) != kindObject || !json.Valid(input) {
			input = mustJSON(map[string]string{"arguments": string(input)})
		}
		blocks = append(blocks, joinObject([]member{
			{"type", mustJSON("tool_use")}, {"id", call["id"]}, {"name", function["name"]}, {"input", input},
		}))
	}
	return blocks
}

func stopReason(a Answer, blocks []json.RawMessage) string {
	switch {
	case a.FinishReason == "length":
		return "max_tokens"
	case len(blocks) > 0 && asString(asObject(blocks[len(blocks)-1])["type"]) == "tool_use":
		return "tool_use"
	}
	return "end_turn"
}

func (x *exchange) speaksAnthropic() bool { return strings.HasSuffix(x.r.URL.Path, "/messages") }
