package summariser_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// events writes a stream of server-sent events.
func events(w http.ResponseWriter, data ...string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	for _, d := range data {
		if !strings.HasPrefix(d, ":") {
			d = "data: " + d
		}
		io.WriteString(w, d+"\n\n")
	}
}

func delta(members, finish string) string {
	return `{"choices":[{"index":0,"delta":{` + members + `},"finish_reason":` + finish + `}]}`
}

const usage = `{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":40}}}`

// TestStreamedAnswers: streamed answers are put together. An answer that is not streamed although a stream was requested is accepted.
func TestStreamedAnswers(t *testing.T) {
	function := func(r *condense.Request) { r.Function = &condense.Schema{Name: "note", JSON: []byte(`{}`)} }
	for name, c := range map[string]struct {
		change func(*condense.Request)
		events []string
		want   condense.Reply
		kind   condense.Failure
	}{
		"text": {nil, []string{
			": waiting",
			delta(`"role":"assistant","content":"STATE:"`, "null"), delta(`"content":" fine"`, "null"), delta("", `"stop"`), usage, "[DONE]",
		}, condense.Reply{Text: "STATE: fine", Finish: "stop", Usage: billed()}, ""},
		"without usage and end mark": {nil, []string{delta(`"content":"STATE: fine"`, `"length"`)},
			condense.Reply{Text: "STATE: fine", Finish: "length"}, ""},
		"in parts": {nil, []string{delta(`"content":[{"type":"text","text":"STATE: "}]`, "null"), delta(`"content":[{"type":"text","text":"fine"}]`, `"stop"`), "[DONE]"},
			condense.Reply{Text: "STATE: fine", Finish: "stop"}, ""},
		"without a finish": {nil, []string{delta(`"content":"STATE: fine"`, "null"), usage, "[DONE]"},
			condense.Reply{Text: "STATE: fine", Usage: billed()}, ""},
		"refusal": {nil, []string{delta(`"refusal":"I ca"`, "null"), delta(`"refusal":"nnot"`, `"stop"`), "[DONE]"},
			condense.Reply{Refusal: "I cannot", Finish: "stop"}, ""},
		"call": {function, []string{
			delta(`"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"other","arguments":"{"}}]`, "null"),
			delta(`"tool_calls":[{"index":1,"id":"2","type":"function","function":{"name":"note","arguments":""}}]`, "null"),
			delta(`"tool_calls":[{"index":1,"function":{"arguments":"{\"ids\""}}]`, "null"),
			delta(`"tool_calls":[{"index":0,"function":{"arguments":"}"}},{"index":1,"function":{"arguments":":[]}"}}]`, `"tool_calls"`), "[DONE]",
		}, condense.Reply{Arguments: `{"ids":[]}`, Finish: "tool_calls"}, ""},
		"call without indexes": {function, []string{
			delta(`"tool_calls":[{"id":"2","function":{"name":"note","arguments":"{\"ids\":"}}]`, "null"),
			delta(`"tool_calls":[{"function":{"arguments":"[]}"}}]`, `"tool_calls"`), "[DONE]",
		}, condense.Reply{Arguments: `{"ids":[]}`, Finish: "tool_calls"}, ""},
		"call that ends like a text": {function, []string{
			delta(`"tool_calls":[{"index":0,"id":"2","function":{"name":"note","arguments":"{}"}}]`, `"stop"`), "[DONE]",
		}, condense.Reply{Arguments: `{}`, Finish: "tool_calls"}, ""},
		"older call": {function, []string{
			delta(`"function_call":{"name":"note","arguments":"{"}`, "null"), delta(`"function_call":{"arguments":"}"}`, `"function_call"`), "[DONE]",
		}, condense.Reply{Arguments: `{}`, Finish: "function_call"}, ""},
		"cut off, usage in each piece": {nil, []string{`{"choices":[{"index":0,"delta":{"content":"STATE: fi"},"finish_reason":null}],"usage":{"prompt_tokens":1}}`},
			condense.Reply{}, condense.FailureUnreachable},
		"cut off":                         {nil, []string{delta(`"content":"STATE: fi"`, "null")}, condense.Reply{}, condense.FailureUnreachable},
		"ended without a finish or usage": {nil, []string{delta(`"content":"STATE: fi"`, "null"), "[DONE]"}, condense.Reply{}, condense.FailureUnreachable},
		"error":                           {nil, []string{delta(`"content":"S"`, "null"), `{"error":{"message":"` + key + `","code":500}}`}, condense.Reply{}, condense.FailureServer},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { events(w, c.events...) }))
		r := request(server.URL, "m")
		if c.change != nil {
			c.change(&r)
		}
		got, err := summariser.Caller{}.Summarise(t.Context(), r)
		server.Close()
		failed, _ := errors.AsType[*condense.CallError](err)
		if got != c.want || c.kind == "" && err != nil || c.kind != "" && (failed == nil || failed.Kind != c.kind) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v tells the key", name, err)
		}
		if failed != nil && (failed.Begun == nil || !strings.HasPrefix("STATE: fi", failed.Begun.Text) || failed.Begun.Text == "") {
			t.Errorf("%s: had arrived: %+v", name, failed.Begun)
		}
	}
}

