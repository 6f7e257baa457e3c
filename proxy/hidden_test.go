package proxy_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/summariser"
	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/session"
)

const (
	runTool = `{"type":"function","function":{"name":"run","parameters":{"type":"object","properties":{}}}}`
	asksFor = "request_condensation"
)

// agent is a client that runs tools, and reads streams as a library does.
type agent struct {
	*rig
	streams bool
	history []string
	session string // its id for the conversation; empty: it gives none
}

// hidingRig has a condenser that condenses above maxSize events, or none if that is 0.
func hidingRig(t *testing.T, streams bool, up fakeupstream.Options, maxSize int, hidden ...engine.Hidden) *agent {
	return agentOf(t, hiding(up, maxSize, hidden...), streams)
}

func agentOf(t *testing.T, s setup, streams bool) *agent {
	return &agent{rig: newRig(t, s), streams: streams, history: []string{say("system", "You run tools.")}}
}

// hiding is the setup of hidingRig.
func hiding(up fakeupstream.Options, maxSize int, hidden ...engine.Hidden) setup {
	up.SummariserModels, up.Strict = []string{cheapModel}, true
	return setup{upstream: up, tenants: one(func(t *proxy.Tenant) {
		t.Hidden = engine.Hidden{Request: true, Command: true}
		if len(hidden) > 0 {
			t.Hidden = hidden[0]
		}
		if maxSize == 0 {
			return
		}
		t.Condenser = condense.NewLLM(condense.LLMSettings{
			Health: healthAt(time.Now), Settings: condense.Settings{MaxSize: maxSize, KeepFirst: 1, MinimumProgress: 0.1},
			Summariser: summariser.Caller{Client: &http.Client{Transport: &http.Transport{}}, Timeout: patience}, Model: cheapModel,
		})
	})}
}

// stream starts a streamed request of the agent.
func (a *agent) stream(message string) (*wire, *bufio.Reader) {
	a.t.Helper()
	w := a.dial()
	a.streams = true
	w.post(a.body(message))
	return w, bufio.NewReader(w.begin(http.MethodPost).Body)
}

func oftenAlive(l *proxy.Limits) { l.KeepAlive = time.Millisecond }

// answered is an answer as a client reads it.
type answered struct {
	Message json.RawMessage
	Finish  string
	Calls   []fakeupstream.ToolCall
	Text    string
	Usage   fakeupstream.Usage
}

// step sends the history and another message, and keeps the answer.
func (a *agent) step(message ...string) answered {
	a.t.Helper()
	resp, text := a.ask(a.body(message...))
	if resp.StatusCode != http.StatusOK {
		a.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	if strings.Contains(text, asksFor) {
		a.t.Errorf("the client sees the hidden tool: %s", text)
	}
	if !a.streams {
		text = "data: " + strings.Replace(text, `"message":`, `"delta":`, 1) + "\n\ndata: [DONE]\n\n"
	}
	got := a.read(text)
	a.history = append(a.history, string(got.Message))
	return got
}

// body is a request with the history and another message.
func (a *agent) body(message ...string) string {
	a.history = append(a.history, message...)
	extra := `"tools":[` + runTool + `],`
	if a.session != "" {
		extra += `"metadata":{"session_id":"` + a.session + `"},`
	}
	if a.streams {
		extra += `"stream":true,"stream_options":{"include_usage":true},`
	}
	return strings.Replace(messages(a.history...), "{", "{"+extra, 1)
}

// read assembles a stream as OpenAI's libraries do: without comments, by the index of each call, which begins with its id and name.
func (a *agent) read(stream string) (got answered) {
	a.t.Helper()
	var calls []map[string]any
	var text *string
	id, ended := "", false
	for event := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if strings.HasPrefix(event, ":") {
			continue
		}
		data, is := strings.CutPrefix(strings.TrimSpace(event), "data: ")
		if !is || ended {
			a.t.Fatalf("an event is %q", event)
		}
		if ended = data == "[DONE]"; ended {
			continue
		}
		var c struct {
			ID      string
			Choices []struct {
				Delta struct {
					Role, Content *string
					ToolCalls     []struct {
						Index    int
						ID       string
						Function struct{ Name, Arguments string }
					} `json:"tool_calls"`
				}
				Finish string `json:"finish_reason"`
			}
			Usage struct {
				Prompt     int `json:"prompt_tokens"`
				Completion int `json:"completion_tokens"`
			}
		}
		must(a.t, json.Unmarshal([]byte(data), &c))
		if id == "" {
			id = c.ID
		}
		if c.ID != id {
			a.t.Errorf("a chunk has the id %q after %q", c.ID, id)
		}
		got.Usage.Prompt, got.Usage.Completion = got.Usage.Prompt+c.Usage.Prompt, got.Usage.Completion+c.Usage.Completion
		for _, choice := range c.Choices {
			if got.Finish != "" {
				a.t.Errorf("more comes after the finish: %s", data)
			}
			got.Finish = choice.Finish
			if choice.Delta.Content != nil {
				if text == nil {
					text = new(string)
				}
				*text += *choice.Delta.Content
			}
			for i, piece := range choice.Delta.ToolCalls {
				if !a.streams {
					piece.Index = i
				}
				if piece.Index == len(calls) && piece.Function.Name != "" {
					calls = append(calls, map[string]any{"id": piece.ID, "type": "function", "function": map[string]any{"name": piece.Function.Name, "arguments": ""}})
				}
				if piece.Index >= len(calls) {
					a.t.Fatalf("a piece of call %d of %d: %s", piece.Index, len(calls), data)
				}
				f := calls[piece.Index]["function"].(map[string]any)
				f["arguments"] = f["arguments"].(string) + piece.Function.Arguments
			}
		}
	}
	if !ended {
		a.t.Errorf("the stream has no end: %s", stream)
	}
	message := map[string]any{"role": "assistant", "content": text}
	if len(calls) > 0 {
		message["tool_calls"] = calls
	}
	for _, c := range calls {
		f := c["function"].(map[string]any)
		got.Calls = append(got.Calls, fakeupstream.ToolCall{ID: c["id"].(string), Name: f["name"].(string), Arguments: f["arguments"].(string)})
	}
	if text != nil {
		got.Text = *text
	}
	got.Message, _ = json.Marshal(message)
	return got
}

