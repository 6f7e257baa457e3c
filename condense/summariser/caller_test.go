package summariser_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const key = "sk-secret-0123456789"

func request(base, model string) condense.Request {
	return condense.Request{
		Endpoint: condense.Endpoint{BaseURL: base, APIKey: key}, Model: model, System: "summarise", User: "events", MaxOutput: 321,
	}
}

const fine = `{"model":"m","choices":[{"message":{"role":"assistant","content":"STATE: fine"},"finish_reason":"stop"}],
	"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":40}}}`

func TestOpenAIRequest(t *testing.T) {
	zero := float32(0)
	for name, c := range map[string]struct {
		openai summariser.Caller
		model  string
		want   map[string]any
	}{
		"plain":             {summariser.Caller{}, "gpt-4o-mini", map[string]any{"max_tokens": 321.0}},
		"reasoning":         {summariser.Caller{}, "o3-mini", map[string]any{"max_completion_tokens": 321.0, "reasoning_effort": "low"}},
		"gpt-5":             {summariser.Caller{}, "gpt-5-nano", map[string]any{"max_completion_tokens": 321.0, "reasoning_effort": "minimal"}},
		"via router":        {summariser.Caller{}, "openai/gpt-5", map[string]any{"max_completion_tokens": 321.0, "reasoning_effort": "minimal"}},
		"gpt-5.1":           {summariser.Caller{}, "gpt-5.1-2025-11-13", map[string]any{"max_completion_tokens": 321.0, "reasoning_effort": "none"}},
		"unknown":           {summariser.Caller{}, "gpt-5.9", map[string]any{"max_completion_tokens": 321.0}},
		"configured effort": {summariser.Caller{Effort: "high"}, "gpt-5-nano", map[string]any{"max_completion_tokens": 321.0, "reasoning_effort": "high"}},
		"cold": {
			summariser.Caller{Temperature: &zero}, "gpt-4o-mini", map[string]any{"max_tokens": 321.0, "temperature": 1e-45},
		},
	} {
		var got map[string]any
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer "+key {
				t.Errorf("%s: %s with %q", name, r.URL.Path, r.Header.Get("Authorization"))
			}
			if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
				t.Error(err)
			}
			io.WriteString(w, fine)
		}))
		reply, err := c.openai.Summarise(context.Background(), request(server.URL+"/v1/", c.model))
		server.Close()
		want := condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: session.Usage{Input: 100, Cached: 40, Output: 20}}
		if err != nil || reply != want {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
		sent(t, name, got, c.model, c.want)
	}
}

// sent checks that a request has the fields wanted and no others.
func sent(t *testing.T, name string, got map[string]any, model string, want map[string]any) {
	t.Helper()
	messages, _ := json.Marshal(got["messages"])
	if string(messages) != `[{"content":"summarise","role":"system"},{"content":"events","role":"user"}]` {
		t.Errorf("%s: messages %s", name, messages)
	}
	options, _ := got["stream_options"].(map[string]any)
	if got["model"] != model || got["stream"] != true || options["include_usage"] != true {
		t.Errorf("%s: model %v, stream %v with %v", name, got["model"], got["stream"], options)
	}
	for _, known := range []string{"messages", "model", "stream", "stream_options"} {
		delete(got, known)
	}
	if len(got) != len(want) {
		t.Errorf("%s: fields %v, want %v", name, got, want)
	}
	for field, value := range want {
		if text, ok := value.(string); ok {
			if got[field] != text {
				t.Errorf("%s: %s is %v, want %s", name, field, got[field], text)
			}
			continue
		}
		value := value.(float64)
		if v, ok := got[field].(float64); !ok || v != value && (v == 0 || v > 1e-40) {
			t.Errorf("%s: %s is %v, want %v", name, field, got[field], value)
		}
	}
}

