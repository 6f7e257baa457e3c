package fakeupstream_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

// assembled is the message that a client assembles from a stream.
type assembled struct {
	message map[string]any
	finish  string
	usage   any
	chunks  int
}

// assemble puts the deltas together as the OpenAI SDKs do: texts are appended, calls are merged by their index.
func assemble(t *testing.T, data []string) assembled {
	t.Helper()
	a := assembled{message: map[string]any{}}
	for _, d := range data {
		chunk := decode(t, d).(map[string]any)
		a.chunks++
		if u := chunk["usage"]; u != nil {
			a.usage = u
		}
		for _, c := range chunk["choices"].([]any) {
			choice := c.(map[string]any)
			merge(a.message, choice["delta"].(map[string]any))
			if f, ok := choice["finish_reason"].(string); ok {
				a.finish = f
			}
		}
	}
	dropIndexes(a.message)
	return a
}

func merge(into, delta map[string]any) {
	for key, value := range delta {
		before, there := into[key]
		switch v := value.(type) {
		case string:
			if s, ok := before.(string); ok {
				v = s + v
			}
			into[key] = v
		case []any:
			if key == "tool_calls" {
				into[key] = mergeCalls(before, v)
			} else {
				into[key] = v
			}
		case map[string]any:
			if m, ok := before.(map[string]any); there && ok {
				merge(m, v)
			} else {
				into[key] = v
			}
		default:
			into[key] = v
		}
	}
}

func mergeCalls(before any, deltas []any) []any {
	calls, _ := before.([]any)
	for _, d := range deltas {
		delta := d.(map[string]any)
		number, _ := delta["index"].(json.Number).Int64()
		for int(number) >= len(calls) {
			calls = append(calls, map[string]any{})
		}
		delete(delta, "index")
		merge(calls[number].(map[string]any), delta)
	}
	return calls
}

func dropIndexes(message map[string]any) {
	calls, _ := message["tool_calls"].([]any)
	for _, c := range calls {
		delete(c.(map[string]any), "index")
	}
}

// streamed has the server stream the message, and returns its events without the end mark.
func streamed(t *testing.T, s *fakeupstream.Server, a fakeupstream.Answer, body string) []string {
	t.Helper()
	s.Script(a)
	resp := chat(t, s, body)
	if got := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("%d %s", resp.StatusCode, got)
	}
	data := dataOf(t, readAll(t, resp.Body))
	if len(data) == 0 || data[len(data)-1] != "[DONE]" {
		t.Fatalf("no end mark in %q", data)
	}
	return data[:len(data)-1]
}

func messages() map[string]string {
	return map[string]string{
		"text":             `{"role":"assistant","content":"Grüße, 世界 👩‍👩‍👧! <b>&amp;</b>","refusal":null}`,
		"escapes":          `{"role":"assistant","content":"\u00e9\ud83d\ude00\/\"\\\n\t\u2028\ud800 lone \ud83d\ud83d\ude00"}`,
		"empty":            `{"role":"assistant","content":""}`,
		"null and refusal": `{"role":"assistant","content":null,"refusal":"I cannot help with that."}`,
		"no content":       `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":""}}]}`,
		"calls": `{"role":"assistant","content":"Let me look.","tool_calls":[` +
			`{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"path\": \"/tmp/ü\", \"n\": 1.0}"}},` +
			`{"id":"c2","type":"function","function":{"arguments":"not json","name":"read"},"extra_content":{"google":{"thought_signature":"AA=="}}},` +
			`{"id":"c3","type":"custom","custom":{"name":"patch","input":"*** Begin\n+x\n"}}]}`,
		"unknown fields": `{"content":"x","role":"assistant","reasoning_content":"Let us think about it.","annotations":[{"a":1e2}],"audio":{"id":"a1"},"n":12345678901234567890}`,
		"parts":          `{"role":"assistant","content":[{"type":"text","text":"a"}]}`,
	}
}

