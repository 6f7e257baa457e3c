package dialect_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/dialect/messages"
	"github.com/dewpoint-proxy/dewpoint/dialect/responses"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// TestReuse checks that the cached part of a body stays byte for byte, that options of the answer are removed, and that a body
// whose answer might not be text is not reused.
func TestReuse(t *testing.T) {
	f := func(d dialect.Dialect, body, want string) {
		t.Helper()
		if got := string(d.Reuse([]byte(body), 1000)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", body, got, want)
		}
	}
	c := chat.New(chat.Options{})
	f(c, `{"model":"m", "stream":false,"n":2,"stop":["x"],"metadata":{"a":"b"},"store":true,"user":"u","messages":[ 1, 2 ],"temperature":0}`,
		`{"model":"m","user":"u","messages":[ 1, 2 ],"temperature":0,"stream":true,"stream_options":{"include_usage":true}}`)
	f(c, `{"messages":[],"tool_choice":"required","tools":[{"a":1}]}`,
		`{"messages":[],"tools":[{"a":1}],"tool_choice":"none","stream":true,"stream_options":{"include_usage":true}}`)
	f(c, `{"messages":[],"function_call":"auto","functions":[{"a":1}],"tools":[],"response_format":{"type":"text"}}`,
		`{"messages":[],"functions":[{"a":1}],"tools":[],"response_format":{"type":"text"},"function_call":"none","stream":true,"stream_options":{"include_usage":true}}`)
	f(c, `{"messages":[],"response_format":{"type":"json_object"}}`, "")
	f(c, `{"messages":[],"web_search_options":{}}`, "")
	f(c, `{"messages":[],"web_search_options":{},"response_format":{"type":"text"}}`, "")
	f(c, `{"messages":[],"max_tokens":64000}`, `{"messages":[],"max_tokens":4000,"stream":true,"stream_options":{"include_usage":true}}`)
	const streamed = `,"stream":true,"stream_options":{"include_usage":true}}`
	for _, choice := range []string{"", `,"tool_choice":"auto"`, `,"tool_choice":"none"`, `,"tool_choice":null`} { // part of the cache key
		f(c, `{"model":"Anthropic/Claude-x","tools":[{"a":1}],"messages":[1]`+choice+`}`,
			`{"model":"Anthropic/Claude-x","tools":[{"a":1}],"messages":[1]`+choice+streamed)
		f(c, `{"model":"alias","tools":[{"a":1}],"messages":[{"cache_control":{}}]`+choice+`}`,
			`{"model":"alias","tools":[{"a":1}],"messages":[{"cache_control":{}}]`+choice+streamed)
	}
	f(c, `{"model":"claude","tools":[{"a":1}],"tool_choice":"required","messages":[1]}`, "")
	f(c, `{"model":"claude","tools":[{"a":1}],"tool_choice":{"type":"function"},"messages":[1]}`, "")
	f(c, `{"model":"m","messages":["\"cache_control\""],"tools":[{"a":1}]}`,
		`{"model":"m","messages":["\"cache_control\""],"tools":[{"a":1}],"tool_choice":"none"`+streamed)
	f(c, `{"max_completion_tokens":64000,"messages":[]}`, `{"messages":[],"max_completion_tokens":4000`+streamed) // only the field that the client set
	for _, none := range []string{"-1", "64000.0", "null"} {                                                      // not a valid limit
		f(c, `{"max_tokens":`+none+`,"messages":[]}`, `{"max_tokens":`+none+`,"messages":[]`+streamed)
		f(c, `{"max_completion_tokens":`+none+`,"messages":[]}`, `{"max_completion_tokens":`+none+`,"messages":[]`+streamed)
	}
	f(c, `{"max_tokens":0,"messages":[]}`, "")
	for _, enough := range []string{"1000", "4000"} { // for the answer, and for a model that reasons
		f(c, `{"max_tokens":`+enough+`,"messages":[]}`, `{"max_tokens":`+enough+`,"messages":[]`+streamed)
	}
	f(c, `{"max_tokens":999,"messages":[]}`, "")
	f(c, `{"max_tokens":33000,"thinking":{"type":"enabled","budget_tokens":32000},"messages":[]}`,
		`{"max_tokens":33000,"thinking":{"type":"enabled","budget_tokens":32000},"messages":[]`+streamed)
	f(c, `{"max_tokens":3000,"messages":[]}`, `{"max_tokens":3000,"messages":[]`+streamed)
	f(c, `{"max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":32000},"messages":[]}`,
		`{"thinking":{"type":"enabled","budget_tokens":32000},"messages":[],"max_tokens":36000`+streamed)
	f(c, `{"max_tokens":32500,"reasoning":{"max_tokens":32000},"messages":[]}`, "")
	f(c, `{"messages":[],"modalities":["text","audio"],"audio":{"voice":"x"}}`, "")

	m := messages.New(split.Options{})
	f(m, `{"max_tokens":4000,"stream":true,"stop_sequences":["x"],"thinking":{"type":"enabled","budget_tokens":3000},"tool_choice":{"type":"auto"},"tools":[1],"messages":[1]}`,
		`{"thinking":{"type":"enabled","budget_tokens":3000},"tool_choice":{"type":"auto"},"tools":[1],"messages":[1],"max_tokens":4000,"stream":true}`)
	f(m, `{"max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":3001},"messages":[1]}`, "")
	f(m, `{"max_tokens":999,"messages":[1]}`, "")
	f(m, `{"max_tokens":4000,"tool_choice":{"type":"any"},"messages":[1]}`, "")
	f(m, `{"max_tokens":4000,"output_config":{"format":{"type":"json_schema"}},"messages":[1]}`, "")
	f(m, `{"max_tokens":4000,"output_config":{"effort":"low"},"messages":[1]}`, `{"output_config":{"effort":"low"},"messages":[1],"max_tokens":4000,"stream":true}`)
	f(m, `{"max_tokens":64000,"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},"messages":[1]}`,
		`{"context_management":{"edits":[{"type":"clear_thinking_20251015"}]},"messages":[1],"max_tokens":4000,"stream":true}`)
	for _, acts := range []string{
		`"mcp_servers":[{"name":"x"}]`, `"tools":[{"type":"web_search_20250305","name":"web_search"}]`,
		`"context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`, `"context_management":{"edits":[{"type":"compact_20260112"}]}`,
	} {
		f(m, `{"max_tokens":4000,`+acts+`,"messages":[1]}`, "")
	}
	f(m, `{"max_tokens":4000,"tools":[{"name":"a"},{"type":"custom","name":"b"}],"messages":[1]}`,
		`{"tools":[{"name":"a"},{"type":"custom","name":"b"}],"messages":[1],"max_tokens":4000,"stream":true}`)

	r := responses.New(split.Options{})
	f(r, `{"input":[1],"store":true,"background":true,"stream":false,"tool_choice":{"type":"function","name":"x"},"tools":[1],"text":{"verbosity":"low"},"include":["a"]}`,
		`{"input":[1],"tools":[1],"text":{"verbosity":"low"},"include":["a"],"tool_choice":"none","stream":true,"store":false}`)
	f(r, `{"input":[1],"text":{"format":{"type":"text"}}}`, `{"input":[1],"text":{"format":{"type":"text"}},"stream":true,"store":false}`)
	f(r, `{"input":[1],"max_output_tokens":9000}`, `{"input":[1],"max_output_tokens":4000,"stream":true,"store":false}`)
	f(r, `{"input":[1],"max_output_tokens":4000}`, `{"input":[1],"max_output_tokens":4000,"stream":true,"store":false}`)
	f(r, `{"input":[1],"prompt":{"id":"pmpt_1"}}`, "")
	f(r, `{"input":[1],"context_management":[{"type":"compaction"}]}`, "")
	f(r, `{"input":[1],"text":{"format":{"type":"json_schema"}}}`, "")
}