// results returns results for an answer's calls.
func (a answered) results() (all []string) {
	for _, c := range a.Calls {
		b, _ := json.Marshal(map[string]string{"role": "tool", "tool_call_id": c.ID, "content": "ran " + c.Arguments + strings.Repeat(" and so on", 30)})
		all = append(all, string(b))
	}
	return all
}

// steps returns the requests to the agent's model. Upstream has accepted all of them.
func (a *agent) steps() (all []fakeupstream.Request) {
	a.t.Helper()
	for _, r := range a.up.Requests() {
		if r.Refused != nil {
			a.t.Errorf("request %d was refused: %v\n%s", r.Index, r.Refused, r.Body)
		}
		if !r.Summary {
			all = append(all, r)
		}
	}
	return all
}

// wantStable checks that each request, except for some, begins with the whole request before it, and that all have the same tools.
func (a *agent) wantStable(breaks int) {
	a.t.Helper()
	steps := a.steps()
	for i := 1; i < len(steps); i++ {
		if !bytes.Equal(steps[i].Tools, steps[0].Tools) {
			a.t.Errorf("request %d has the tools %s", i, steps[i].Tools)
		}
		for j, m := range steps[i-1].Messages {
			if j >= len(steps[i].Messages) || !bytes.Equal(m, steps[i].Messages[j]) {
				if breaks--; breaks < 0 {
					a.t.Errorf("request %d: message %d was %s, is %s", i, j, m, steps[i].Messages[min(j, len(steps[i].Messages)-1)])
				}
				break
			}
		}
	}
	if breaks > 0 {
		a.t.Errorf("%d prefixes fewer changed than was wanted", breaks)
	}
}

func call(name, id string) fakeupstream.ToolCall {
	return fakeupstream.ToolCall{ID: "call_" + id + "_0123456789", Name: name, Arguments: `{"n":"` + id + `"}`}
}

// in runs a test with a client that streams its answers and with one that does not.
func bothWays(t *testing.T, test func(t *testing.T, streams bool)) {
	for _, streams := range []bool{true, false} {
		t.Run(map[bool]string{true: "streamed", false: "whole"}[streams], func(t *testing.T) {
			t.Parallel()
			test(t, streams)
		})
	}
}

// warmUp has the agent run tools for a while.
func (a *agent) warmUp(n int) {
	a.t.Helper()
	message := []string{say("user", "Mend the roof.")}
	for i := range n {
		a.up.Script(fakeupstream.Answer{Content: fmt.Sprintf("Step %d.", i), ToolCalls: []fakeupstream.ToolCall{call("run", fmt.Sprint("w", i))}})
		message = a.step(message...).results()
	}
	a.up.Script(fakeupstream.Answer{Content: "Mended."})
	a.step(message...)
}

