package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// protocol is the API that a gateway's client speaks.
type protocol struct {
	name   string
	of     replay.Protocol
	path   string
	prompt string // the member with the system prompt; empty: it is a message
	list   string // the member with the history
	limit  string // the member with the limit of the answer, which some servers demand
	answer string // an answer of upstream, with a place for the model's name and for what the model said
	plain  string // what the model says if it does not matter

	provider, base string // LiteLLM's name of the provider that speaks it, and where that provider's API begins
}

var chatProtocol = protocol{
	name: "Chat Completions", of: replay.ProtocolChat, path: "/v1/chat/completions", provider: "openai", base: "/v1", list: "messages", limit: "max_tokens",
	answer: `{"id":"c","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`,
	plain:  `{"role":"assistant","content":"ok"}`,
}

var messagesProtocol = protocol{
	name: "Messages", of: replay.ProtocolMessages, path: "/v1/messages", provider: "anthropic", prompt: "system", list: "messages", limit: "max_tokens",
	answer: `{"id":"m","type":"message","model":%q,"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"output_tokens":0},%s`,
	plain:  `{"role":"assistant","content":[{"type":"text","text":"ok"}]}`,
}

var responsesProtocol = protocol{
	name: "Responses", of: replay.ProtocolResponses, path: "/v1/responses", provider: "openai", base: "/v1", prompt: "instructions", list: "input", limit: "max_output_tokens",
	answer: `{"id":"r","object":"response","created_at":1,"status":"completed","model":%q,"parallel_tool_calls":true,"tool_choice":"auto","tools":[],` +
		`"output":[%s]}`,
	plain: `{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]}]}`,
}

// body returns the request of a run with these messages.
func (p protocol) body(run *replay.Run, messages []json.RawMessage) []byte {
	joined := make([]string, len(messages))
	for i, m := range messages {
		joined[i] = string(m)
	}
	body := map[string]any{"model": modelName, p.list: json.RawMessage("[" + strings.Join(joined, ",") + "]"), p.limit: 4096}
	if p.prompt != "" && len(run.System) > 0 {
		body[p.prompt] = run.System
	}
	if len(run.Tools) > 0 && string(run.Tools) != "null" {
		body["tools"] = run.Tools
	}
	text, _ := json.Marshal(body)
	return text
}

// says returns upstream's answer with what the model said: a message, or items with commas between them.
func (p protocol) says(said json.RawMessage) string {
	text := string(said)
	if p.of == replay.ProtocolMessages {
		text = strings.TrimPrefix(strings.TrimSpace(text), "{")
	}
	return fmt.Sprintf(p.answer, modelName, text)
}

// history returns what is compared of a request: in Chat Completions the messages as they are, otherwise what they say, since LiteLLM rewrites
// the messages of other APIs. In Messages a record counts by its place only: LiteLLM writes the arguments of calls anew before Dewpoint sees them,
// and a record quotes them.
func (p protocol) history(body map[string]any) any {
	if p.of == replay.ProtocolChat {
		return body[p.list]
	}
	lines := sayings("system", body[p.prompt])
	all, _ := body[p.list].([]any)
	for _, m := range all {
		lines = append(lines, sayingsOf(m)...)
	}
	if p.of == replay.ProtocolMessages {
		for i, line := range lines {
			if strings.Contains(line, recordMark) {
				lines[i] = "a record"
			}
		}
	}
	return anyOf(lines)
}

// recordMark stands in each record of excerpts.
const recordMark = "Lines from those messages, word for word"

func anyOf(lines []string) []any {
	out := make([]any, len(lines))
	for i, s := range lines {
		out[i] = s
	}
	return out
}

// sayingsOf returns what a message or an item says: texts with who said them, calls, and results.
func sayingsOf(m any) []string {
	o, _ := m.(map[string]any)
	switch o["type"] {
	case "function_call":
		return []string{fmt.Sprintf("call %v %v: %s", o["call_id"], o["name"], canonical(o["arguments"]))}
	case "function_call_output":
		return []string{fmt.Sprintf("result %v: %s", o["call_id"], plainText(o["output"]))}
	}
	role, _ := o["role"].(string)
	return sayings(role, o["content"])
}

// sayings returns what a content says.
func sayings(role string, content any) (out []string) {
	if role == "developer" {
		role = "system"
	}
	if text, is := content.(string); is {
		content = []any{map[string]any{"type": "text", "text": text}}
	}
	blocks, _ := content.([]any)
	for _, block := range blocks {
		b, _ := block.(map[string]any)
		switch b["type"] {
		case "tool_use":
			out = append(out, fmt.Sprintf("call %v %v: %s", b["id"], b["name"], canonical(b["input"])))
		case "tool_result":
			out = append(out, fmt.Sprintf("result %v: %s", b["tool_use_id"], plainText(b["content"])))
		case "text", "input_text", "output_text":
			out = append(out, fmt.Sprintf("%s: %v", role, b["text"]))
		default:
			out = append(out, fmt.Sprintf("%s: %s", role, canonical(block)))
		}
	}
	return out
}

// canonical returns a value as JSON, the same for equal values. A string is taken for JSON if it is.
func canonical(v any) string {
	if text, is := v.(string); is {
		var inner any
		if json.Unmarshal([]byte(text), &inner) != nil {
			return text
		}
		v = inner
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// plainText returns the text of a result.
func plainText(v any) string {
	blocks, is := v.([]any)
	if !is {
		return fmt.Sprint(v)
	}
	var texts []string
	for _, block := range blocks {
		b, _ := block.(map[string]any)
		texts = append(texts, fmt.Sprint(b["text"]))
	}
	return strings.Join(texts, "")
}

// sent returns what is compared of a request's body.
func (p protocol) sent(body []byte) any {
	var o map[string]any
	_ = json.Unmarshal(body, &o)
	return p.history(o)
}

// shorter reports whether what was forwarded has less than what the client sent.
func shorter(sent, forwarded any) bool {
	a, _ := sent.([]any)
	b, _ := forwarded.([]any)
	return len(b) < len(a)
}
