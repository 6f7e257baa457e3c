package dialect_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestOpening checks which events only open a stream. Whatever a client could show, count or act on is more than that.
func TestOpening(t *testing.T) {
	f := func(d dialect.Dialect, want bool, events ...string) {
		t.Helper()
		for _, event := range events {
			if got := d.Opening([]byte(event + "\n\n")); got != want {
				t.Errorf("%s: %t", event, got)
			}
		}
	}
	chunk := func(delta string) string {
		return `data: {"id":"x","created":1,"choices":[{"index":0,"delta":` + delta + `}]}`
	}
	c, m, r := chat.New(chat.Options{}), messages.New(split.Options{}), responses.New(split.Options{})
	f(c, true, ": waiting", "retry: 100", chunk(`{"role":"assistant"}`), chunk(`{"role":"assistant","content":"","tool_calls":[],"refusal":null}`),
		`data: {"choices":[],"prompt_filter_results":[{"prompt_index":0}]}`, `data: {"choices":[{"index":3,"delta":{},"finish_reason":null}],"error":null}`)
	f(c, false, chunk(`{"content":"a"}`), chunk(`{"role":"assistant","content":"","reasoning_content":"Hm"}`), "data: [DONE]", "data: {}", "data: 1",
		chunk(`{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"f","arguments":""}}]}`), `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`,
		`data: {"choices":[{"delta":{"content":""}}],"error":{"code":400}}`, chunk(`{"content":"a"}`)+"\n"+chunk(`{}`), chunk(`{}`)+"\n"+chunk(`{"content":"a"}`))
	f(m, true, `data: {"type":"message_start","message":{"content":[]}}`, "event: ping\ndata: {\"type\":\"ping\"}",
		`data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`)
	f(m, false, `data: {"type":"error","error":{}}`, `data: {"type":"content_block_start","content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}`,
		`data: {"type":"content_block_delta","delta":{"type":"text_delta","text":""}}`, `data: {"type":"message_stop"}`)
	f(r, true, `data: {"type":"response.queued"}`, `data: {"type":"response.in_progress","response":{"output":[]}}`)
	f(r, false, `data: {"type":"response.output_item.added","item":{}}`, `data: {"type":"response.failed"}`, `data: {"type":"error"}`)
	g := gemini.New(split.Options{})
	f(g, true, `data: {"usageMetadata":{"promptTokenCount":1},"responseId":"a"}`, `data: {"candidates":[{"content":{"role":"model","parts":[]},"index":0}]}`)
	f(g, false, `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]}}]}`, `data: {"candidates":[{"finishReason":"STOP"}]}`,
		`data: {"error":{"code":400}}`, `data: {"promptFeedback":{"blockReason":"SAFETY"}}`, `data: {"response":{"candidates":[{"content":{"parts":[{"thought":true}]}}]}}`)
}