// TestOpenAIForms: a function call is required, a format is strict, and events are joined with the question.
func TestOpenAIForms(t *testing.T) {
	schema := []byte(`{"type":"object","properties":{"ids":{"type":"array"}}}`)
	for name, c := range map[string]struct {
		change func(*condense.Request)
		answer string
		want   string // the request's body, but for model and max_tokens
		reply  condense.Reply
	}{
		"function": {
			func(r *condense.Request) { r.Function = &condense.Schema{Name: "note", Description: "d", JSON: schema} },
			`{"content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"other","arguments":"{}"}},
				{"id":"2","type":"function","function":{"name":"note","arguments":"{\"ids\":[]}"}}]}`,
			`"messages":[{"role":"system","content":"summarise"},{"role":"user","content":"events"}],` +
				`"tools":[{"type":"function","function":{"name":"note","description":"d","parameters":` + string(schema) + `}}],` +
				`"tool_choice":{"type":"function","function":{"name":"note"}}`,
			condense.Reply{Arguments: `{"ids":[]}`, Finish: "tool_calls"},
		},
		"older function": {
			func(r *condense.Request) { r.Function = &condense.Schema{Name: "note", JSON: schema} },
			`{"content":"","function_call":{"name":"note","arguments":"{}"}}`,
			`"messages":[{"role":"system","content":"summarise"},{"role":"user","content":"events"}],` +
				`"tools":[{"type":"function","function":{"name":"note","parameters":` + string(schema) + `}}],` +
				`"tool_choice":{"type":"function","function":{"name":"note"}}`,
			condense.Reply{Arguments: `{}`, Finish: "tool_calls"},
		},
		"format": {
			func(r *condense.Request) { r.Format = &condense.Schema{Name: "ranking", JSON: schema} },
			`{"content":"{\"ids\":[1]}","tool_calls":[{"id":"2","type":"function","function":{"name":"note","arguments":"{}"}}]}`,
			`"messages":[{"role":"system","content":"summarise"},{"role":"user","content":"events"}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"ranking","schema":` + string(schema) + `,"strict":true}}`,
			condense.Reply{Text: `{"ids":[1]}`, Finish: "tool_calls"},
		},
	} {
		var body []byte
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			io.WriteString(w, `{"choices":[{"message":`+c.answer+`,"finish_reason":"tool_calls"}]}`)
		}))
		r := request(server.URL, "m")
		c.change(&r)
		got, err := summariser.Caller{}.Summarise(context.Background(), r)
		server.Close()
		if err != nil || got != c.reply {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		sameJSON(t, name, body, `{"model":"m","max_tokens":321,"stream":true,"stream_options":{"include_usage":true},`+c.want+`}`)
	}
}

func sameJSON(t *testing.T, name string, got []byte, want string) {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
	}
}

func TestOpenAIReplies(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want condense.Reply
	}{
		"refusal": {
			`{"choices":[{"message":{"role":"assistant","content":null,"refusal":"no"},"finish_reason":"stop"}]}`,
			condense.Reply{Refusal: "no", Finish: "stop"},
		},
		"parts": {
			`{"choices":[{"message":{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},"finish_reason":"length"}]}`,
			condense.Reply{Text: "a\nb", Finish: "length"},
		},
		"no choices": {`{"choices":[]}`, condense.Reply{}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, c.body) }))
		got, err := summariser.Caller{}.Summarise(context.Background(), request(server.URL, "m"))
		server.Close()
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestOpenAIFailures(t *testing.T) {
	quoting := `{"error":{"message":"bad key ` + key + `","type":"` + key + `","code":"`
	for name, c := range map[string]struct {
		status int
		body   string
		kind   condense.Failure
		code   string
	}{
		"rate limit":     {429, quoting + `rate_limit_exceeded"}}`, condense.FailureRateLimited, "rate_limit_exceeded"},
		"denied":         {401, quoting + `invalid_api_key"}}`, condense.FailureDenied, "invalid_api_key"},
		"key as code":    {403, quoting + key + `"}}`, condense.FailureDenied, ""},
		"prompt too big": {400, quoting + `context_length_exceeded"}}`, condense.FailureRejected, "context_length_exceeded"},
		"its window": {
			400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.","code":"context_length_exceeded"}}`,
			condense.FailureRejected, "context_length_exceeded",
		},
		"number as code": {500, `{"error":{"message":"x","code":7}}`, condense.FailureServer, ""},
		"not json":       {502, "<html>" + key, condense.FailureServer, ""},
		"error cut off":  {429, `{"error":{"code":"sl`, condense.FailureRateLimited, ""},
		"broken reply":   {200, `{"choices":[{` + key, condense.FailureMalformed, ""},
		"huge reply":     {200, `{"choices":[],"x":"` + strings.Repeat("x", 17<<20) + `"}`, condense.FailureMalformed, ""},
		"huge error":     {500, strings.Repeat("x", 17<<20), condense.FailureMalformed, ""},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if name == "error cut off" {
				w.Header().Set("Content-Length", "1000")
			}
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		}))
		_, err := summariser.Caller{}.Summarise(context.Background(), request(server.URL, "m"))
		server.Close()
		e, ok := errors.AsType[*condense.CallError](err)
		if !ok || e.Kind != c.kind || e.Code != c.code || e.Begun != nil {
			t.Errorf("%s: %v", name, err)
		}
		if ok && (e.Window == 8192 && e.Prompt == 9000) != (name == "its window") {
			t.Errorf("%s: window %d, prompt %d", name, e.Window, e.Prompt)
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v contains the key", name, err)
		}
	}
}