func TestAgentAsksForCondensation(t *testing.T) {
	bothWays(t, func(t *testing.T, streams bool) {
		a := hidingRig(t, streams, fakeupstream.Options{}, 400)
		a.warmUp(8)
		before := len(a.steps())
		a.up.Script(
			fakeupstream.Answer{Content: "First I tidy up. ", ToolCalls: []fakeupstream.ToolCall{call(asksFor, "a")}},
			fakeupstream.Answer{Content: "Now I run.", ToolCalls: []fakeupstream.ToolCall{call("run", "b"), call("run", "c")}},
			fakeupstream.Answer{Content: "Done."},
		)
		got := a.step(say("user", "Now the door."))
		if got.Text != "First I tidy up. Now I run." || len(got.Calls) != 2 || got.Finish != "tool_calls" {
			t.Errorf("the client got %+v", got)
		}
		if end := a.step(got.results()...); end.Text != "Done." || end.Finish != "stop" {
			t.Errorf("the client got %+v", end)
		}
		steps := a.steps()[before:]
		if len(steps) != 3 || len(steps[1].Messages) >= len(steps[0].Messages) {
			t.Fatalf("%d requests; of %d messages %d were left", len(steps), len(steps[0].Messages), len(steps[1].Messages))
		}
		if want := steps[0].PromptTokens + steps[1].PromptTokens; got.Usage.Prompt != want {
			t.Errorf("the client was told of %d prompt tokens, want %d", got.Usage.Prompt, want)
		}
		if strings.Contains(steps[2].Text(), "tidy up") {
			t.Error("what the model said before the history was condensed is shown as if it had said it since")
		}
		a.wantStable(1)
		a.wantEvents(map[session.Kind]int{session.Requested: 1, session.Condensed: 1, session.HiddenCalls: 1})
	})
}

// wantEvents checks how many entries of each kind the log of the newest thread has.
func (a *agent) wantEvents(want map[session.Kind]int) {
	a.t.Helper()
	resp, _ := a.ask(messages(a.history...))
	events, err := a.store.Events(a.t.Context(), session.ThreadID(resp.Header.Get("X-Dewpoint-Thread")), 1, 1000)
	must(a.t, err)
	got := map[session.Kind]int{}
	for _, e := range events {
		got[e.Kind]++
	}
	for kind, n := range want {
		if got[kind] != n {
			a.t.Errorf("%d entries %s, want %d", got[kind], kind, n)
		}
	}
}

func TestHiddenCallsBetweenOthers(t *testing.T) {
	for name, calls := range map[string][]fakeupstream.ToolCall{
		"first":    {call(asksFor, "h"), call("run", "a"), call("run", "b")},
		"between":  {call("run", "a"), call(asksFor, "h"), call("run", "b")},
		"last":     {call("run", "a"), call("run", "b"), call(asksFor, "h")},
		"repeated": {call(asksFor, "h"), call("run", "a"), call(asksFor, "i"), call("run", "b")},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, streams bool) {
				a := hidingRig(t, streams, fakeupstream.Options{}, 0)
				a.up.Script(fakeupstream.Answer{Content: "Both.", ToolCalls: calls}, fakeupstream.Answer{ToolCalls: calls}, fakeupstream.Answer{Content: "Done."})
				got := a.step(say("user", "Mend the roof."))
				if len(got.Calls) != 2 || got.Calls[0] != call("run", "a") || got.Calls[1] != call("run", "b") || got.Finish != "tool_calls" {
					t.Errorf("the client got %+v", got)
				}
				a.step(a.step(got.results()...).results()...)
				a.wantStable(0)
				last := a.steps()[2]
				if !strings.Contains(string(last.Body), "will be condensed before your next step") || !bytes.Contains(last.Messages[2], []byte(asksFor)) {
					t.Errorf("upstream does not see the hidden call: %s", last.Body)
				}
			})
		})
	}
}

func TestHiddenCallsInARow(t *testing.T) {
	bothWays(t, func(t *testing.T, streams bool) {
		a := hidingRig(t, streams, fakeupstream.Options{}, 400)
		for i := range 7 {
			a.up.Script(fakeupstream.Answer{Content: fmt.Sprintf("%d ", i), ToolCalls: []fakeupstream.ToolCall{call(asksFor, fmt.Sprint("x", i)), call(asksFor, fmt.Sprint("y", i))}})
		}
		got := a.step(say("user", "Mend the roof."))
		if got.Text != "0 1 2 3 4 " || len(got.Calls) > 0 || got.Finish != "stop" {
			t.Errorf("the client got %+v", got)
		}
		a.up.Script()
		steps := a.steps()
		if len(steps) != 5 || bytes.Contains(steps[4].Tools, []byte(asksFor)) || !bytes.Contains(steps[3].Tools, []byte(asksFor)) {
			t.Errorf("upstream was asked %d times", len(steps))
		}
	})
}