func TestAnswersAreTheScriptedMessage(t *testing.T) {
	for name, message := range messages() {
		t.Run(name, func(t *testing.T) {
			s := start(t, fakeupstream.Options{})
			want := decode(t, message)
			for _, runes := range []int{1, 2, 5, 1000} {
				data := streamed(t, s, fakeupstream.Answer{Message: json.RawMessage(message), ChunkRunes: runes}, helloStream)
				if got := assemble(t, data).message; !reflect.DeepEqual(got, want) {
					t.Fatalf("%d characters a chunk: streamed\n%v\nwant\n%v", runes, got, want)
				}
			}
			s.Script(fakeupstream.Answer{Message: json.RawMessage(message)})
			if _, whole := ask(t, s, hello); !strings.Contains(whole, `"message":`+message+`,`) {
				t.Fatalf("the message is not in the answer byte for byte: %s", whole)
			}
		})
	}
}

func TestStreamOfAnyMessage(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	property.Check(t, func(r *rapid.T) {
		message := map[string]any{"role": "assistant", "content": nil}
		if rapid.Bool().Draw(r, "content") {
			message["content"] = rapid.String().Draw(r, "text")
		}
		var calls []any
		for i := range rapid.IntRange(0, 3).Draw(r, "calls") {
			calls = append(calls, map[string]any{"id": fmt.Sprint("c", i), "type": "function",
				"function": map[string]any{"name": "f", "arguments": rapid.String().Draw(r, "arguments")}})
		}
		if calls != nil {
			message["tool_calls"] = calls
		}
		raw, err := json.Marshal(message)
		if err != nil {
			r.Fatal(err)
		}
		runes := rapid.IntRange(1, 9).Draw(r, "runes")
		data := streamed(t, s, fakeupstream.Answer{Message: raw, ChunkRunes: runes}, helloStream)
		if got := assemble(t, data).message; !reflect.DeepEqual(got, decode(r, string(raw))) {
			r.Fatalf("streamed %v want %s", got, raw)
		}
	})
}

func TestStreamIsSplit(t *testing.T) {
	s := start(t, fakeupstream.Options{ChunkRunes: 3})
	content := "äöüßéèêë世界和平"
	data := streamed(t, s, fakeupstream.Answer{Content: content}, helloStream)
	if want := 1 + 4 + 1; len(data) != want {
		t.Fatalf("%d chunks, want %d (role, 4 of 3 characters, finish): %q", len(data), want, data)
	}
	first := decode(t, data[0]).(map[string]any)["choices"].([]any)[0].(map[string]any)["delta"]
	if want := decode(t, `{"role":"assistant","content":"","refusal":null}`); !reflect.DeepEqual(first, want) {
		t.Errorf("first delta %v, want %v", first, want)
	}
	for _, d := range data {
		if !utf8.ValidString(d) || strings.Contains(d, "\ufffd") {
			t.Errorf("a character was split: %q", d)
		}
	}
	arguments := `{"command":"ls -la"}`
	data = streamed(t, s, fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "c", Name: "sh", Arguments: arguments}}}, helloStream)
	if want := 1 + 1 + 7 + 1; len(data) != want {
		t.Fatalf("%d chunks, want %d (role, call, 7 of arguments, finish): %q", len(data), want, data)
	}
}

func TestFinishReasons(t *testing.T) {
	call := []fakeupstream.ToolCall{{ID: "c", Name: "f", Arguments: "{}"}}
	for want, a := range map[string]fakeupstream.Answer{
		"stop":           {Content: "x"},
		"tool_calls":     {ToolCalls: call},
		"length":         {Content: "x", FinishReason: "length"},
		"content_filter": {Refusal: "no", FinishReason: "content_filter"},
	} {
		s := start(t, fakeupstream.Options{})
		if got := assemble(t, streamed(t, s, a, helloStream)).finish; got != want {
			t.Errorf("streamed: %s, want %s", got, want)
		}
		s.Script(a)
		if _, body := ask(t, s, hello); !strings.Contains(body, `"finish_reason":"`+want+`"`) {
			t.Errorf("whole: want %s in %s", want, body)
		}
	}
}

