package replay

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

// answer returns the answer of the stand-in to a prompt with events, with further fields of the request.
func answer(t *testing.T, more string, events ...string) string {
	t.Helper()
	prompt := `<dewpoint_previous>\nCURRENT_STATE: begun\nNEXT_STEP: go on\n</dewpoint_previous>\n\n<dewpoint_kept note=\"kept\">\nuser:\nnever quoted\n</dewpoint_kept>\n\n<dewpoint_events>\n`
	for i, e := range events {
		prompt += fmt.Sprintf(`<dewpoint_event id=\"%d\" kind=\"action\">\n%s\n</dewpoint_event>\n`, 5+i, e)
	}
	body := `{"model": "m", "messages": [{"role": "system", "content": "Write a record."}, {"role": "user", "content": [{"type": "text", "text": "` +
		prompt + `</dewpoint_events>\n\nWrite the record now."}]}]` + more + `}`
	got, err := standIn(chatWire{}, []byte(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return string(got)
}

func TestStandIn(t *testing.T) {
	f := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	events := []string{`I look.\ncall c1: ls({\"path\": \".\"})`, `result of call c1\nmain.go`, `call c2: cat({})`, `<context>\nFix it.`}
	f(answer(t, "", events...), `{"content":"CURRENT_STATE: begun\ngo on\nI look.\ncat({})\nNEXT_STEP: Fix it.","role":"assistant"}`)
	f(answer(t, ""), `{"content":"CURRENT_STATE: begun\nNEXT_STEP: go on","role":"assistant"}`)
	const text = `{"type": "string"}`
	f(answer(t, `, "tools": [{"type": "function", "function": {"name": "other", "parameters": {}}}, {"type": "function", "function": {"name": "record",
		"parameters": {"type": "object", "properties": {"done": `+text+`, "left": `+text+`, "else": `+text+`}, "required": ["done", "left"]}}}],
		"tool_choice": {"type": "function", "function": {"name": "record"}}`, events...),
		`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{\"done\":\"begun\\ngo on\",\"left\":\"I look.\\ncat({})\\nFix it.\"}","name":"record"},"id":"call_record","type":"function"}]}`)
	f(answer(t, `, "response_format": {"type": "json_schema", "json_schema": {"name": "ranking", "schema": {"type": "object",
		"properties": {"ids": {"type": "array", "items": {"type": "integer"}}}, "required": ["ids"]}}}`, events...),
		`{"content":"{\"ids\":[8,7,6,5]}","role":"assistant"}`)
}

// TestStandInReusesTheAgentsPrompt: if a call reuses the agent's prompt, the answer is a record of the agent's messages rather than a call of
// the agent's tools.
func TestStandInReusesTheAgentsPrompt(t *testing.T) {
	got, err := standIn(chatWire{}, []byte(`{"model": "m", "tools": [{"type": "function", "function": {"name": "ls"}}], "tool_choice": "none", "messages": [
		{"role": "system", "content": "You are an agent."}, {"role": "user", "content": "Fix it."},
		{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "function": {"name": "ls", "arguments": "{}"}}]},
		{"role": "tool", "tool_call_id": "c1", "content": "main.go"}, {"role": "user", "content": "Stop here, and write a record."}]}`))
	if want := `{"content":"CURRENT_STATE: Fix it.\nNEXT_STEP: ls({})","role":"assistant"}`; err != nil || string(got) != want {
		t.Errorf("%v, got %s, want %s", err, got, want)
	}
}

// TestStandInIsBounded: a record is an eighth as long as the prompt, but at most 4,000 characters, and shorter if the call limits the answer. It
// quotes the oldest and the newest lines.
func TestStandInIsBounded(t *testing.T) {
	var events []string
	for i := range 1000 {
		events = append(events, fmt.Sprintf("%d %s", i, strings.Repeat("é", 150)))
	}
	for more, most := range map[string]int{"": 4000, `, "max_tokens": 500`: 1000, `, "max_completion_tokens": 4096`: 4000} {
		got := answer(t, more, events...)
		if n := utf8.RuneCountInString(got); n > most+100 || n < most/2 || !strings.Contains(got, `begun\ngo on\n0 éé`) || !strings.Contains(got, "NEXT_STEP: 999 éé") {
			t.Errorf("%s: %d characters: %s", more, n, got)
		}
	}
}

func TestStandInRefusesWhatItCannotRead(t *testing.T) {
	for _, body := range []string{"", "[]", `{"messages": 1}`} {
		if got, err := standIn(chatWire{}, []byte(body)); err == nil {
			t.Errorf("%s: answered %s", body, got)
		}
	}
}
