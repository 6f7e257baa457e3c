package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// wire writes the histories and answers of a protocol.
type wire struct{ name, path, list string }

func wires() []wire {
	return []wire{{"chat", "/chat/completions", "messages"}, {"messages", "/messages", "messages"}, {"responses", "/responses", "input"}}
}

// wireOf returns the protocol of a request.
func wireOf(r *http.Request) wire {
	all := wires()
	return all[slices.IndexFunc(all, func(w wire) bool { return strings.HasSuffix(r.URL.Path, w.path) })]
}

// user returns an element with a user's text.
func (w wire) user(text string) string {
	if w.name == "responses" {
		return fmt.Sprintf(`{"type":"message","role":"user","content":[{"type":"input_text","text":%s}]}`, quoted(text))
	}
	return fmt.Sprintf(`{"role":"user","content":%s}`, quoted(text))
}

// message returns an element with a text of the assistant or the system. In the Messages API, a system message cannot follow an assistant's.
func (w wire) message(role, text string) string {
	if w.name == "responses" {
		kind := map[string]string{"assistant": "output_text", "system": "input_text"}[role]
		return fmt.Sprintf(`{"type":"message","role":%q,"content":[{"type":%q,"text":%s}]}`, role, kind, quoted(text))
	}
	return fmt.Sprintf(`{"role":%q,"content":%s}`, role, quoted(text))
}

// step returns the elements of an answer that calls the tool sh, with a text if it is not empty, and of the call's result.
func (w wire) step(id, text, result string) []string {
	switch w.name {
	case "chat":
		return []string{
			fmt.Sprintf(`{"role":"assistant","content":%s,"tool_calls":[{"id":%s,"type":"function","function":{"name":"sh","arguments":"{}"}}]}`, quoted(text), quoted(id)),
			fmt.Sprintf(`{"role":"tool","tool_call_id":%s,"content":%s}`, quoted(id), quoted(result)),
		}
	case "messages":
		said := ""
		if text != "" {
			said = fmt.Sprintf(`{"type":"text","text":%s},`, quoted(text))
		}
		return []string{
			fmt.Sprintf(`{"role":"assistant","content":[%s{"type":"tool_use","id":%s,"name":"sh","input":{}}]}`, said, quoted(id)),
			fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%s,"content":%s}]}`, quoted(id), quoted(result)),
		}
	}
	var all []string
	if text != "" {
		all = append(all, fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quoted(text)))
	}
	return append(all, fmt.Sprintf(`{"type":"function_call","call_id":%s,"name":"sh","arguments":"{}"}`, quoted(id)),
		fmt.Sprintf(`{"type":"function_call_output","call_id":%s,"output":%s}`, quoted(id), quoted(result)))
}

// fanOut returns the elements of an answer that calls the tool sh several times, with these ids, and of the results, one after the other.
func (w wire) fanOut(ids, results []string) []string {
	var calls, answers []string
	for i, id := range ids {
		one := w.step(id, "", results[i])
		calls, answers = append(calls, one[0]), append(answers, one[1])
	}
	if w.name == "responses" {
		return append(calls, answers...)
	}
	list := map[string]string{"chat": `"tool_calls":[`, "messages": `"content":[`}[w.name]
	join := func(elements []string) string { // the lists in elements as one, in the first element
		var all []string
		for _, element := range elements {
			_, after, _ := strings.Cut(element, list)
			all = append(all, strings.TrimSuffix(after, "]}"))
		}
		before, _, _ := strings.Cut(elements[0], list)
		return before + list + strings.Join(all, ",") + "]}"
	}
	if w.name == "messages" {
		answers = []string{join(answers)}
	}
	return append([]string{join(calls)}, answers...)
}

// body returns a request with a history and the tool sh.
func (w wire) body(elements []string) string {
	tools := map[string]string{
		"chat":      `"tools":[{"type":"function","function":{"name":"sh","parameters":{"type":"object"}}}]`,
		"messages":  `"max_tokens":100,"tools":[{"name":"sh","input_schema":{"type":"object"}}]`,
		"responses": `"store":false,"tools":[{"type":"function","name":"sh","parameters":{"type":"object"}}]`,
	}
	return fmt.Sprintf(`{"model":"local",%s,"%s":[%s]}`, tools[w.name], w.list, strings.Join(elements, ","))
}

// answer returns an answer whose usage reports input tokens, with the text unless it is empty, and a call if id is not empty.
func (w wire) answer(input int, text, id, tool, arguments string) string {
	var parts []string
	switch w.name {
	case "messages":
		stop := "end_turn"
		if text != "" {
			parts = append(parts, fmt.Sprintf(`{"type":"text","text":%s}`, quoted(text)))
		}
		if id != "" {
			stop, parts = "tool_use", append(parts, fmt.Sprintf(`{"type":"tool_use","id":%s,"name":%s,"input":%s}`, quoted(id), quoted(tool), arguments))
		}
		return fmt.Sprintf(`{"id":"m","type":"message","role":"assistant","model":"local","content":[%s],"stop_reason":%q,"usage":{"input_tokens":%d,"output_tokens":5}}`,
			strings.Join(parts, ","), stop, input)
	case "responses":
		if text != "" {
			parts = append(parts, fmt.Sprintf(`{"type":"message","role":"assistant","id":"i","status":"completed","content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quoted(text)))
		}
		if id != "" {
			parts = append(parts, fmt.Sprintf(`{"type":"function_call","id":"f","call_id":%s,"name":%s,"arguments":%s}`, quoted(id), quoted(tool), quoted(arguments)))
		}
		return fmt.Sprintf(`{"id":"r","object":"response","created_at":1,"status":"completed","model":"local","output":[%s],"usage":{"input_tokens":%d,"output_tokens":5,"total_tokens":%d}}`,
			strings.Join(parts, ","), input, input+5)
	}
	finish, calls := "stop", ""
	if id != "" {
		finish = "tool_calls"
		calls = fmt.Sprintf(`,"tool_calls":[{"id":%s,"type":"function","function":{"name":%s,"arguments":%s}}]`, quoted(id), quoted(tool), quoted(arguments))
	}
	return fmt.Sprintf(`{"id":"c","object":"chat.completion","model":"local","choices":[{"index":0,"message":{"role":"assistant","content":%s%s},"finish_reason":%q}],"usage":{"prompt_tokens":%d,"completion_tokens":5}}`,
		quoted(text), calls, finish, input)
}