// TestReasonsInOtherWords: the other protocols have their own words for the reason why an answer ended.
func TestReasonsInOtherWords(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	call := []fakeupstream.ToolCall{{ID: "c", Name: "f", Arguments: "{broken"}}
	for _, c := range []struct {
		a                   fakeupstream.Answer
		messages, responses string
	}{
		{fakeupstream.Answer{Content: "x"}, `"stop_reason":"end_turn"`, `"status":"completed","error":null,"incomplete_details":null`},
		{fakeupstream.Answer{ToolCalls: call}, `"input":{"arguments":"{broken"}}],"stop_reason":"tool_use"`, `"arguments":"{broken"`},
		{fakeupstream.Answer{Content: "x", FinishReason: "length"}, `"stop_reason":"max_tokens"`,
			`"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"}`},
		{fakeupstream.Answer{Content: "x", FinishReason: "content_filter"}, `"stop_reason":"refusal"`, `"status":"completed"`},
	} {
		s.Script(c.a, c.a)
		if _, got := postAnthropic(t, s, "/messages", `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"go"}]}`); !strings.Contains(got, c.messages) {
			t.Errorf("want %s in %s", c.messages, got)
		}
		if _, got := postResponses(t, s, "/responses", `{"model":"m","input":"go"}`); !strings.Contains(got, c.responses) {
			t.Errorf("want %s in %s", c.responses, got)
		}
	}
}

func TestUsage(t *testing.T) {
	const withUsage = `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`
	s := start(t, fakeupstream.Options{CountTokens: func(raw []byte) int { return len(raw) }})
	scripted := fakeupstream.Answer{Content: "x", Usage: &fakeupstream.Usage{Prompt: 100, Completion: 20, Cached: 64}}
	wantScripted := decode(t, `{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0},
		"completion_tokens_details":{"reasoning_tokens":0,"audio_tokens":0,"accepted_prediction_tokens":0,"rejected_prediction_tokens":0}}`)

	data := streamed(t, s, scripted, withUsage)
	if got := assemble(t, data).usage; !reflect.DeepEqual(got, wantScripted) {
		t.Errorf("usage %v, want %v", got, wantScripted)
	}
	last := decode(t, data[len(data)-1]).(map[string]any)
	if choices := last["choices"].([]any); len(choices) != 0 {
		t.Errorf("the last chunk has choices: %v", last)
	}
	for _, d := range data[:len(data)-1] {
		if !strings.HasSuffix(d, `,"usage":null}`) {
			t.Errorf("chunk without null usage: %s", d)
		}
	}
	if data := streamed(t, s, scripted, helloStream); strings.Contains(strings.Join(data, ""), "usage") {
		t.Error("usage that was not asked for")
	}
	scripted.OmitUsage = true
	if data := streamed(t, s, scripted, withUsage); strings.Contains(strings.Join(data, ""), "usage") {
		t.Error("usage that was to be omitted")
	}
	counted := decode(t, askBody(t, s, hello)).(map[string]any)["usage"].(map[string]any)
	prompt := len(`{"role":"user","content":"hi"}`)
	if counted["prompt_tokens"] != json.Number(fmt.Sprint(prompt)) || s.Requests()[3].PromptTokens != prompt {
		t.Errorf("counted %v, recorded %d, want %d", counted, s.Requests()[3].PromptTokens, prompt)
	}
}

func askBody(t *testing.T, s *fakeupstream.Server, body string) string {
	t.Helper()
	status, answer := ask(t, s, body)
	if status != 200 {
		t.Fatalf("%d %s", status, answer)
	}
	return answer
}

func TestEvents(t *testing.T) {
	for name, c := range map[string]struct {
		inject map[int]string
		check  func(stream string) bool
	}{
		"plain": {nil, func(s string) bool {
			return strings.HasSuffix(s, "}\n\ndata: [DONE]\n\n") && !strings.Contains(s, "\r")
		}},
		"malformed": {map[int]string{1: fakeupstream.MalformedEvent}, func(s string) bool {
			return strings.Index(s, fakeupstream.MalformedEvent) == strings.Index(s, "\n\n")+2
		}},
		"error in the stream": {map[int]string{0: fakeupstream.ErrorEvent(fakeupstream.ServerError().Error)}, func(s string) bool {
			return strings.HasPrefix(s, `data: {"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}`+"\n\n")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, fakeupstream.Options{})
			s.Script(fakeupstream.Answer{Content: "Hello there, you.", Inject: c.inject})
			if stream := askBody(t, s, helloStream); !c.check(stream) {
				t.Fatalf("%q", stream)
			}
		})
	}
}

func TestScriptedMessageMustBeAnObject(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	for _, bad := range []string{`"x"`, `{"role":`, ``} {
		s.Script(fakeupstream.Answer{Message: json.RawMessage(bad)})
		if status, body := ask(t, s, helloStream); status != 500 || !strings.Contains(body, "scripted message") {
			t.Errorf("%q: %d %s", bad, status, body)
		}
	}
}