// TestSlowUpstreamAfterAHiddenCallIsNotIdle: an upstream that is slow to answer after a hidden call does not time out as idle.
func TestSlowUpstreamAfterAHiddenCallIsNotIdle(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	release := make(chan struct{})
	r := newRig(t, setup{
		tenants: one(func(t *proxy.Tenant) { t.Hidden = engine.Hidden{Request: true} }),
		limits:  func(l *proxy.Limits) { l.StreamIdle = 4 * time.Second },
	})
	a := &agent{rig: r, streams: true}
	a.up.Script(
		fakeupstream.Answer{Content: "One. ", ToolCalls: []fakeupstream.ToolCall{call(asksFor, "x")}},
		fakeupstream.Answer{Content: "Two.", Fault: fakeupstream.Fault{HoldHeaders: release}},
	)
	defer time.AfterFunc(6*time.Second, func() { close(release) }).Stop()
	if got := a.step(say("user", "Mend the roof.")); got.Text != "One. Two." || got.Finish != "stop" {
		t.Errorf("the client got %+v", got)
	}
}

// TestSlowWholeAnswer sends white space at intervals, as some servers do to keep a client waiting.
func TestSlowWholeAnswer(t *testing.T) {
	quick.Skip(t)
	t.Parallel()
	const body = `{"id":"x","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}]}`
	base := rawUpstream(t, func(conn *net.TCPConn, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 8 {
			time.Sleep(600 * time.Millisecond)
			_, _ = io.WriteString(conn, "1\r\n\n\r\n")
		}
		_, _ = fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	})
	r := newRig(t, setup{
		base:    base,
		tenants: one(func(t *proxy.Tenant) { t.Hidden = engine.Hidden{Request: true} }),
		limits:  func(l *proxy.Limits) { l.StreamIdle = 4 * time.Second },
	})
	resp, got := r.ask(strings.Replace(hello, "{", `{"tools":[`+runTool+`],`, 1))
	if resp.StatusCode != http.StatusOK || strings.TrimSpace(got) != body {
		t.Errorf("got %s %q", resp.Status, got)
	}
}

// TestClientGetsCommentsWhileAHiddenCallCondenses: while a hidden call condenses the history, a streaming client gets comments.
func TestClientGetsCommentsWhileAHiddenCallCondenses(t *testing.T) {
	hold := make(chan struct{})
	s := hiding(fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "DISCUSSED: the roof.", Fault: fakeupstream.Fault{HoldHeaders: hold}}
	}}, 400)
	s.limits = oftenAlive
	a := agentOf(t, s, false)
	a.warmUp(8)
	a.up.Script(fakeupstream.Answer{Content: "One. ", ToolCalls: []fakeupstream.ToolCall{call(asksFor, "x")}}, fakeupstream.Answer{Content: "Two."})
	_, stream := a.stream(say("user", "Now the door."))
	var got strings.Builder
	for comments := 0; comments < 3; {
		event := readEvent(t, stream)
		if got.WriteString(event); event == comment && strings.Contains(got.String(), "One. ") { // else the request's own condensation took long
			comments++
		}
	}
	close(hold)
	got.WriteString(drainAll(t, stream))
	if text := a.read(got.String()); text.Text != "One. Two." || text.Finish != "stop" {
		t.Errorf("the client got %+v", text)
	}
}

// TestWorkForHiddenCallsEndsWhenTheClientLeaves: work for a client that has left ends.
func TestWorkForHiddenCallsEndsWhenTheClientLeaves(t *testing.T) {
	hold := make(chan struct{})
	defer close(hold)
	s := hiding(fakeupstream.Options{}, 0)
	s.limits = oftenAlive
	a := agentOf(t, s, true)
	a.up.Script(
		fakeupstream.Answer{Content: "One. ", ToolCalls: []fakeupstream.ToolCall{call(asksFor, "x")}},
		fakeupstream.Answer{Content: "Two.", Fault: fakeupstream.Fault{HoldHeaders: hold}},
	)
	w, stream := a.stream(say("user", "Mend the roof."))
	for readEvent(t, stream) != comment {
	}
	must(t, w.Close())
	a.wait(func() bool { return a.metric("dewpoint_requests_in_flight") == 0 })
}