// TestPlainCalls: if a server does not stream, or refuses a parameter of streams, the call is repeated without, and the next call
// begins without.
func TestPlainCalls(t *testing.T) {
	type asked struct{ stream, options bool }
	refuse := func(w http.ResponseWriter, status int, text string) {
		w.WriteHeader(status)
		io.WriteString(w, text)
	}
	both, plain, noOptions := asked{true, true}, asked{}, asked{stream: true}
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter, a asked)
		want   []asked // of two calls
	}{
		"answers whole": {func(w http.ResponseWriter, _ asked) { io.WriteString(w, fine) }, []asked{both, plain}},
		"no options": {func(w http.ResponseWriter, a asked) {
			if a.options {
				refuse(w, 400, `{"error":{"message":"unknown field stream_options"}}`)
				return
			}
			events(w, delta(`"content":"STATE: fine"`, `"stop"`), "[DONE]")
		}, []asked{both, noOptions, noOptions}},
		"no streams": {func(w http.ResponseWriter, a asked) {
			if a.stream {
				refuse(w, 400, `{"error":{"message":"not verified","param":"stream"}}`)
				return
			}
			io.WriteString(w, fine)
		}, []asked{both, plain, plain}},
		"neither, in words of its own": {func(w http.ResponseWriter, a asked) {
			if a.options {
				refuse(w, 422, `{"detail":[{"loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`)
				return
			}
			if a.stream {
				refuse(w, 501, "Streaming is not implemented.")
				return
			}
			io.WriteString(w, fine)
		}, []asked{both, noOptions, plain, plain}},
		"streams of its own": {func(w http.ResponseWriter, a asked) {
			if a.stream {
				events(w, "STATE: fine", "[DONE]")
				return
			}
			io.WriteString(w, fine)
		}, []asked{both, plain, plain}},
	} {
		var got []asked
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			a := asked{body["stream"] == true, body["stream_options"] != nil}
			got = append(got, a)
			c.answer(w, a)
		}))
		lacks := summariser.NewLacks()
		for range 2 {
			if reply, err := (summariser.Caller{Lacks: lacks}).Summarise(t.Context(), request(server.URL, "m")); err != nil || reply.Text != "STATE: fine" {
				t.Errorf("%s: %+v, %v", name, reply, err)
			}
		}
		server.Close()
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: asked with %v, want %v", name, got, c.want)
		}
	}
}

// TestOtherRefusals: a refusal for other reasons does not change the next call, even if it mentions parameters.
func TestOtherRefusals(t *testing.T) {
	for text, want := range map[string]string{
		`{"error":{"message":"the upstream, with best efforts, cannot serve this"}}`:         "[true true]",
		`{"error":{"message":"unsupported: {\"stream\":true,\"messages\":[]}"}}`:             "[true false true false]",
		`{"error":{"message":"reasoning_effort and stream are fine, the rest is too long"}}`: "[true true]",
	} {
		var got []bool
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var body map[string]any
			if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
				t.Error(err)
			}
			got = append(got, body["stream"] == true)
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, text)
		}))
		lacks := summariser.NewLacks()
		for range 2 {
			if _, err := (summariser.Caller{Lacks: lacks}).Summarise(t.Context(), request(server.URL, "m")); err == nil {
				t.Errorf("%s: no error", text)
			}
		}
		server.Close()
		if fmt.Sprint(got) != want {
			t.Errorf("%s: streamed %v, want %s", text, got, want)
		}
	}
}