// TestErrorsWithinAnswers: an error in an answer with status 200 counts as the status that it states or stands for, so that content
// which the server refuses costs only its thread.
func TestErrorsWithinAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		api, failure string
		kind         condense.Failure
		server       bool // it cools down
	}{
		"number":           {"", `{"error":{"message":"blocked","code":400}}`, condense.FailureRejected, false},
		"text":             {"", `{"error":{"message":"blocked","code":"400"}}`, condense.FailureRejected, false},
		"moderation":       {"", `{"error":{"message":"flagged","code":403}}`, condense.FailureDenied, false},
		"filter":           {"", `{"error":{"message":"blocked","code":"content_filter"}}`, condense.FailureRejected, false},
		"type":             {"", `{"error":{"message":"blocked","type":"invalid_request_error"}}`, condense.FailureRejected, false},
		"type of a code":   {"", `{"error":{"message":"too long","code":"invalid_value","type":"invalid_request_error"}}`, condense.FailureRejected, false},
		"rate":             {"", `{"error":{"message":"slow down","code":429}}`, condense.FailureRateLimited, true},
		"key":              {"", `{"error":{"message":"no","code":"invalid_api_key","type":"invalid_request_error"}}`, condense.FailureDenied, true},
		"unknown":          {"", `{"error":{"message":"oops","code":"oops"}}`, condense.FailureServer, true},
		"another number":   {"", `{"error":{"message":"oops","code":1302}}`, condense.FailureServer, true},
		"no code":          {"", `{"error":"oops"}`, condense.FailureServer, true},
		"a message's":      {"messages", `{"type":"error","error":{"type":"invalid_request_error"}}`, condense.FailureRejected, false},
		"overloaded":       {"messages", `{"type":"error","error":{"type":"overloaded_error"}}`, condense.FailureServer, true},
		"an event's":       {"responses", `{"type":"error","code":"invalid_prompt"}`, condense.FailureRejected, false},
		"a response's":     {"responses", `{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}`, condense.FailureServer, true},
		"a response's 4xx": {"responses", `{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt"}}}`, condense.FailureRejected, false},
	} {
		for _, streamed := range []bool{true, false} {
			if !streamed && c.api == "responses" {
				continue // these are events
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if streamed {
					events(w, c.failure)
					return
				}
				io.WriteString(w, c.failure)
			}))
			r := request(server.URL, "m")
			r.Endpoint.Way.API = c.api
			_, err := summariser.Caller{}.Summarise(t.Context(), r)
			server.Close()
			if failed, ok := errors.AsType[*condense.CallError](err); !ok || failed.Kind != c.kind {
				t.Errorf("%s, streamed: %v: %v", name, streamed, err)
			}
			h := summariser.NewHealth(time.Now)
			a := condense.Attempt{Endpoint: r.Endpoint, Model: "m", Thread: "1"}
			h.Begin(a)
			h.End(a, err)
			other := a
			other.Thread = "2"
			if h.Ready(other) == c.server {
				t.Errorf("%s, streamed: %v: another thread may call: %v", name, streamed, !c.server)
			}
		}
	}
}

func TestOpenAIGivesUp(t *testing.T) {
	reached := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		reached <- struct{}{}
		<-r.Context().Done()
	}))
	defer server.Close()
	_, err := summariser.Caller{Timeout: time.Millisecond}.Summarise(context.Background(), request(server.URL, "m"))
	if e, ok := errors.AsType[*condense.CallError](err); !ok || e.Kind != condense.FailureTimeout {
		t.Errorf("timeout: %v", err)
	}
	drain(reached)

	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-reached
		cancel()
	}()
	_, err = summariser.Caller{}.Summarise(ctx, request(server.URL, "m"))
	if e, ok := errors.AsType[*condense.CallError](err); !ok || e.Kind != condense.FailureCanceled || !errors.Is(err, context.Canceled) {
		t.Errorf("cancel: %v", err)
	}
}

func drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

func TestOpenAIUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	base := server.URL
	server.Close()
	_, err := summariser.Caller{}.Summarise(context.Background(), request(base+"/"+key, "m"))
	if e, ok := errors.AsType[*condense.CallError](err); !ok || e.Kind != condense.FailureUnreachable || e.Begun != nil || strings.Contains(err.Error(), key) {
		t.Errorf("got %v", err)
	}
}

// TestSummariserFollowsNoRedirect: a server cannot redirect the conversation to another one.
func TestSummariserFollowsNoRedirect(t *testing.T) {
	asked := 0
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer elsewhere.Close()
	for _, status := range []int{301, 302, 303, 307, 308} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, status)
		}))
		o := summariser.Caller{Client: server.Client(), Timeout: 10 * time.Second}
		_, err := o.Summarise(t.Context(), condense.Request{Endpoint: condense.Endpoint{BaseURL: server.URL, APIKey: "k"}, Model: "m", User: "x"})
		if err == nil || asked > 0 {
			t.Errorf("%d: %v, asked %d times elsewhere", status, err, asked)
		}
		server.Close()
	}
}

// roundTrip is an http.RoundTripper.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestErrorsDoNotTellTheKey: neither a connection nor an error code that quotes the key shows it.
func TestErrorsDoNotTellTheKey(t *testing.T) {
	const key = "a_key_like_a_code"
	r := request("http://a.test", "m")
	r.Endpoint.APIKey = key
	for what, answer := range map[string]roundTrip{
		"connection": func(*http.Request) (*http.Response, error) { return nil, errors.New("the proxy refuses " + key) },
		"code": func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 401, Body: io.NopCloser(strings.NewReader(`{"error":{"code":"no_such_` + key + `"}}`))}, nil
		},
	} {
		_, err := summariser.Caller{Client: &http.Client{Transport: answer}}.Summarise(t.Context(), r)
		call, ok := errors.AsType[*condense.CallError](err)
		if !ok || strings.Contains(err.Error(), key) || strings.Contains(call.Code, key) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestEfforts: models are asked for the lowest effort that they are known to accept, others for none.
func TestEfforts(t *testing.T) {
	for model, want := range map[string]any{
		"gpt-5": "minimal", "openai/GPT-5": "minimal", "gpt-5-mini": "minimal", "gpt-5.1": "none", "o3": "low", "o3-mini": "low",
		"gpt-5-pro": nil, "gpt-5.1-codex": nil, "o1-mini": nil, "gpt-4o": nil, "gpt-5x": nil,
	} {
		var body map[string]any
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			io.WriteString(w, fine)
		}))
		_, err := summariser.Caller{}.Summarise(t.Context(), request(server.URL, model))
		server.Close()
		if err != nil || body["reasoning_effort"] != want {
			t.Errorf("%s: %v, %v, want %v", model, body["reasoning_effort"], err, want)
		}
	}
}

// TestEffortIsTakenBack: a call is repeated once, without the parameter, if the server does not support it, and for no other reason.
func TestEffortIsTakenBack(t *testing.T) {
	for message, want := range map[string]int{
		`{"message":"Unsupported value","param":"reasoning_effort"}`: 2, `{"message":"unknown field reasoning_effort"}`: 2,
		`{"message":"too long"}`: 1,
	} {
		var efforts []any
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			if efforts = append(efforts, body["reasoning_effort"]); len(efforts) == 1 {
				w.WriteHeader(http.StatusBadRequest)
				io.WriteString(w, `{"error":`+message+`}`)
				return
			}
			io.WriteString(w, fine)
		}))
		_, err := summariser.Caller{}.Summarise(context.Background(), request(server.URL, "o3"))
		server.Close()
		if len(efforts) != want || (err == nil) != (want == 2) || efforts[0] != "low" || efforts[len(efforts)-1] == "low" && want == 2 {
			t.Errorf("%s: asked with %v, %v", message, efforts, err)
		}
	}
}
