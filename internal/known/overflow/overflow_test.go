package overflow

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

func ExampleRecognise() {
	body := []byte(`{"error":{"message":"prompt is too long: 205000 tokens > 200000 maximum","type":"invalid_request_error"}}`)
	o, ok := Recognise(400, "application/json", body)
	fmt.Println(ok, o.Limit, o.Prompt, o.ByOutput)
	// Output: true 200000 205000 false
}

func TestRecogniseByStatus(t *testing.T) {
	body := load(t, "openai_messages.json")
	for status, want := range map[int]bool{
		200: true, 201: true, 400: true, 413: true, 422: true, 500: true, 502: true, 503: true,
		0: false, 100: false, 302: false, 401: false, 402: false, 403: false, 404: false, 408: false, 429: false, 600: false,
	} {
		if _, ok := Recognise(status, "application/json", body); ok != want {
			t.Errorf("status %d: %v", status, ok)
		}
	}
}

// A missing or wrong content type, or one with parameters, is accepted; HTML never is.
func TestRecogniseByType(t *testing.T) {
	body := load(t, "openai_messages.json")
	for kind, want := range map[string]bool{
		"": true, "application/json; charset=utf-8": true, "text/plain": true, ";": true, "text/event-stream": true,
		"text/html": false, "TEXT/HTML; charset=utf-8": false, "application/xhtml+xml": false,
	} {
		if _, ok := Recognise(400, kind, body); ok != want {
			t.Errorf("type %q: %v", kind, ok)
		}
	}
}

