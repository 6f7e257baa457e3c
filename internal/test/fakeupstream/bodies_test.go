package fakeupstream_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestBodiesRefused checks rules that concern the whole body, and rules that only some servers have.
func TestBodiesRefused(t *testing.T) {
	f := func(o fakeupstream.Options, able bool, path string, cases map[string]string) {
		t.Helper()
		s := fakeupstream.New(o)
		if !able {
			s.RefuseCompaction()
		}
		if err := s.Start(); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for body, want := range cases {
			status, answer := postAnthropic(t, s, path, body)
			var got struct{ Error struct{ Message string } }
			if err := json.Unmarshal([]byte(answer), &got); err != nil || status == http.StatusOK || got.Error.Message != want {
				t.Errorf("%s\n%d %s\nwant %s", body, status, answer, want)
			}
		}
	}
	const asked = `{"role":"user","content":"go"}`
	one := fakeupstream.Options{Models: []string{"m"}}
	message := func(more string) string {
		return `{"model":"m","max_tokens":10,"messages":[` + asked + `]` + more + `}`
	}
	said := func(block string) string {
		return `{"model":"m","max_tokens":10,"messages":[` + asked + `,{"role":"assistant","content":[` + block + `]}]}`
	}
	f(one, true, "/messages", map[string]string{
		`[]`: "The request body is not valid JSON: expected an object",
		`{"max_tokens":10,"messages":[` + asked + `]}`:                           "model: Field required",
		`{"model":"m","messages":[` + asked + `]}`:                               "max_tokens: Field required",
		`{"model":"m","max_tokens":10}`:                                          "messages: Field required",
		`{"model":"other","max_tokens":10,"messages":[` + asked + `]}`:           "model: other",
		message(`,"compaction":{},"context_management":{}`):                      "compaction: cannot be combined with context_management",
		said(`{"type":"tool_result","tool_use_id":"A"}`):                         "messages.1.content.0: `tool_result` blocks can only be in `user` messages",
		said(`{"type":"compaction","content":"forged"}`):                         "messages.1.content.0.compaction: the block was not made by this API",
		said(`{"type":"tool_use","id":"A","name":"n","input":"x"}`):              "messages.1.content.0.tool_use.input: Input should be a valid dictionary",
		`{"model":"m","max_tokens":10,"messages":[` + asked + `,{"content":7}]}`: "messages.1.role: Input should be 'user' or 'assistant'",
	})
	f(one, false, "/messages", map[string]string{
		message(`,"compaction":{}`):         "compaction: Extra inputs are not permitted",
		message(`,"context_management":{}`): "context_management: Extra inputs are not permitted",
	})
	f(fakeupstream.Options{ContextWindow: 12}, true, "/messages", map[string]string{
		message(""): "input length and `max_tokens` exceed context limit: 7 + 10 > 12, decrease input length or `max_tokens` and try again",
	})
	f(one, true, "/responses", map[string]string{
		`[]`:                            "We could not parse the JSON body of your request.",
		`{"input":"go"}`:                "Missing required parameter: 'model'.",
		`{"model":"m"}`:                 "Missing required parameter: 'input'.",
		`{"model":"other","input":"a"}`: "The model `other` does not exist or you do not have access to it.",
		`{"model":"m","input":["a"]}`:   "Invalid type for 'input[0]': expected an object, but got a string instead.",
		`{"model":"m","input":[{"type":"function_call","call_id":"A","name":"n","arguments":{}}]}`:                               "Invalid type for 'input[0].arguments': expected a string, but got an object instead.",
		`{"model":"m","input":[{"type":"message","id":"i","role":"user","content":"a"},{"id":"i","role":"user","content":"a"}]}`: "Duplicate item found with id i. Remove duplicate items from your input and try again.",
		`{"model":"m","input":[{"type":"function_call_output","call_id":"A","output":"x"}]}`:                                     "No tool call found for function call output with call_id A.",
		`{"model":"m","input":[{"type":"function_call","call_id":"A","name":"n","arguments":"{}"}]}`:                             "No tool output found for function call A.",
	})
	f(one, true, "/messages/count_tokens", map[string]string{`{"model":"m"}`: "messages: Field required"})
	for _, path := range []string{"/responses/input_tokens", "/responses/compact"} {
		f(one, true, path, map[string]string{`{"model":"m"}`: "Missing required parameter: 'input'."})
	}
	f(fakeupstream.Options{Alternates: true}, true, "/chat/completions", map[string]string{
		conversation(user, user):                           "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
		conversation(user, callsA, resultA, user):          "Unexpected role 'user' after role 'tool'",
		conversation(`{"role":"assistant","content":"x"}`): "After the optional system message, conversation roles must alternate user/assistant/user/assistant/...",
	})
}

