package fakeupstream_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

func TestServerRefuses(t *testing.T) {
	big := conversation(`{"role":"user","content":"` + strings.Repeat("x", 70) + `"}`)
	bytes := func(raw []byte) int { return len(raw) }
	small := fakeupstream.Options{ContextWindow: 90, CountTokens: bytes}
	for name, c := range map[string]struct {
		options                 fakeupstream.Options
		method, path, key, mime string
		body                    string
		status                  int
		message, param, code    string
	}{
		"no key": {options: fakeupstream.Options{APIKeys: []string{"sk-1"}}, body: hello, status: 401,
			message: "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY), or as the password field (with blank username) if you're accessing the API from your browser and are prompted for a username and password. You can obtain an API key from https://platform.openai.com/account/api-keys."},
		"wrong key": {options: fakeupstream.Options{APIKeys: []string{"sk-1"}}, key: "sk-secret-key-abcd", body: hello, status: 401,
			message: "Incorrect API key provided: ***abcd. You can find your API key at https://platform.openai.com/account/api-keys.", code: "invalid_api_key"},
		"unknown path":   {path: "/v1/threads", body: hello, status: 404, message: "Invalid URL (POST /v1/threads)"},
		"unknown root":   {path: "/completely/else", body: hello, status: 404, message: "Invalid URL (POST /completely/else)"},
		"wrong method":   {method: "GET", status: 405, message: "Not allowed to GET on /v1/chat/completions. (HINT: Perhaps you meant to use a different HTTP method?)", code: "method_not_supported"},
		"wrong type":     {mime: "text/plain", body: hello, status: 400, message: "Unsupported content type: 'text/plain'. This API method only accepts 'application/json' requests, but you specified the header 'Content-Type: text/plain'. Please try again with a supported content type.", code: "unsupported_content_type"},
		"bad body":       {body: conversation(resultA), status: 400, message: orphan, param: "messages.[0].role"},
		"unknown model":  {options: fakeupstream.Options{Models: []string{"m"}}, body: hello, status: 404, message: "The model `gpt-4o` does not exist or you do not have access to it.", code: "model_not_found"},
		"unknown field":  {options: fakeupstream.Options{Strict: true}, body: with(`"foo":1`), status: 400, message: "Unrecognized request argument supplied: foo"},
		"long prompt":    {options: small, body: big, status: 400, message: "This model's maximum context length is 90 tokens. However, your messages resulted in 98 tokens. Please reduce the length of the messages or completion.", param: "messages", code: "context_length_exceeded"},
		"window of one":  {options: fakeupstream.Options{ContextWindow: 9000, Windows: map[string]int{"gpt-4o": 90}, CountTokens: bytes}, body: big, status: 400, message: "This model's maximum context length is 90 tokens. However, your messages resulted in 98 tokens. Please reduce the length of the messages or completion.", param: "messages", code: "context_length_exceeded"},
		"long output":    {options: small, body: with(`"max_tokens":61`), status: 400, message: "This model's maximum context length is 90 tokens. However, you requested 91 tokens (30 in the messages, 61 in the completion). Please reduce the length of the messages or completion.", param: "messages", code: "context_length_exceeded"},
		"long tools":     {options: small, body: with(`"tools":[` + toolF + `]`), status: 400, message: "This model's maximum context length is 90 tokens. However, your messages resulted in 122 tokens. Please reduce the length of the messages or completion.", param: "messages", code: "context_length_exceeded"},
		"all together":   {options: fakeupstream.Options{ContextWindow: 125, CountTokens: bytes}, body: with(`"max_completion_tokens":10,"tools":[` + toolF + `]`), status: 400, message: "This model's maximum context length is 125 tokens. However, you requested 132 tokens (122 in the messages, 10 in the completion). Please reduce the length of the messages or completion.", param: "messages", code: "context_length_exceeded"},
		"no such number": {options: fakeupstream.Options{MaxOutput: 16384}, body: with(`"max_tokens":99999999999999999999`), status: 400, message: "max_tokens is too large: 1099511627776. This model supports at most 16384 completion tokens, whereas you provided 1099511627776.", param: "max_tokens", code: "invalid_value"},
		"max_tokens":     {options: fakeupstream.Options{MaxOutput: 16384}, body: with(`"max_tokens":32000`), status: 400, message: "max_tokens is too large: 32000. This model supports at most 16384 completion tokens, whereas you provided 32000.", param: "max_tokens", code: "invalid_value"},
		"no such model":  {options: fakeupstream.Options{Models: []string{"m"}}, method: "GET", path: "/v1/models/x", status: 404, message: "The model `x` does not exist or you do not have access to it.", code: "model_not_found"},
		"models, no key": {options: fakeupstream.Options{APIKeys: []string{"k"}}, method: "GET", path: "/models", key: "other", status: 401, message: "Incorrect API key provided: ***ther. You can find your API key at https://platform.openai.com/account/api-keys.", code: "invalid_api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, c.options)
			s.Script(fakeupstream.Answer{Content: "must not be taken"})
			path := c.path
			if path == "" {
				path = "/v1/chat/completions"
			}
			r := newPost(guard(t), t, s.URL()+path, c.body)
			if c.method != "" {
				r.Method = c.method
			}
			if c.mime != "" {
				r.Header.Set("Content-Type", c.mime)
			}
			if c.key != "" {
				r.Header.Set("Authorization", "Bearer "+c.key)
			}
			resp, err := newClient(t).Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			wantError(t, readAll(t, resp.Body), fakeupstream.APIError{Message: c.message, Param: c.param, Code: c.code})
			if resp.StatusCode != c.status || !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") {
				t.Errorf("%d %s, want %d", resp.StatusCode, resp.Header.Get("Content-Type"), c.status)
			}
			if s.Unplayed() != 1 {
				t.Error("a refused request took a scripted answer")
			}
			if got := s.Requests()[0]; got.Refused == nil || got.Refused.Message != c.message || got.Status != c.status {
				t.Errorf("recorded %+v", got)
			}
		})
	}
}