func quoted(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// forwarded records what a proxy with a condenser forwards to an upstream that answers "ok", or with a record if the request asks for one.
type forwarded struct {
	t     *testing.T
	proxy *process

	mu    sync.Mutex
	last  map[string]json.RawMessage
	asked string // the newest request to the model small
}

func newForwarded(t *testing.T, condenser string) *forwarded {
	t.Helper()
	f := &forwarded{t: t}
	f.proxy = serveBefore(t, f, condenser)
	return f
}

// serveBefore starts an upstream, and a proxy with a condenser in front of it. The condenser may use the model small of the same server.
func serveBefore(t *testing.T, upstream http.Handler, condenser string) *process {
	t.Helper()
	front := httptest.NewServer(upstream)
	t.Cleanup(front.Close)
	return serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: "%s/v1"}
llms: {cheap: {model: small}}
store: %s
condenser: %s
`, front.URL, embedded(newStore(t)), condenser)))
}

func (f *forwarded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.NotFound(w, r)
		return
	}
	raw, _ := io.ReadAll(r.Body)
	body := map[string]json.RawMessage{}
	_ = json.Unmarshal(raw, &body)
	w.Header().Set("Content-Type", "application/json")
	if string(body["model"]) == `"small"` {
		f.mu.Lock()
		f.asked = string(raw)
		f.mu.Unlock()
		text, id := "USER_CONTEXT: the parser is ported.\nCURRENT_STATE: reading", ""
		const tool, state = "create_state_summary", `{"user_context":"the parser is ported","current_state":"reading"}`
		if strings.Contains(string(raw), tool) {
			text, id = "", "call_1"
		}
		_, _ = io.WriteString(w, wireOf(r).answer(len(raw)/4, text, id, tool, state))
		return
	}
	f.mu.Lock()
	f.last = body
	f.mu.Unlock()
	_, _ = io.WriteString(w, wireOf(r).answer(len(raw)/4, "ok", "", "", ""))
}

// send sends a history and returns the elements that were forwarded, and the thread.
func (f *forwarded) send(w wire, elements []string, headers ...http.Header) (sent []string, thread string) {
	f.t.Helper()
	a := sendTo(f.t, f.proxy, w.path, []byte(w.body(elements)), headers...)
	ok(f.t, a.finish())
	f.mu.Lock()
	defer f.mu.Unlock()
	var list []json.RawMessage
	ok(f.t, json.Unmarshal(f.last[w.list], &list))
	for _, element := range list {
		sent = append(sent, string(element))
	}
	return sent, a.Header.Get("X-Dewpoint-Thread")
}

// TestUnfinishedStreamsEndCleanly: a stream that upstream ends without the end mark ends for the client as it does for upstream, whether or not
// the proxy reads it for calls of its own tools. The log says that it was not finished.
func TestUnfinishedStreamsEndCleanly(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ body, stream string }{
		"/chat/completions": {
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"run","parameters":{"type":"object"}}}]}`,
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}`,
		},
		"/responses": {
			`{"model":"m","stream":true,"store":false,"input":"hi","tools":[{"type":"function","name":"run","parameters":{"type":"object"}}]}`,
			`event: response.created` + "\n" + `data: {"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}` + "\n\n" +
				`event: response.output_item.added` + "\n" + `data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}` + "\n\n" +
				`event: response.output_text.delta` + "\n" + `data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"Hello"}`,
		},
		"/messages": {
			`{"model":"m","stream":true,"max_tokens":99,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"run","input_schema":{"type":"object"}}]}`,
			`event: message_start` + "\n" + `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n" +
				`event: content_block_start` + "\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
				`event: content_block_delta` + "\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello"}}`,
		},
	} {
		for _, condenser := range []string{"type: noop", "type: excerpts, recall: true"} {
			t.Run(path+" "+condenser, func(t *testing.T) {
				t.Parallel()
				front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, c.stream+"\n\n") // it fails if the client has left
				}))
				t.Cleanup(front.Close)
				s := &setting{url: front.URL + "/v1"}
				p := serve(t, "--config", s.writeType(t, embedded(newStore(t)), condenser, ""))
				got, err := sendTo(t, p, path, []byte(c.body)).rest()
				if err != nil || !strings.Contains(got, "Hello") {
					t.Errorf("%v: %q", err, got)
				}
				p.await("request")
				if !strings.Contains(p.log.String(), `"outcome":"upstream_unfinished"`) {
					t.Error("the log does not say that the stream was not finished")
				}
			})
		}
	}
}