// slow is a server that answers at a given pace.
type slow func(body io.Writer)

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	in, out := io.Pipe()
	stop := context.AfterFunc(r.Context(), func() { in.CloseWithError(r.Context().Err()) })
	go func() {
		defer stop()
		s(out)
		out.Close()
	}()
	first := make([]byte, 1)
	if _, err := in.Read(first); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(string(first)), in), in},
	}, nil
}

// TestPatience: a server may take the time that its answer needs, but must not fall silent. The end of the caller's own time is not the
// server's failure.
func TestPatience(t *testing.T) {
	say := func(w io.Writer, wait time.Duration, text string) {
		time.Sleep(wait)
		io.WriteString(w, text)
	}
	piece, end := "data: "+delta(`"content":"x"`, "null")+"\n\n", "data: "+delta("", `"stop"`)+"\n\ndata: [DONE]\n\n"
	for name, c := range map[string]struct {
		server   slow
		deadline time.Duration
		kind     condense.Failure
		took     time.Duration
	}{
		"steady": {func(w io.Writer) {
			for range 8 {
				say(w, 20*time.Second, piece)
			}
			say(w, 20*time.Second, end)
		}, time.Hour, "", 180 * time.Second},
		"kept alive by comments": {func(w io.Writer) {
			for range 8 {
				say(w, 20*time.Second, ": processing\n\n")
			}
			say(w, 20*time.Second, piece+end)
		}, time.Hour, "", 180 * time.Second},
		"reads long": {func(w io.Writer) { say(w, 49*time.Second, piece+end) }, time.Hour, "", 49 * time.Second},
		"silent":     {func(io.Writer) { time.Sleep(time.Hour) }, time.Hour, condense.FailureTimeout, 50 * time.Second},
		"stalled": {func(w io.Writer) {
			say(w, 10*time.Second, piece)
			time.Sleep(time.Hour)
		}, time.Hour, condense.FailureTimeout, 40 * time.Second},
		"stalled after an error": {func(w io.Writer) {
			say(w, 10*time.Second, piece+`data: {"error":{"message":"overloaded"}}`+"\n\n")
			time.Sleep(time.Hour)
		}, time.Hour, condense.FailureServer, 10 * time.Second},
		"endless": {func(w io.Writer) {
			for range 1000 {
				say(w, time.Second, piece)
			}
		}, time.Hour, condense.FailureTimeout, 250 * time.Second},
		"no time": {func(w io.Writer) { say(w, 20*time.Second, piece+end) }, 5 * time.Second, condense.FailureDeadline, 5 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), c.deadline)
			defer cancel()
			r := request("http://up/v1", "m")
			r.User, r.MaxOutput = strings.Repeat("x", 20*4096-len(r.System)), 4000
			begun := time.Now()
			_, err := summariser.Caller{Client: &http.Client{Transport: c.server}}.Summarise(ctx, r)
			failed, _ := errors.AsType[*condense.CallError](err)
			if c.kind == "" && err != nil || c.kind != "" && (failed == nil || failed.Kind != c.kind) || time.Since(begun) != c.took {
				t.Errorf("%s: %v after %s", name, err, time.Since(begun))
			}
			if wrote := strings.HasPrefix(name, "stalled") || name == "endless"; failed != nil && (failed.Begun != nil) != wrote {
				t.Errorf("%s: had arrived: %+v", name, failed.Begun)
			}
			time.Sleep(2 * time.Hour) // let the server finish
		})
	}
}