// What just fits is accepted.
func TestLimitsAreInclusive(t *testing.T) {
	s := start(t, fakeupstream.Options{ContextWindow: 90, MaxOutput: 60, CountTokens: func(raw []byte) int { return len(raw) }})
	askBody(t, s, with(`"max_tokens":60`))
	askBody(t, s, conversation(`{"role":"user","content":"`+strings.Repeat("x", 90-28)+`"}`))
}

func TestOtherPaths(t *testing.T) {
	s := start(t, fakeupstream.Options{Models: []string{"b"}, SummariserModels: []string{"a"}})
	for _, c := range []struct{ method, path, body, want string }{
		{"GET", "/v1/models", "", `{"object":"list","data":[{"id":"a","object":"model","created":1735689600,"owned_by":"fakeupstream"},{"id":"b","object":"model","created":1735689600,"owned_by":"fakeupstream"}]}`},
		{"GET", "/models/b", "", `{"id":"b","object":"model","created":1735689600,"owned_by":"fakeupstream"}`},
		{"POST", "/v1/embeddings", `{"model":"e","input":["x","y"]}`, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.125]}],"echo":["x","y"]}`},
		{"POST", "/embeddings", `{"model":"e","input":"x"}`, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.25,-0.5,0.125]}],"echo":"x"}`},
	} {
		r := newPost(guard(t), t, s.URL()+c.path, c.body)
		r.Method = c.method
		resp, err := newClient(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body := readAll(t, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != 200 || strings.TrimSpace(body) != c.want {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, body)
		}
	}
}

func TestScriptThenReply(t *testing.T) {
	s := start(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "reply to " + r.Text()}
	}})
	s.Script(fakeupstream.Answer{Content: "one"}, fakeupstream.Answer{Content: "two"})
	for _, want := range []string{"one", "two", "reply to hi"} {
		if body := askBody(t, s, hello); !strings.Contains(body, `"content":"`+want+`"`) {
			t.Errorf("want %q in %s", want, body)
		}
	}
}

func TestScriptedErrors(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	for _, c := range []struct {
		answer                     fakeupstream.Answer
		status                     int
		message, kind, param, code string
	}{
		{fakeupstream.RateLimited("7"), 429, "Rate limit reached for the model in organization org-fake. Please try again in 7s.", "tokens", "", "rate_limit_exceeded"},
		{fakeupstream.ServerError(), 500, "The server had an error while processing your request.", "server_error", "", ""},
	} {
		s.Script(c.answer)
		resp := chat(t, s, helloStream)
		wantError(t, readAll(t, resp.Body), fakeupstream.APIError{Message: c.message, Type: c.kind, Param: c.param, Code: c.code})
		if resp.StatusCode != c.status {
			t.Errorf("%d, want %d", resp.StatusCode, c.status)
		}
		for key := range c.answer.Header {
			if resp.Header.Get(key) != c.answer.Header.Get(key) {
				t.Errorf("%s: %q", key, resp.Header.Get(key))
			}
		}
		if got := s.Requests(); got[len(got)-1].Refused != nil {
			t.Error("a scripted error counts as a refusal")
		}
	}
	s.Script(fakeupstream.BadGateway())
	if status, body := ask(t, s, hello); status != 502 || !strings.HasPrefix(body, "<html>") {
		t.Errorf("%d %s", status, body)
	}
}