// TestAnswerTooLongToStrain: an answer that is not streamed and too long to read as a whole is an error, since it may have calls that the
// client must not get.
func TestAnswerTooLongToStrain(t *testing.T) {
	quick.Alone(t)
	a := hidingRig(t, false, fakeupstream.Options{}, 0)
	long := strings.Repeat("shingle ", 1<<20)
	answer := fakeupstream.Answer{Content: long, ToolCalls: []fakeupstream.ToolCall{call(asksFor, "x")}}
	a.up.Script(answer, fakeupstream.Answer{Content: long})
	body := strings.Replace(messages(append(a.history, say("user", "Mend the roof."))...), "{", `{"tools":[`+runTool+`],`, 1)
	if resp, text := a.ask(body); resp.StatusCode != http.StatusBadGateway || !strings.Contains(text, `"upstream_answer_too_long"`) {
		t.Errorf("%s %.200s", resp.Status, text)
	}
	if resp, text := a.ask(body, "X-Dewpoint-Condense", "off"); resp.StatusCode != http.StatusOK || !strings.Contains(text, long) {
		t.Errorf("%s %.200s", resp.Status, text)
	}
}

// TestEndlessStreamToStrain: a stream that never ends its line after a hidden call is an error, too, before it fills the memory.
func TestEndlessStreamToStrain(t *testing.T) {
	quick.Skip(t)
	const all = 512 << 20
	sent := make(chan int, 1)
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":%q}}]}}]}\n\ndata: ", asksFor)
		n, piece := 0, bytes.Repeat([]byte("x"), 1<<20)
		for err := error(nil); err == nil && n < all; n += len(piece) {
			_, err = w.Write(piece)
		}
		sent <- n
	}))
	defer endless.Close()
	s := hiding(fakeupstream.Options{}, 0)
	s.base = endless.URL + "/v1"
	a := agentOf(t, s, true)
	w, stream := a.stream(say("user", "Mend the roof."))
	text, _ := io.ReadAll(stream) // an error, since the stream is cut off
	if !strings.Contains(string(text), `"upstream_answer_too_long"`) {
		t.Errorf("the client got %.200q", text)
	}
	if n := <-sent; n >= all {
		t.Errorf("upstream could send %d bytes", n)
	}
	must(t, w.Close())
}

// TestRefusedToolsAreWithdrawn refuses a request with a tool of the proxy's, and then accepts it without.
func TestRefusedToolsAreWithdrawn(t *testing.T) {
	bothWays(t, func(t *testing.T, streams bool) {
		a := hidingRig(t, streams, fakeupstream.Options{}, 400)
		refused := fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "Too many tools.", Type: "invalid_request_error"}}
		a.up.Script(refused, fakeupstream.Answer{Content: "One."}, fakeupstream.Answer{Content: "Two."})
		a.step(say("user", "Mend the roof."))
		a.step(say("user", "And the door."))
		a.up.Script(fakeupstream.Answer{Content: "Three."})
		if resp, text := a.ask(strings.Replace(messages(say("user", "Hello.")), "{", `{"tools":[`+runTool+`],`, 1), "Authorization", "Bearer sk-another"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s", resp.Status, text)
		}
		for i, want := range []bool{true, false, false, true} {
			if got := bytes.Contains(a.steps()[i].Body, []byte(asksFor)); got != want {
				t.Errorf("request %d has the tool: %t", i, got)
			}
		}
	})
}

func TestHiddenToolsAreNotForAll(t *testing.T) {
	a := hidingRig(t, false, fakeupstream.Options{}, 400)
	for _, body := range []string{
		hello,
		strings.Replace(hello, "{", `{"n":2,"tools":[`+runTool+`],`, 1),
		strings.Replace(hello, "{", `{"tools":[`+strings.Replace(runTool, `"run"`, `"`+asksFor+`"`, 1)+`],`, 1),
	} {
		a.wantUnchanged(body)
	}
	a.wantUnchanged(strings.Replace(hello, "{", `{"tools":[`+runTool+`],`, 1), "X-Dewpoint-Condense", "off")
}