// TestHiddenCallsOfUnfinishedStreams: calls of hidden tools are answered also for an upstream that never sends the end mark of a stream.
func TestHiddenCallsOfUnfinishedStreams(t *testing.T) {
	t.Parallel()
	for path, c := range map[string]struct{ body, call, text string }{
		"/chat/completions": {
			`{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"run","parameters":{"type":"object"}}}]}`,
			`data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"recall","arguments":"{\"query\":\"port\"}"}}]},"finish_reason":null}]}`,
			`data: {"id":"c","choices":[{"index":0,"delta":{"content":"It is 8443."},"finish_reason":null}]}`,
		},
		"/responses": {
			`{"model":"m","stream":true,"store":false,"input":"hi","tools":[{"type":"function","name":"run","parameters":{"type":"object"}}]}`,
			`data: {"type":"response.created","response":{"id":"resp_1","status":"in_progress","output":[]}}` + "\n\n" +
				`data: {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"recall","arguments":""}}` + "\n\n" +
				`data: {"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"call_1","name":"recall","arguments":"{\"query\":\"port\"}"}}`,
			`data: {"type":"response.created","response":{"id":"resp_2","status":"in_progress","output":[]}}` + "\n\n" +
				`data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","role":"assistant","content":[]}}` + "\n\n" +
				`data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"It is 8443."}`,
		},
		"/messages": {
			`{"model":"m","stream":true,"max_tokens":99,"messages":[{"role":"user","content":"hi"}],"tools":[{"name":"run","input_schema":{"type":"object"}}]}`,
			`data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"toolu_1","name":"recall","input":{}}}` + "\n\n" +
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"port\"}"}}` + "\n\n" +
				`data: {"type":"content_block_stop","index":0}`,
			`data: {"type":"message_start","message":{"id":"msg_2","type":"message","role":"assistant","content":[],"usage":{"input_tokens":3,"output_tokens":1}}}` + "\n\n" +
				`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"It is 8443."}}`,
		},
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int32
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				answer := c.text
				if calls.Add(1) == 1 {
					answer = c.call
				}
				_, _ = io.WriteString(w, answer+"\n\n") // it fails if the client has left
			}))
			t.Cleanup(front.Close)
			s := &setting{url: front.URL + "/v1"}
			p := serve(t, "--config", s.writeType(t, embedded(newStore(t)), "type: excerpts, recall: true", ""))
			got, err := sendTo(t, p, path, []byte(c.body)).rest()
			if err != nil || !strings.Contains(got, "It is 8443.") || strings.Contains(got, "recall") || calls.Load() != 2 {
				t.Errorf("%d calls upstream, %v: %q", calls.Load(), err, got)
			}
		})
	}
}
