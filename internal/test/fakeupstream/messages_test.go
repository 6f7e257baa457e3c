package fakeupstream_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// postAnthropic sends a body to the Messages API, and returns the status and the answer.
func postAnthropic(t *testing.T, s *fakeupstream.Server, path, body string, betas ...string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, s.URL()+"/v1"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Anthropic-Version", "2023-06-01")
	req.Header["Anthropic-Beta"] = betas
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestCompactsAbove: an edit compacts above its trigger, or above 150,000 tokens.
func TestCompactsAbove(t *testing.T) {
	for trigger, least := range map[string]int{"": 150_000, `,"trigger":{"type":"input_tokens","value":700}`: 700} {
		for tokens, want := range map[int]bool{least: false, least + 1: true} {
			s := start(t, fakeupstream.Options{CountTokens: func([]byte) int { return tokens }})
			_, answer := postAnthropic(t, s, "/messages", `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"go"}],
				"context_management":{"edits":[{"type":"clear_thinking_20251015"},{"type":"compact_20260112"`+trigger+`}]}}`)
			if got := strings.Contains(answer, `"type":"compaction"`); got != want {
				t.Errorf("%d tokens are compacted: %v\n%s", tokens, got, answer)
			}
		}
	}
}

// TestMessagesNeedAVersion: the header that names the version of the API is required.
func TestMessagesNeedAVersion(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	resp, err := http.Post(s.URL()+"/v1/messages", "application/json", strings.NewReader(`{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"go"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if answer, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(answer), "anthropic-version: header is required") {
		t.Errorf("%d %s", resp.StatusCode, answer)
	}
}

// TestMessagesRules: each body is refused with the API's message, or accepted if the case has no message.
func TestMessagesRules(t *testing.T) {
	s := fakeupstream.New(fakeupstream.Options{ContextWindow: 2000})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := func(elements, want string) {
		t.Helper()
		status, answer := postAnthropic(t, s, "/messages", `{"model":"m","max_tokens":10,"messages":[`+elements+`]}`)
		if want == "" && status != http.StatusOK || want != "" && (status != http.StatusBadRequest || !strings.Contains(answer, want)) {
			t.Errorf("%.200s\n%d %s, want %q", elements, status, answer, want)
		}
	}
	const asked, calls = `{"role":"user","content":"go"}`, `{"role":"assistant","content":[{"type":"tool_use","id":"A","name":"n","input":{}},{"type":"tool_use","id":"B","name":"n","input":{}}]}`
	const a, b = `{"type":"tool_result","tool_use_id":"A","content":"x"}`, `{"type":"tool_result","tool_use_id":"B"}`
	user := func(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
	f(asked, "")
	f(asked+","+calls+","+user(b+","+a+`,{"type":"text","text":"and"}`), "")
	f(asked+","+calls+","+user(b)+","+user(a), "")
	f(asked+`,{"role":"assistant","content":[{"type":"thinking","thinking":"A thought.","signature":"of another history"},{"type":"text","text":"x"}]},`+asked, "")
	f(asked+`,{"role":"system","content":[],"output_config":{"effort":"high"}}`, "")
	f(asked+`,{"role":"system","content":[]}`, "non-empty content")
	f("", "at least one message")
	f(`{"role":"assistant","content":"a"}`, `first message must use the \"user\" role`)
	f(`{"role":"tool","content":"a"}`, "Input should be 'user' or 'assistant'")
	f(`{"role":"user","content":"a","name":"n"}`, "Extra inputs are not permitted")
	f(`{"role":"user","content":[]}`, "non-empty content")
	f(`{"role":"user","content":" "}`, "text content blocks must be non-empty")
	f(user(`{"type":"tool_use","id":"A","name":"n","input":{}}`), "can only be in `assistant` messages")
	f(user(`{"type":"image"}`), "Field required")
	f(user(`{"type":"sound"}`), "does not match any of the expected tags")
	f(asked+","+calls+","+user(a), "without `tool_result` blocks immediately after: B")
	f(asked+","+calls+","+user(a+`,{"type":"text","text":"and"},`+b), "without `tool_result` blocks immediately after: B")
	f(asked+","+user(a), "unexpected `tool_use_id`")
	f(asked+","+calls+","+user(a+","+b)+","+calls, "ids must be unique")
	marked := `{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}`
	f(user(strings.Repeat(marked+",", 3)+marked), "")
	f(user(strings.Repeat(marked+",", 4)+marked), "A maximum of 4 blocks")
	f(`{"role":"user","content":"`+strings.Repeat("word ", 2000)+`"}`, "prompt is too long")
	if status, answer := postAnthropic(t, s, "/messages/count_tokens", `{"model":"m","messages":[`+asked+`]}`); status != http.StatusOK || !strings.Contains(answer, `"input_tokens":7`) {
		t.Errorf("%d %s", status, answer)
	}
	for _, r := range s.Requests() {
		if len(r.Dropped) > 0 {
			t.Errorf("a server that signs no thinking drops some of %s", r.Body)
		}
	}
}

// TestMessagesThinking: signed thinking is refused if the messages before it differ from those that it was made after.
func TestMessagesThinking(t *testing.T) {
	s := fakeupstream.New(fakeupstream.Options{Seals: fakeupstream.SealThinkingBlocks})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const asked = `{"role":"user","content":"go"}`
	send := func(elements string) (int, string) {
		return postAnthropic(t, s, "/messages", `{"model":"m","max_tokens":10,"messages":[`+elements+`]}`)
	}
	_, answer := send(asked)
	_, content, _ := strings.Cut(answer, `"content":`)
	content, _, _ = strings.Cut(content, `,"stop_reason"`)
	if !strings.Contains(content, `"signature":"prefix.`) {
		t.Fatalf("no thinking in %s", answer)
	}
	said := `,{"role":"assistant","content":` + content + `},{"role":"user","content":"on"}`
	if status, answer := send(asked + said); status != http.StatusOK {
		t.Errorf("in its place: %s", answer)
	}
	if status, answer := send(`{"role":"user","content":"stop"}` + said); status != http.StatusBadRequest || !strings.Contains(answer, "bound to a different conversation") {
		t.Errorf("torn from its place: %d %s", status, answer)
	}
	torn := `"max_tokens":10,"messages":[{"role":"user","content":"stop"}` + said + `]}`
	for why, body := range map[string]string{
		"it is to be dropped":       `{"model":"m","thinking":{"type":"adaptive","block_binding":{"prefix_mismatch_behavior":"drop_block"}},` + torn,
		"another model has made it": `{"model":"another",` + torn,
	} {
		if status, answer := postAnthropic(t, s, "/messages", body, "thinking-binding-controls-2026-08-01"); status != http.StatusOK {
			t.Errorf("torn, but %s: %d %s", why, status, answer)
		}
	}
}

// TestMessagesThinkingInALoop: with thinking enabled, a tool loop that began with thinking is refused if the thinking is missing in its first or
// newest answer.
func TestMessagesThinkingInALoop(t *testing.T) {
	answers := 0
	s := fakeupstream.New(fakeupstream.Options{
		Seals: fakeupstream.SealThinkingBlocks, SealWhen: func(int) bool { return answers != 2 },
		Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			answers++
			return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: fmt.Sprint("c", answers), Name: "n", Arguments: "{}"}}}
		},
	})
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	said := []string{`{"role":"user","content":"go"}`}
	send := func(elements ...string) (int, string) {
		return postAnthropic(t, s, "/messages", `{"model":"m","max_tokens":10,"thinking":{"type":"enabled","budget_tokens":5},"messages":[`+strings.Join(elements, ",")+`]}`)
	}
	for n := range 3 { // the second answer does not think
		status, answer := send(said...)
		_, content, _ := strings.Cut(answer, `"content":`)
		content, _, _ = strings.Cut(content, `,"stop_reason"`)
		if status != http.StatusOK {
			t.Fatalf("step %d: %s", n, answer)
		}
		said = append(said, `{"role":"assistant","content":`+content+`}`,
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c%d"}]}`, n+1))
	}
	bare := func(n int) string {
		before, after, _ := strings.Cut(said[n], `{"type":"thinking"`)
		_, after, _ = strings.Cut(after, "},")
		return before + after
	}
	for name, c := range map[string]struct {
		elements []string
		status   int
	}{
		"whole":                    {said, http.StatusOK},
		"without the middle":       {slices.Concat(said[:3], said[5:]), http.StatusBadRequest}, // what is before the newest thinking has changed
		"up to the second":         {said[:5], http.StatusOK},
		"without the beginning":    {slices.Concat(said[:1], said[3:5]), http.StatusBadRequest},
		"the first does not think": {slices.Concat(said[:1], []string{bare(1)}, said[2:5]), http.StatusBadRequest},
		"nor does the newest":      {slices.Concat(said[:5], []string{bare(5)}, said[6:]), http.StatusBadRequest},
		"the loop is over":         {slices.Concat(said[:1], said[3:5], []string{`{"role":"assistant","content":"Done."},{"role":"user","content":"on"}`}), http.StatusOK},
	} {
		if status, answer := send(c.elements...); status != c.status {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
}