func TestCommandCondenses(t *testing.T) {
	a := hidingRig(t, true, fakeupstream.Options{}, 400)
	a.warmUp(8)
	before := len(a.steps())
	a.up.Script(fakeupstream.Answer{Content: "It was condensed."}, fakeupstream.Answer{Content: "Go on."})
	a.step(say("user", " /condense\n"))
	a.step(say("user", "Now the door; /condense is not meant."))
	steps := a.steps()
	if got := steps[before]; len(got.Messages) >= len(steps[before-1].Messages) || strings.Contains(got.Text(), "/condense") {
		t.Errorf("forwarded %s", got.Body)
	}
	if !strings.Contains(steps[before+1].Text(), "/condense is not meant") {
		t.Error("a message that is more than the command is another one")
	}
	a.wantStable(1)
}

// TestCommandSaysWhatTheRecordIsAbout: the words behind the command reach the summariser, and the model sees the same note as without them.
func TestCommandSaysWhatTheRecordIsAbout(t *testing.T) {
	var prompts []string
	heard := func(r *fakeupstream.Request) fakeupstream.Answer {
		prompts = append(prompts, r.Text())
		return fakeupstream.Answer{Content: "CURRENT_STATE: the roof is mended"}
	}
	a := hidingRig(t, true, fakeupstream.Options{Summarise: heard}, 400)
	a.warmUp(8)
	before := len(a.steps())
	a.up.Script(fakeupstream.Answer{Content: "It was condensed."}, fakeupstream.Answer{Content: "Go on."})
	a.step(say("user", "/condense focus on the chimney"))
	a.step(say("user", "/condensed milk is in the fridge"))
	steps := a.steps()
	if len(prompts) != 1 || !strings.Contains(prompts[0], "The user asks of this record:\nfocus on the chimney") {
		t.Errorf("the summariser was asked %q", prompts)
	}
	if text := steps[before].Text(); strings.Contains(text, "/condense") || !strings.Contains(text, commandNoteBegins) {
		t.Errorf("forwarded %s", text)
	}
	if text := steps[before+1].Text(); !strings.Contains(text, "/condensed milk") {
		t.Errorf("a word that begins like the command is taken for it: %s", text)
	}
	a.wantStable(1)
}

// commandNoteBegins begins what the model sees in place of a command.
const commandNoteBegins = "[The user asked for the older part"

// TestFailedCondensationIsNotReportedAsDone: when condensing fails, neither the user's command nor the model's call is answered as if it had been done, or as if
// the history were too short.
func TestFailedCondensationIsNotReportedAsDone(t *testing.T) {
	broken := func(*fakeupstream.Request) fakeupstream.Answer { return fakeupstream.ServerError() }
	a := hidingRig(t, true, fakeupstream.Options{Summarise: broken}, 400)
	a.warmUp(8)
	before := len(a.steps())
	a.up.Script(
		fakeupstream.Answer{Content: "I see."}, fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{call(asksFor, "a")}},
		fakeupstream.Answer{Content: "I go on."},
	)
	resp, text := a.ask(a.body(say("user", "/condense")))
	if failed := resp.Header.Get("X-Dewpoint-Condense-Failed"); failed == "" {
		t.Errorf("the client is not told of it: %s", text)
	}
	a.history = append(a.history, string(a.read(text).Message))
	a.step(say("user", "Tidy up."))
	steps := a.steps()[before:]
	if len(steps) != 3 {
		t.Fatalf("%d requests, want 3", len(steps))
	}
	said := steps[2].Text()
	for _, part := range []string{"asked for the older part", "was not condensed"} {
		if !strings.Contains(said, part) {
			t.Errorf("the model is not told %q: %s", part, said)
		}
	}
	for _, part := range []string{"/condense", "was done", "too little"} {
		if strings.Contains(said, part) {
			t.Errorf("the model is told %q: %s", part, said)
		}
	}
	a.wantStable(0)
}

