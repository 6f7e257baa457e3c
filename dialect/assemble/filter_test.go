package assemble_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/gemini"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// Streams with a hidden call and other parts, in each protocol.
const (
	chatStream = `data: {"id":"a","choices":[{"index":0,"delta":{"role":"assistant","content":"So. ","tool_calls":[{"index":0,"id":"x","function":{"name":"recall","arguments":"{}"}}]}}]}

data: {"id":"a","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: {"id":"a","choices":[],"usage":{"prompt_tokens":3}}

data: [DONE]

`
	messagesStream = `event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":3}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"x","name":"recall","input":{}}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}

event: message_stop
data: {"type":"message_stop"}

`
	geminiStream = `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"So. "},{"functionCall":{"name":"recall","args":{}},"thoughtSignature":"c2ln"}]}}],"responseId":"a"}

data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":3},"responseId":"a"}

`
	responsesStream = `event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"type":"reasoning","id":"r"}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":{"type":"reasoning","id":"r"}}

event: response.output_item.added
data: {"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"type":"function_call","name":"recall","id":"f"}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":4,"output_index":1,"item":{"type":"function_call","name":"recall","id":"f","arguments":"{}"}}

event: response.completed
data: {"type":"response.completed","sequence_number":5,"response":{"id":"x","status":"completed","output":[]}}

`
)

// FuzzStrain checks that the filtered answer does not depend on how the streams are cut into pieces, and that no stream
// makes a filter panic.
func FuzzStrain(f *testing.F) {
	for _, stream := range []string{chatStream, messagesStream, responsesStream, geminiStream} {
		f.Add([]byte(stream), []byte(stream), 7)
		f.Add([]byte(stream[:len(stream)/2]), []byte("data:\r\n\r\n: x\ndata: [DONE]"), 1)
	}
	f.Add([]byte(`data: {"type":"response.output_item.done","item":1}`), []byte(`data: {"choices":[{"delta":{"tool_calls":[1]}}]}`), 3)
	hiders := []dialect.Hider{chat.New(chat.Options{}), messages.New(split.Options{}), responses.New(split.Options{}), gemini.New(split.Options{})}
	f.Fuzz(func(t *testing.T, first, second []byte, size int) {
		for _, d := range hiders {
			if whole, pieces := strained(d, 1<<20, first, second), strained(d, size, first, second); whole != pieces {
				t.Fatalf("%q became %q, in pieces %q", first, whole, pieces)
			}
		}
	})
}

func strained(d dialect.Hider, size int, answers ...[]byte) string {
	s := d.FilterAnswers(true, func(tool string) bool { return tool == "recall" })
	var out []byte
	for n, text := range answers {
		if n > 0 {
			s.Next()
		}
		for len(text) > 0 {
			cut := min(max(size, 1), len(text))
			out = append(out, s.Write(text[:cut])...)
			text = text[cut:]
		}
		s.Close()
	}
	s.Echo()
	return string(append(out, s.Finish()...))
}
