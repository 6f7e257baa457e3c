package chat_test

import (
	"testing"

	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
)

func TestStripReasoning(t *testing.T) {
	d := chat.New(chat.Options{})
	f := func(raw, want string) {
		t.Helper()
		got, err := d.StripReasoning([]byte(raw))
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s, %v\nwant %s", raw, got, err, want)
		}
	}
	f(`{"role":"assistant","content":"x","thinking_blocks":[{"type":"thinking","thinking":"t","signature":"s"}],"tool_calls":[{"id":"a"}]}`,
		`{"role":"assistant","content":"x","tool_calls":[{"id":"a"}]}`)
	f(`{"thinking_blocks":[{"signature":"s"}],"role":"assistant","content":"x"}`, `{"role":"assistant","content":"x"}`)
	f(`{"role":"assistant", "content" : [ {"type":"thinking","thinking":"t","signature":"s"} , {"type":"text", "text":"x"} ] }`,
		`{"role":"assistant","content":[{"type":"text", "text":"x"}]}`)
	f(`{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]}`, `{"role":"assistant","content":""}`)
	f(`{"role":"assistant","content":[{"type":"thinking","thinking":"t"}],"tool_calls":[{"id":"a"}]}`,
		`{"role":"assistant","content":null,"tool_calls":[{"id":"a"}]}`)
	f(`{"role":"assistant","content":[{"type":"thinking","thinking":"t"}],"function_call":{"name":"f"}}`,
		`{"role":"assistant","content":null,"function_call":{"name":"f"}}`)
	f(`{"role":"assistant","content":"x","reasoning":"plain","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"s"}]}`,
		`{"role":"assistant","content":"x","reasoning":"plain"}`)
	f(`{"role":"assistant","content":"x","reasoning_details":[{"data":"d","format":"openai-responses-v1"},{"data":"e"}]}`,
		`{"role":"assistant","content":"x","reasoning_details":[{"data":"d","format":"openai-responses-v1"}]}`)
	f(`{"role":"assistant","content":"x"}`, `{"role":"assistant","content":"x"}`)
	for _, raw := range []string{``, `[]`, `{"role":`} {
		if got, err := d.StripReasoning([]byte(raw)); err == nil {
			t.Errorf("%q: got %s", raw, got)
		}
	}
}

// TestSplitNeedsReasoning checks that only manual thinking binds a tool loop to its reasoning.
func TestSplitNeedsReasoning(t *testing.T) {
	d := chat.New(chat.Options{})
	f := func(member string, want bool) {
		t.Helper()
		r, err := d.Split("", []byte(`{"messages":[{"role":"user","content":"x"}]`+member+`}`))
		if err != nil || r.NeedsReasoning != want {
			t.Errorf("%s: %+v, %v", member, r, err)
		}
	}
	f(``, false)
	f(`,"thinking":{"type":"enabled","budget_tokens":2000}`, true)
	f(`,"thinking":{"type":"adaptive"}`, false)
	f(`,"thinking":{"type":"disabled"}`, false)
	f(`,"thinking":null`, false)
	f(`,"thinking":true`, false)
}