func TestHandlerUnderHTTPTest(t *testing.T) {
	s := fakeupstream.New(fakeupstream.Options{})
	front := httptest.NewServer(s)
	defer front.Close()
	defer s.Close()
	resp, err := front.Client().Do(newPost(guard(t), t, front.URL+"/chat/completions", hello))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body := readAll(t, resp.Body); !strings.Contains(body, "Understood.") || s.URL() != "" {
		t.Fatalf("%s %q", body, s.URL())
	}
}

func TestCloseEndsAll(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	s.Script(fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}})
	failed := make(chan error, 1)
	client, r := newClient(t), newPost(guard(t), t, s.URL()+"/v1/chat/completions", hello)
	go func() {
		resp, err := client.Do(r)
		if err == nil {
			err = errors.Join(errors.New("an answer came"), resp.Body.Close())
		}
		failed <- err
	}()
	if _, err := s.Wait(guard(t), 1); err != nil {
		t.Fatal(err)
	}
	s.Close() // must not wait for the end of the delay
	s.Close()
	if err := <-failed; err == nil || strings.Contains(err.Error(), "an answer came") {
		t.Errorf("the held client got %v", err)
	}
	if got := s.Requests()[0]; got.Cancelled {
		t.Error("the server's closing counts as the client's leaving")
	}
	if err := s.Start(); !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("start after close: %v", err)
	}
}

// TestCloseReleasesHandlers: Close ends delays even if another server serves the handler. It never counts as the client's leaving.
func TestCloseReleasesHandlers(t *testing.T) {
	for name, leaves := range map[string]bool{"held": false, "left after the close": true} {
		t.Run(name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var s *fakeupstream.Server
			s = fakeupstream.New(fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
				if s.Close(); leaves {
					leave()
				}
				return fakeupstream.Answer{Fault: fakeupstream.Fault{HoldHeaders: make(chan struct{})}}
			}})
			defer func() {
				if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) || s.Requests()[0].Cancelled {
					t.Errorf("the handler ended with %v, %+v", err, s.Requests())
				}
			}()
			s.ServeHTTP(httptest.NewRecorder(), newPost(ctx, t, "/v1/chat/completions", hello))
		})
	}
}

// TestContentTypes: all protocols take JSON only.
func TestContentTypes(t *testing.T) {
	s := start(t, fakeupstream.Options{})
	for _, path := range []string{"/chat/completions", "/messages", "/responses"} {
		r := newPost(guard(t), t, s.URL()+"/v1"+path, hello)
		r.Header = http.Header{"Content-Type": {"text/plain"}, "Anthropic-Version": {"2023-06-01"}}
		resp, err := newClient(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, resp.Body); resp.StatusCode != http.StatusBadRequest || !strings.Contains(got, "Unsupported content type: 'text/plain'.") {
			t.Errorf("%s: %d %s", path, resp.StatusCode, got)
		}
		_ = resp.Body.Close()
	}
}

// TestFirstComplaintEnds: a request that is refused for its key is not judged further, and no thinking is dropped from it.
func TestFirstComplaintEnds(t *testing.T) {
	s := start(t, fakeupstream.Options{APIKeys: []string{"k"}, Seals: fakeupstream.SealThinkingBlocks})
	const body = `{"model":"m","max_tokens":10,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[
		{"type":"thinking","thinking":"A thought.","signature":"prefix..other.model"},{"type":"text","text":"x"}]},{"role":"user","content":"go"}]}`
	for n, key := range []string{"wrong", "k"} {
		r := newPost(guard(t), t, s.URL()+"/v1/messages", body)
		r.Header.Set("Anthropic-Version", "2023-06-01")
		r.Header.Set("X-Api-Key", key)
		resp, err := newClient(t).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer := readAll(t, resp.Body)
		_ = resp.Body.Close()
		if got := s.Requests()[n]; (len(got.Dropped) > 0) != (key == "k") || (got.Refused == nil) != (key == "k") {
			t.Errorf("%s: %v dropped, %d %s", key, got.Dropped, resp.StatusCode, answer)
		}
	}
}