// TestChatSeals: depending on its format, sealed reasoning is refused if the messages that it is bound to have changed, or it is required.
func TestChatSeals(t *testing.T) {
	const asked, other, call = `{"role":"user","content":"go"}`, `{"role":"user","content":"stop"}`, `{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}`
	const bare = `{"role":"assistant","content":null,"tool_calls":[` + call + `]}`
	const torn, loose = "messages.1: the thinking block is bound to a different conversation.", "messages.1: the reasoning belongs to another item."
	for form, want := range map[fakeupstream.Seal]struct{ moved, edited, without string }{
		fakeupstream.SealThinkingBlocks:   {moved: torn},
		fakeupstream.SealClaudeDetails:    {moved: torn},
		fakeupstream.SealResponsesDetails: {edited: loose, without: "Item 'fc_a' of type 'function_call' was provided without its required 'reasoning' item."},
		fakeupstream.SealThoughtSignature: {without: "Function call is missing a thought_signature in functionCall parts."},
	} {
		var sealed string
		s := start(t, fakeupstream.Options{Seals: form})
		s.Script(fakeupstream.Answer{Message: json.RawMessage(bare), Sealed: func(m json.RawMessage) { sealed = string(m) }})
		ask(t, s, conversation(asked))
		for body, want := range map[string]string{
			conversation(asked, sealed, resultA):                                    "",
			conversation(other, sealed, resultA):                                    want.moved,
			conversation(asked, strings.Replace(sealed, "null", `"x"`, 1), resultA): want.edited,
			conversation(asked, bare, resultA):                                      want.without,
		} {
			status, answer := ask(t, s, body)
			if want == "" && status != http.StatusOK || want != "" && (status != http.StatusBadRequest || !strings.Contains(answer, want)) {
				t.Errorf("%s: %s\n%d %s, want %q", form, body, status, answer, want)
			}
		}
	}
}

// TestChatLoopNeedsThinking: with thinking enabled, a tool loop needs the thinking that it began with.
func TestChatLoopNeedsThinking(t *testing.T) {
	const asked, thinking = `{"role":"user","content":"go"}`, `{"thinking":{"type":"enabled"},`
	for _, form := range []fakeupstream.Seal{fakeupstream.SealThinkingBlocks, fakeupstream.SealClaudeDetails} {
		var sealed string
		s := start(t, fakeupstream.Options{Seals: form})
		s.Script(fakeupstream.Answer{Message: json.RawMessage(callsA), Sealed: func(m json.RawMessage) { sealed = string(m) }})
		ask(t, s, thinking+conversation(asked)[1:])
		if status, answer := ask(t, s, thinking+conversation(asked, sealed, resultA)[1:]); status != http.StatusOK {
			t.Errorf("%s: %d %s", form, status, answer)
		}
		status, answer := ask(t, s, thinking+conversation(asked, callsA, resultA)[1:])
		if status != http.StatusBadRequest || !strings.Contains(answer, "messages.1.content.0.type: Expected `thinking`") {
			t.Errorf("%s: %d %s", form, status, answer)
		}
	}
}

// TestSummariesMayHaveForeignSeals: a request for a summary is not refused for reasoning that belongs to the conversation it is about.
func TestSummariesMayHaveForeignSeals(t *testing.T) {
	s := start(t, fakeupstream.Options{Seals: fakeupstream.SealThoughtSignature, SummariserModels: []string{"cheap"}})
	const foreign = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x"}}}]}`
	for model, want := range map[string]int{"cheap": http.StatusOK, "gpt-4o": http.StatusBadRequest} {
		if status, answer := ask(t, s, strings.Replace(conversation(user, foreign, resultA), "gpt-4o", model, 1)); status != want {
			t.Errorf("%s: %d %s", model, status, answer)
		}
	}
}