// TestSilentServerMayWriteWhole: after a server sent nothing of a stream, the next call gives it the time for a whole answer.
func TestSilentServerMayWriteWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lacks := summariser.NewLacks()
		o := summariser.Caller{Lacks: lacks, Client: &http.Client{Transport: slow(func(w io.Writer) {
			time.Sleep(2 * time.Minute)
			io.WriteString(w, fine)
		})}}
		r := request("http://up/v1", "m")
		r.MaxOutput = 4000
		if _, err := o.Summarise(t.Context(), r); err == nil {
			t.Error("waited for the whole answer at once")
		}
		if reply, err := o.Summarise(t.Context(), r); err != nil || reply.Text != "STATE: fine" {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

// TestStreamCutWithinALine: a stream that is cut off anywhere is the server's failure, and the call is not repeated.
func TestStreamCutWithinALine(t *testing.T) {
	for name, reset := range map[string]bool{"closed": false, "reset": true} {
		for api, ask := range map[string]func(base, model string) condense.Request{"chat": request, "responses": asItems} {
			calls := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				calls++
				w.Header().Set("Content-Type", "text/event-stream")
				io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"STATE: fi`)
				if reset {
					http.NewResponseController(w).Flush()
					panic(http.ErrAbortHandler)
				}
			}))
			_, err := summariser.Caller{}.Summarise(t.Context(), ask(server.URL, "m"))
			server.Close()
			if e, ok := errors.AsType[*condense.CallError](err); !ok || e.Kind != condense.FailureUnreachable || e.Begun == nil || calls != 1 {
				t.Errorf("%s, %s: %d calls: %v", api, name, calls, err)
			}
		}
	}
}

// TestAnswersTooLong: an answer that is too long to be kept is an error, and not an empty one. It is billed.
func TestAnswersTooLong(t *testing.T) {
	long, most := strings.Repeat("STATE: ", split.MaxText/7+1), strings.Repeat("x", split.MaxAnswer)
	call := delta(`"tool_calls":[{"index":0,"id":"1","type":"function","function":{"name":"note","arguments":"`+long+`"}}]`, `"stop"`)
	for name, c := range map[string]struct {
		ask    func(base, model string) condense.Request
		answer func(http.ResponseWriter)
		usage  session.Usage
	}{
		"text":  {request, func(w http.ResponseWriter) { events(w, delta(`"content":"`+long+`"`, `"stop"`), usage, "[DONE]") }, billed()},
		"call":  {request, func(w http.ResponseWriter) { events(w, call, usage, "[DONE]") }, billed()},
		"items": {asItems, func(w http.ResponseWriter) { io.WriteString(w, itemsOf(long)) }, billed()},
		"whole": {asItems, func(w http.ResponseWriter) { io.WriteString(w, itemsOf(most)) }, session.Usage{}},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { c.answer(w) }))
		_, err := summariser.Caller{}.Summarise(t.Context(), c.ask(server.URL, "m"))
		server.Close()
		failed, ok := errors.AsType[*condense.CallError](err)
		if !ok || failed.Kind != condense.FailureMalformed || !strings.Contains(err.Error(), "too large") {
			t.Errorf("%s: %v", name, err)
		} else if begun := cmp.Or(failed.Begun, &condense.Reply{}); begun.Usage != c.usage {
			t.Errorf("%s: had arrived: %+v", name, begun)
		}
	}
}

// billed returns what usage reports.
func billed() session.Usage { return session.Usage{Input: 100, Cached: 40, Output: 20} }

// itemsOf returns an answer of the Responses API with this text.
func itemsOf(text string) string {
	return `{"status":"completed","output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"` + text + `"}]}],` +
		`"usage":{"input_tokens":100,"output_tokens":20,"input_tokens_details":{"cached_tokens":40}}}`
}

// TestAnyStatusOfSuccess: some gateways answer every POST with 201.
func TestAnyStatusOfSuccess(t *testing.T) {
	for name, answer := range map[string]func(http.ResponseWriter){
		"stream": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusCreated)
			events(w, delta(`"content":"STATE: fine"`, `"stop"`), "[DONE]")
		},
		"whole": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusCreated)
			io.WriteString(w, fine)
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w) }))
		got, err := summariser.Caller{}.Summarise(t.Context(), request(server.URL, "m"))
		server.Close()
		if err != nil || got.Text != "STATE: fine" {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
