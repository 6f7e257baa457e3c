package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestHiddenItems: a client of the Responses API sends back all items, and a server refuses reasoning without the item after it and the item
// without its reasoning. In the middle of the run the log is lost; the client's items must be a valid history without it.
func TestHiddenItems(t *testing.T) {
	for _, seals := range []fakeupstream.Seal{"", fakeupstream.SealResponsesDetails} {
		for _, streams := range []bool{true, false} {
			t.Run(fmt.Sprintf("streamed %t %s", streams, seals), func(t *testing.T) {
				t.Parallel()
				hiddenItems(t, seals, streams)
			})
		}
	}
}

func hiddenItems(t *testing.T, seals fakeupstream.Seal, streams bool) {
	s := newSetting(t, fakeupstream.Options{Seals: seals, ChunkRunes: 7})
	run := func() *process {
		return serve(t, "--config", s.write(t, embedded(newStore(t)), "max_size: 400, agent_request: true, recall: true", "{delay: 0s, timeout: 1m}"))
	}
	c := itemClient{t: t, worker: newWorker(t, run()), streams: streams}
	call := func(name string, n int) fakeupstream.ToolCall {
		return fakeupstream.ToolCall{ID: fmt.Sprintf("call_%s%03d_0123456789", name[:2], n), Name: name, Arguments: `{"query":"parcel"}`}
	}
	const hidden = "recall"
	n, asked := 0, 0
	for _, step := range []struct {
		answers []string // for each, a text and then its calls: h is hidden, c is not
		text    string
		calls   int
		lose    bool
	}{
		{answers: []string{"One. c"}, text: "One. ", calls: 1},
		{answers: []string{"h", "Two. c"}, text: "Two. ", calls: 1},
		{answers: []string{"See. h", "Three. c"}, text: "See. Three. ", calls: 1},
		{answers: []string{"h", "hh", "More. h", "Four. cc"}, text: "More. Four. ", calls: 2},
		{answers: []string{"Five. hc"}, text: "Five. ", calls: 1},
		{answers: []string{"hc"}, calls: 1, lose: true},
		{answers: []string{"chch"}, calls: 2},
		{answers: []string{"See. h", "Six."}, text: "See. Six."},
		{answers: []string{"See. h", "See. h", "Seven."}, text: "See. See. Seven.", lose: true},
		{answers: []string{"Eight."}, text: "Eight."},
	} {
		for _, kinds := range step.answers {
			a := fakeupstream.Answer{Content: strings.TrimRight(kinds, "hc")}
			for _, kind := range kinds[len(a.Content):] {
				n++
				a.ToolCalls = append(a.ToolCalls, call(map[rune]string{'h': hidden, 'c': "run"}[kind], n))
			}
			s.Upstream.Script(a)
		}
		asked += len(step.answers)
		if text, calls := c.step(); text != step.text || calls != step.calls {
			t.Fatalf("%v: the client got %q and %d calls", step.answers, text, calls)
		}
		requests := s.Upstream.Requests()
		if len(requests) != asked {
			t.Fatalf("%v: %d requests, want %d", step.answers, len(requests), asked)
		}
		for i, r := range requests {
			if r.Refused != nil {
				t.Fatalf("%v: request %d was refused: %v\n%s", step.answers, i, r.Refused, r.Body)
			}
			if i > asked-len(step.answers)-1 && i > 0 && !c.lost && !begins(r.Messages, requests[i-1].Messages) {
				t.Errorf("%v: request %d does not begin with all of the one before:\n%s\n%s", step.answers, i, requests[i-1].Body, r.Body)
			}
			c.lost = c.lost && i < asked-len(step.answers)
		}
		if step.lose {
			c.proxy, c.lost = run(), true
		}
	}
}

// itemClient is a worker that sends back the items that it received.
type itemClient struct {
	t *testing.T
	*worker
	streams, lost bool
}