func TestModelRecalls(t *testing.T) {
	bothWays(t, func(t *testing.T, streams bool) {
		a := hidingRig(t, streams, fakeupstream.Options{}, 20, engine.Hidden{Recall: true})
		a.warmUp(15)
		lookUp := recallCall
		shown := a.steps()[len(a.steps())-1].Text()
		if strings.Contains(shown, `ran {"n":"w2"}`) {
			t.Fatal("nothing is hidden")
		}
		a.up.Script(
			fakeupstream.Answer{Content: "Let me see. ", ToolCalls: []fakeupstream.ToolCall{lookUp("q", `{"query":"ran {\"n\":\"w2\"}"}`), lookUp("e", `{"event":1,"last":3}`)}},
			fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{lookUp("n", `{"query":"zebra"}`), lookUp("x", `{"query":`)}},
			fakeupstream.Answer{Content: "I ran w2.", ToolCalls: []fakeupstream.ToolCall{call("run", "b"), lookUp("z", `{"event":99}`)}},
			fakeupstream.Answer{Content: "Done."},
		)
		got := a.step(say("user", "What was w2?"))
		if got.Text != "Let me see. I ran w2." || len(got.Calls) != 1 || got.Finish != "tool_calls" {
			t.Errorf("the client got %+v", got)
		}
		a.step(got.results()...)
		last := a.steps()[len(a.steps())-1]
		want := []string{
			`] ran {"n":"w2"}`, "[event 1, user]\nMend the roof.", "Nothing that is hidden says that", "arguments are not understood", "There are events 1 to 33.",
		}
		at := len(last.Messages) - 2 - 5 - 2 // two answers and the results of five calls, before the client's own result
		var results string
		for _, m := range last.Messages[max(at-1, 0):] {
			results += string(m)
		}
		for _, w := range want {
			quoted, _ := json.Marshal(w)
			if !strings.Contains(results, string(quoted[1:len(quoted)-1])) {
				t.Errorf("upstream was not told %q: %s", w, results)
			}
		}
		if strings.Contains(string(got.Message), "recall") {
			t.Errorf("the client sees %s", got.Message)
		}
	})
}

func recallCall(id, arguments string) fakeupstream.ToolCall {
	return fakeupstream.ToolCall{ID: "call_" + id + "_0123456789", Name: "recall", Arguments: arguments}
}

// recalls has the model look things up, and returns the results.
func (a *agent) recalls(arguments ...string) (told []string) {
	a.t.Helper()
	var calls []fakeupstream.ToolCall
	for i, text := range arguments {
		calls = append(calls, recallCall(fmt.Sprintf("r%d_%d", len(a.history), i), text))
	}
	a.up.Script(fakeupstream.Answer{ToolCalls: calls}, fakeupstream.Answer{Content: "I see."})
	a.step(say("user", "Look it up."))
	messages := a.steps()[len(a.steps())-1].Messages
	for _, m := range messages[len(messages)-len(calls):] {
		var result struct{ Content string }
		must(a.t, json.Unmarshal(m, &result))
		told = append(told, result.Content)
	}
	return told
}

// TestRecallFindsWhatTheClientCompacted: messages that the client no longer sends are found in the log of its own conversation, and in no
// other.
func TestRecallFindsWhatTheClientCompacted(t *testing.T) {
	a := hidingRig(t, true, fakeupstream.Options{}, 0, engine.Hidden{Recall: true})
	a.session = "roof"
	a.warmUp(5)
	a.session, a.history = "cellar", []string{say("system", "You run tools.")}
	a.up.Script(fakeupstream.Answer{Content: "The key of the cellar is under the mat."})
	a.step(say("user", "Where is the key?"))
	a.session, a.history = "roof", []string{say("system", "You run tools."), say("user", "You mended the roof. Go on.")}
	told := a.recalls(`{"query":"{\"n\":\"w2\"}"}`, `{"event":"7@1"}`, `{"event":7,"last":"8@1"}`, `{"event":"3@2"}`, `{"query":"cellar"}`)
	for i, want := range []string{
		`[event 7@1, tool result] ran {"n":"w2"} and so on`, `[event 7@1, tool result]`, "[event 8@1, assistant]\nStep 3.\ncalled run\nw3", "That event is not there", "Nothing that is hidden says that",
	} {
		if !strings.Contains(told[i], want) {
			t.Errorf("the model was told %q, want %q", told[i], want)
		}
	}
	a.wantStable(2)
}

// TestHiddenCallsOfOneAnswerAreBounded: calls beyond the sixteenth, and calls with long arguments, get a result that says so.
func TestHiddenCallsOfOneAnswerAreBounded(t *testing.T) {
	a := hidingRig(t, true, fakeupstream.Options{}, 0, engine.Hidden{Recall: true})
	a.warmUp(3)
	arguments := slices.Repeat([]string{`{"event":"2"}`}, 18)
	arguments[1] = `{"event":"` + strings.Repeat("2 ", dialect.MaxArguments) + `"}`
	for i, told := range a.recalls(arguments...) {
		want := "[event 2, assistant]"
		switch {
		case i == 1:
			want = "The arguments are longer than 16384 bytes"
		case i >= 16:
			want = "only the first 16"
		}
		if !strings.Contains(told, want) {
			t.Errorf("call %d was told %.200q, want %q", i, told, want)
		}
	}
}

