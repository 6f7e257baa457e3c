package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestOverflowBehindAnOpening: if an overflow is reported after comments and events that only open a stream, the request is condensed and sent
// again without the client noticing, in every protocol.
func TestOverflowBehindAnOpening(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
	history := make([]json.RawMessage, 31)
	for i := range history {
		text := fmt.Sprintf("part %d %s", i, strings.Repeat("more of it ", 40))
		history[i] = encode(map[string]string{"role": []string{"user", "assistant"}[i%2], "content": text})
	}
	for _, c := range []struct{ path, list, opening, overflow string }{
		{"/chat/completions", "messages", ": PROCESSING\n\n" +
			`data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}]}`,
			`data: {"error":{"message":"Your input exceeds the context window of this model.","code":"context_length_exceeded"}}`},
		{"/messages", "messages",
			"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n" +
				"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n" +
				"event: ping\ndata: {\"type\": \"ping\"}",
			"event: error\n" + `data: {"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`},
		{"/responses", "input",
			`data: {"type":"response.created","response":{"instructions":"` + strings.Repeat("Be brief. ", 10<<10) + `"}}` + "\n\n" + `data: {"type":"response.in_progress"}`,
			`data: {"type":"error","code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}`},
	} {
		s.Upstream.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{
			Status: http.StatusOK, ContentType: "text/event-stream", Body: []byte(c.opening + "\n\n" + c.overflow + "\n\n"),
		}})
		request := map[string]any{"model": "model-of" + c.path, "stream": true, c.list: history}
		if c.path == "/messages" {
			request["max_tokens"] = 400
		}
		a := sendTo(t, p, c.path, encode(request))
		answer, err := io.ReadAll(a.Body)
		ok(t, err)
		if !strings.HasPrefix(a.Header.Get("X-Dewpoint-Condensed"), "overflow") || strings.Contains(string(answer), "too long") || strings.Contains(string(answer), "exceed") {
			t.Errorf("%s: condensed %q: %.600s", c.path, a.Header.Get("X-Dewpoint-Condensed"), answer)
		}
	}
}