// step sends the history, and returns the text of the answer and the number of its calls. Next time it sends their results, or
// else a user message.
func (c *itemClient) step() (text string, calls int) {
	c.t.Helper()
	body := fmt.Sprintf(`{"model":"gpt-x","stream":%t,"store":false,"include":["reasoning.encrypted_content"],"tools":[{"type":"function","name":"run","parameters":{"type":"object"}}],"input":[%s]}`,
		c.streams, strings.Join(c.items, ","))
	a := sendTo(c.t, c.proxy, "/responses", []byte(body), c.key)
	answer, err := a.rest()
	ok(c.t, err)
	if c.streams {
		_, answer, _ = strings.Cut(answer, "event: response.completed\ndata: ")
		var e struct{ Response json.RawMessage }
		ok(c.t, json.Unmarshal([]byte(strings.TrimSpace(answer)), &e))
		answer = string(e.Response)
	}
	var response struct{ Output []json.RawMessage }
	ok(c.t, json.Unmarshal([]byte(answer), &response))
	var results []string
	for _, raw := range response.Output {
		var item struct {
			Type    string
			CallID  string `json:"call_id"`
			Name    string
			Content []struct{ Text string }
		}
		ok(c.t, json.Unmarshal(raw, &item))
		c.items = append(c.items, string(raw))
		switch {
		case item.Type == "message":
			text += item.Content[0].Text
		case item.Type == "function_call" && item.Name == "run":
			results = append(results, fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"ran"}`, item.CallID))
		case item.Type != "reasoning":
			c.t.Errorf("the client got %s", raw)
		}
	}
	if calls = len(results); calls == 0 {
		results = []string{`{"type":"message","role":"user","content":"And now?"}`}
	}
	c.items = append(c.items, results...)
	return text, calls
}

// TestHiddenToolsWithToolsInTheHistory: if the client's tools are an item of its history, as in current versions of Codex, the hidden tools are
// offered as well, and the client never sees calls of them.
func TestHiddenToolsWithToolsInTheHistory(t *testing.T) {
	t.Parallel()
	const item = `{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"run","parameters":{"type":"object"}}]}`
	for _, streams := range []bool{false, true} {
		s := newSetting(t, fakeupstream.Options{})
		p := serve(t, "--config", s.write(t, embedded(newStore(t)), "max_size: 400, recall: true", "{delay: 0s, timeout: 1m}"))
		s.Upstream.Script(
			fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: "call_re_0123456789", Name: "recall", Arguments: `{"query":"parcel"}`}}},
			fakeupstream.Answer{Content: "It is sent.", ToolCalls: []fakeupstream.ToolCall{{ID: "call_ru_0123456789", Name: "run", Arguments: "{}"}}},
		)
		text, err := sendTo(t, p, "/responses", fmt.Appendf(nil, `{"model":"gpt-x","stream":%t,"store":false,"input":[%s,{"type":"message","role":"user","content":"Where is the parcel?"}]}`,
			streams, item)).rest()
		ok(t, err)
		if strings.Contains(text, "recall") || strings.Contains(text, "call_re_") || !strings.Contains(text, "It is sent.") || !strings.Contains(text, "call_ru_") {
			t.Errorf("streamed %t: the client got %s", streams, text)
		}
		requests := s.Upstream.Requests()
		if len(requests) != 2 {
			t.Fatalf("streamed %t: %d requests went upstream", streams, len(requests))
		}
		for i, r := range requests {
			var body struct {
				Tools []struct{ Name string }
				Input []json.RawMessage
			}
			ok(t, json.Unmarshal(r.Body, &body))
			if r.Refused != nil || len(body.Tools) != 1 || body.Tools[0].Name != "recall" || string(body.Input[0]) != item {
				t.Errorf("streamed %t, request %d: %v: %s", streams, i, r.Refused, r.Body)
			}
			if answered := strings.Contains(string(r.Body), `"function_call_output"`); answered != (i > 0) {
				t.Errorf("streamed %t, request %d: the hidden call is answered: %t", streams, i, answered)
			}
		}
	}
}

// TestNoHiddenCallPassesForWantOfRoom: an answer that calls a hidden tool, and for which limits.bytes_in_flight has no room, is an error. The
// client does not get a call that it cannot answer.
func TestNoHiddenCallPassesForWantOfRoom(t *testing.T) {
	t.Parallel()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"id":"c","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":%q,"tool_calls":[`+
			`{"id":"call_1","type":"function","function":{"name":"recall","arguments":"{}"}}]}}]}`, strings.Repeat("long ", 140_000)) // it fails if the client has left
	}))
	t.Cleanup(front.Close)
	s := &setting{url: front.URL + "/v1"}
	p := serve(t, "--config", s.writeType(t, embedded(newStore(t)), "type: excerpts, recall: true", "limits: {bytes_in_flight: 1MiB, max_body: 1MiB}"))
	o := try(t, p, "/chat/completions", "", map[string]any{
		"model": "m", "messages": []any{map[string]string{"role": "user", "content": "hi"}},
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{"name": "run", "parameters": map[string]any{"type": "object"}}}},
	})
	if o.status != http.StatusBadGateway || !strings.Contains(o.text, "upstream_answer_too_long") || strings.Contains(o.text, "recall") {
		t.Errorf("%d: %.300s", o.status, o.text)
	}
}