// TestAnswersCountAsBytesInFlight: without room for an answer that is to be kept, a hidden call in it cannot be answered, which is an error.
func TestAnswersCountAsBytesInFlight(t *testing.T) {
	s := hiding(fakeupstream.Options{ChunkRunes: 4 << 10}, 0, engine.Hidden{Recall: true})
	s.limits = func(l *proxy.Limits) { l.Body, l.InFlight = 64<<10, 256<<10 }
	a := agentOf(t, s, true)
	long := strings.Repeat("shingle ", 64<<10)
	a.up.Script(fakeupstream.Answer{Content: long, ToolCalls: []fakeupstream.ToolCall{recallCall("q", `{"query":"x"}`)}}, fakeupstream.Answer{Content: "Done."})
	w, stream := a.stream(say("user", "Mend the roof."))
	text, _ := io.ReadAll(stream) // an error, since the stream is cut off
	if !strings.Contains(string(text), "shingle") || !strings.Contains(string(text), `"upstream_answer_too_long"`) {
		t.Errorf("the client got ...%s", text[max(len(text)-300, 0):])
	}
	must(t, w.Close())
	a.wait(func() bool { return a.metric(`dewpoint_answers_not_kept_total{tenant="default"}`) == 1 })
}

// TestWholeAnswersWithoutRoomPassUnread: the client gets an answer that the budget has no room for, with whatever it calls.
func TestWholeAnswersWithoutRoomPassUnread(t *testing.T) {
	s := hiding(fakeupstream.Options{}, 0, engine.Hidden{Recall: true})
	s.limits = func(l *proxy.Limits) { l.Body, l.InFlight = 64<<10, 256<<10 }
	a := agentOf(t, s, false)
	long := strings.Repeat("shingle ", 64<<10)
	a.up.Script(fakeupstream.Answer{Content: long})
	resp, text := a.ask(a.body(say("user", "Mend the roof.")))
	if resp.StatusCode != http.StatusOK || !strings.Contains(text, long) {
		t.Errorf("%s ...%s", resp.Status, text[max(len(text)-300, 0):])
	}
	a.atEnd(`dewpoint_answers_not_kept_total{tenant="default"}`, 1)
}

// contentless is a store without content.
type contentless struct{ session.Store }

func (c contentless) Events(ctx context.Context, id session.ThreadID, from uint64, limit int) ([]session.Event, error) {
	events, err := c.Store.Events(ctx, id, from, limit)
	for i := range events {
		events[i].Payload = nil
	}
	return events, err
}

func TestRecallSaysWhatIsNotKept(t *testing.T) {
	s := hiding(fakeupstream.Options{}, 0, engine.Hidden{Recall: true})
	s.store = func(s session.Store) session.Store { return contentless{s} }
	a := agentOf(t, s, false)
	a.session = "roof"
	a.warmUp(3)
	if told := a.recalls(`{"query":"w2"}`); !strings.Contains(told[0], "Nothing of this conversation is hidden") {
		t.Errorf("the model was told %q", told)
	}
	a.history = []string{say("system", "You run tools."), say("user", "You mended the roof. Go on.")}
	for _, told := range a.recalls(`{"query":"w2"}`, `{"event":"4@1"}`) {
		if !strings.Contains(told, "is not kept") {
			t.Errorf("the model was told %q", told)
		}
	}
}

// TestIDsInTheRecordAreRecalled: the view names hidden messages by ids that the tool accepts, with the same text in every request, and only
// if the model has the tool.
func TestIDsInTheRecordAreRecalled(t *testing.T) {
	for _, on := range []bool{true, false} {
		a := hidingRig(t, true, fakeupstream.Options{}, 20, engine.Hidden{Recall: on, Request: true})
		a.warmUp(25)
		shown := a.steps()[len(a.steps())-1].Text()
		_, ids, named := strings.Cut(shown, "The tool recall has those messages, as events ")
		var asked string
		for _, r := range a.up.Requests() {
			if r.Summary {
				asked += r.Text()
			}
		}
		if named != on || strings.Contains(asked, `<dewpoint_event id="4" kind="action">`) != on || strings.Contains(asked, "(event 17)") != on {
			t.Errorf("recall %t: the view names ids: %t; its summariser was asked %.3000s", on, named, asked)
		}
		if !on {
			continue
		}
		ids, _, _ = strings.Cut(ids, ".")
		if told := a.recalls(`{"event":"` + ids + `"}`); !strings.Contains(told[0], `ran {"n":"w2"}`) || strings.Contains(shown, `ran {"n":"w2"}`) {
			t.Errorf("events %s are %q", ids, told)
		}
	}
}