func TestRecogniseEvent(t *testing.T) {
	const message = `{"error":{"message":"Prompt contains 9 tokens and 0 draft tokens, too large for model with 8 maximum context length"}}`
	for name, event := range map[string]string{
		"data":              message,
		"a line":            "data: " + message,
		"no space":          "data:" + message + "\n\n",
		"a name":            "event: error\r\ndata: " + message + "\r\n\r\n",
		"a comment":         ": ping\n\n: ping\n\ndata: " + message + "\n\n",
		"a mark":            "\xef\xbb\xbfdata: " + message + "\n\n",
		"two lines":         "data: " + strings.Replace(message, ":{", ":\ndata: {", 1) + "\n\n",
		"only the first":    "data: " + message + "\n\ndata: {\"error\":{\"message\":\"rate limit\"}}\n\n",
		"an end of line":    message + "\n",
		"a list":            "[" + message + "]",
		"the second of two": "[{\"error\":{\"message\":\"no\"}}," + message + "]",
		"a string":          strconv.Quote(message),
		"an error in words": `{"object":"error","message":"prompt contains 9 tokens, too large for model with 8 maximum context length"}`,
	} {
		got, ok := Recognise(200, "text/event-stream", []byte(event))
		if want := name != "a string"; ok != want { // a string does not state an error
			t.Errorf("%s: %v", name, ok)
		} else if ok && got != (Overflow{Limit: 8, Prompt: 9}) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A completion with a success status is never an overflow, whatever its text is about, and neither are values in it that
// a client may have supplied.
func TestRecogniseNoCompletion(t *testing.T) {
	const words = `"prompt is too long: 9 tokens > 8 maximum"`
	for _, body := range []string{
		`{"choices":[{"message":{"content":` + words + `}}]}`,
		`{"error":null,"message":` + words + `}`,
		`{"error":false,"message":` + words + `}`,
		`{"type":"response.created","response":{"error":null,"metadata":{"raw":` + words + `}}}`,
		`{"metadata":{"raw":` + words + `},"choices":[]}`,
		`[]`, `[1]`, `"error"`, `null`, words, `data: [DONE]`,
	} {
		if got, ok := Recognise(200, "application/json", []byte(body)); ok {
			t.Errorf("%s: recognised as %+v", body, got)
		}
	}
}

// An error is unwrapped at any depth, however its text was quoted on the way.
func TestRecogniseWrapped(t *testing.T) {
	body := `{"error":{"message":"This model's maximum context length is 4,097 tokens.\n However, your messages resulted in 12,294 tokens."}}`
	want := Overflow{Limit: 4097, Prompt: 12294}
	for deep := range 10 {
		if got, ok := Recognise(400, "", []byte(body)); !ok || got != want {
			t.Errorf("%d deep: %+v, %v", deep, got, ok)
		}
		body = `{"error":{"message":` + strconv.Quote(body) + `}}`
	}
	spread := `{"error":{"message":"litellm.BadRequestError: OpenAIException - ` + strings.ReplaceAll(strings.ReplaceAll(`{"message":"This model's maximum context\n length is 8 tokens. However, your messages resulted in 9 tokens"}`, `\`, `\\`), `"`, `\\\"`) + `"}}`
	if got, ok := Recognise(400, "", []byte(spread)); !ok || got != (Overflow{Limit: 8, Prompt: 9}) {
		t.Errorf("%s: %+v, %v", spread, got, ok)
	}
}

// Text beyond the bounds is ignored, and half an object is not an object.
func TestRecogniseIsBounded(t *testing.T) {
	pad := strings.Repeat(" ", maxBody)
	for _, body := range []string{
		pad + `{"error":{"message":"context_length_exceeded"}}`,
		`{"error":{"message":"context_length_exceeded"},"pad":"` + pad + `"}`,
		pad + "context_length_exceeded",
		`{"errors":[` + strings.Repeat(`"x",`, maxList) + `"context_length_exceeded"]}`,
		strings.Repeat("[", 10000),
	} {
		if got, ok := Recognise(400, "", []byte(body)); ok {
			t.Errorf("%.40s: recognised as %+v", body, got)
		}
	}
	if _, ok := Recognise(400, "text/plain", []byte("context_length_exceeded"+pad)); !ok {
		t.Error("the beginning of a long text is ignored")
	}
}

func TestNumber(t *testing.T) {
	for text, want := range map[string]struct {
		n     int
		after string
		ok    bool
	}{
		"":                          {0, "", false},
		"x":                         {0, "x", false},
		",5":                        {0, ",5", false},
		"-5":                        {0, "-5", false},
		"0 t":                       {0, " t", true},
		"128000 tokens":             {128000, " tokens", true},
		"1,048,576).":               {1048576, ").", true},
		"128,000tokens":             {128000, "tokens", true},
		"12, 500":                   {12, ", 500", true},
		"12,5000":                   {12, ",5000", true},
		"300,000,":                  {300000, ",", true},
		"1073741824":                {maxCount, "", true},
		"1073741825":                {0, "", true},
		"99999999999999999999999 x": {0, " x", true},
	} {
		rows := compile([]row{{words: "at {limit}" + want.after}, {words: "at {limit}"}})()
		c, _, ok := rows[0].find("at " + text)
		if c.limit != want.n || ok != want.ok {
			t.Errorf("%q: %d, %v", text, c.limit, ok)
		}
		if c, _, ok := rows[1].find("at " + text); c.limit != want.n || ok != want.ok {
			t.Errorf("%q at the end: %d, %v", text, c.limit, ok)
		}
	}
}

// The numbers in llama.cpp's own fields have the same bounds as those in texts.
func TestRecogniseNumbersBeside(t *testing.T) {
	for beside, want := range map[string]Overflow{
		`"n_ctx":256,"n_prompt_tokens":300`:                   {Limit: 256, Prompt: 300},
		`"n_ctx":-256,"n_prompt_tokens":-1`:                   {},
		`"n_ctx":1e9,"n_prompt_tokens":"300"`:                 {},
		`"n_ctx":null,"n_prompt_tokens":9223372036854775807`:  {},
		`"n_ctx":99999999999999999999,"n_prompt_tokens":2147`: {Prompt: 2147},
	} {
		body := `{"error":{"message":"the request exceeds the available context size",` + beside + `}}`
		if got, ok := Recognise(400, "", []byte(body)); !ok || got != want {
			t.Errorf("%s: %+v, %v", beside, got, ok)
		}
	}
}

func TestByOutput(t *testing.T) {
	for _, c := range []struct {
		o    Overflow
		want bool
	}{
		{Overflow{Limit: 1000, Prompt: 100, Output: 950}, true},
		{Overflow{Limit: 1000, Prompt: 500, Output: 501}, true},
		{Overflow{Limit: 1000, Prompt: 501, Output: 500}, false},
		{Overflow{Limit: 1000, Prompt: 990, Output: 20}, false},
		{Overflow{Limit: 1000, Prompt: 2000, Output: 20}, false},
		{Overflow{Limit: 1000, Prompt: 900, Output: 1000}, true},
		{Overflow{Limit: 1000, Output: 500}, false},
		{Overflow{Limit: 1000, Output: 1000}, true},
		{Overflow{Prompt: 100, Output: 900}, false},
		{Overflow{Limit: 1000, Prompt: 100}, false},
	} {
		if got := (counts{limit: c.o.Limit, prompt: c.o.Prompt, output: c.o.Output}).overflow().ByOutput; got != c.want {
			t.Errorf("%+v: %v", c.o, got)
		}
	}
}

func FuzzRecognise(f *testing.F) {
	for _, c := range told {
		f.Add(statusOf(c.status), typeOf(c.file), load(f, c.file))
	}
	for _, path := range glob(f, "testdata/not/*") {
		f.Add(400, typeOf(path), load(f, strings.TrimPrefix(path, "testdata/")))
	}
	f.Fuzz(func(t *testing.T, status int, contentType string, body []byte) {
		before := bytes.Clone(body)
		o, ok := Recognise(status, contentType, body)
		if !bytes.Equal(before, body) {
			t.Error("the body was changed")
		}
		check(t, o, ok)
		o, ok = Recognise(200, "", body)
		check(t, o, ok)
		if _, loose := Recognise(400, "", body); ok && !loose {
			t.Error("recognised with success and not with failure")
		}
	})
}

func check(t *testing.T, o Overflow, ok bool) {
	t.Helper()
	switch {
	case !ok && o != Overflow{}:
		t.Errorf("not recognised, and yet %+v", o)
	case min(o.Limit, o.Prompt, o.Output) < 0 || max(o.Limit, o.Prompt, o.Output) > math.MaxInt32:
		t.Errorf("impossible counts: %+v", o)
	case o.AtLeast && o.Prompt == 0 && o.Limit == 0 && o.ByOutput:
		t.Errorf("blamed for nothing: %+v", o)
	case o.ByOutput && (o.Output == 0 || o.Limit == 0):
		t.Errorf("blamed without numbers: %+v", o)
	}
}

func BenchmarkRecognise(b *testing.B) {
	word := strings.Repeat("maximum context length is 1 tokens. however, you requested about 1 tokens (", maxBody)
	for name, body := range map[string][]byte{
		"first row":    load(b, "openai_functions_completion.json"),
		"last row":     load(b, "litellm_unknown.json"),
		"other error":  load(b, "not/openai_tool_call.json"),
		"completion":   load(b, "not/completion.json"),
		"64 KiB text":  []byte(strings.Repeat("context window ", maxBody/15)),
		"64 KiB worst": []byte(word[:maxBody]),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				Recognise(400, "application/json", body)
			}
		})
	}
}

func TestAlternatesRoles(t *testing.T) {
	f := func(status int, body string, want bool) {
		t.Helper()
		if got := AlternatesRoles(status, "application/json", []byte(body)); got != want {
			t.Errorf("%d %s: %v", status, body, got)
		}
	}
	f(400, `{"object":"error","message":"Conversation roles must alternate user/assistant/user/assistant/...","type":"BadRequestError","param":null,"code":400}`, true)
	f(400, `{"error":{"message":"After the optional system message, conversation roles must alternate user/assistant/user/assistant/..."}}`, true)
	f(500, `{"error":{"code":500,"message":"Jinja Exception: Conversation roles must alternate user/assistant/user/assistant/...","type":"server_error"}}`, true)
	f(400, `{"type":"error","error":{"type":"invalid_request_error","message":"messages: roles must alternate between \"user\" and \"assistant\", but found multiple \"user\" roles in a row"}}`, true)
	f(400, `{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"object\":\"error\",\"message\":\"Unexpected role 'user' after role 'tool'\",\"type\":\"invalid_request_message_order\"}"}}`, true)
	f(400, `[{"error":{"code":400,"message":"Please ensure that function call turn comes immediately after a user turn or after a function response turn.","status":"INVALID_ARGUMENT"}}]`, true)
	f(400, `{"error":{"message":"A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again."}}`, true)
	f(400, `{"error":{"message":"Invalid value for 'content': expected a string, got null."}}`, false)
	f(400, `{"error":{"message":"1 validation error: input_value='conversation roles must alternate'"}}`, false)
	f(429, `{"error":{"message":"Conversation roles must alternate user/assistant/user/assistant/..."}}`, false)
	f(200, `{"choices":[{"message":{"content":"Conversation roles must alternate user/assistant"}}]}`, false)
}

func TestFailure(t *testing.T) {
	f := func(status int, body string, want int) {
		t.Helper()
		if got := Failure(status, "application/json", []byte(body)); got != want {
			t.Errorf("%d %s: %d, want %d", status, body, got, want)
		}
	}
	f(200, `{"choices":[{"message":{"content":"rate limit"}}]}`, 0)
	f(200, `{"choices":[],"error":"","errors":[]}`, 0)
	f(200, `{"error":{"message":"Bad messages order"}}`, 500)
	f(200, `{"error":{"message":"Bad messages order","code":400}}`, 400)
	f(200, `{"error":{"message":"Bad messages order","code":20015}}`, 500)
	f(200, `{"error":{"message":"Bad messages order","code":1}}`, 500)
	f(200, `{"error":{"message":"It is rate-limited upstream","code":400}}`, 429)
	f(500, `{"error":{"message":"Overloaded"}}`, 429)
	f(500, `{"error":{"message":"It broke.","code":400}}`, 500)
	f(500, "<html>", 500)
	f(503, "", 503)
	f(302, "", 0)
	for _, status := range []int{400, 401, 403, 404, 413, 422, 429} {
		f(status, `{"error":{"message":"rate limit"}}`, status)
	}
}
