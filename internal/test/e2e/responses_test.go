package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// worker is an agent that uses the Responses API without state.
type worker struct {
	t     *testing.T
	proxy *process
	key   http.Header
	items []string
}

func newWorker(t *testing.T, p *process) *worker {
	return &worker{t, p, http.Header{"Authorization": {"Bearer sk-of-the-client"}}, []string{`{"type":"message","role":"user","content":[{"type":"input_text","text":"Repair the build of the parcel service."}]}`}}
}

// ask sends the history, and returns the answer.
func (w *worker) ask() (http.Header, string) {
	w.t.Helper()
	body := `{"model":"gpt-x","stream":true,"store":false,"include":["reasoning.encrypted_content"],"instructions":"You are a coding agent.",
		"tools":[{"type":"function","name":"run","parameters":{"type":"object"}}],"input":[` + strings.Join(w.items, ",") + `]}`
	a := sendTo(w.t, w.proxy, "/responses", []byte(body), w.key)
	text, err := a.rest()
	if err != nil || !strings.Contains(text, "response.completed") && !strings.Contains(text, `"error"`) {
		w.t.Fatalf("%d items: %s (%v)", len(w.items), text, err)
	}
	return a.Header, text
}

// work adds a step to the history.
func (w *worker) work(n, size int) {
	w.items = append(w.items,
		fmt.Sprintf(`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Step %d."}]}`, n),
		fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"run","arguments":"{\"command\":\"make %d\"}"}`, n, n),
		fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":"%s"}`, n, strings.Repeat(fmt.Sprintf("line %d of a log ", n), size)))
}

// TestResponsesOwnModel: in the Responses API too, the request's own model summarises, in its own protocol and with the client's
// key.
func TestResponsesOwnModel(t *testing.T) {
	for _, kind := range []string{"llm", "structured_summary", "llm_attention"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{
				APIKeys: []string{"sk-of-the-client"}, IsSummary: func(r *fakeupstream.Request) bool { return !bytes.Contains(r.Body, []byte("a coding agent")) },
			})
			w := newWorker(t, serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: %s, max_size: 12, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), kind))))
			condensed := 0
			for n := range 20 {
				w.work(n, 20)
				header, _ := w.ask()
				if failed := header.Get("X-Dewpoint-Condense-Failed"); failed != "" {
					t.Fatalf("step %d: %s", n, failed)
				}
				if header.Get("X-Dewpoint-Condensed") != "" {
					condensed++
				}
			}
			if condensed == 0 {
				t.Error("nothing was condensed")
			}
			calls := 0
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					t.Errorf("%s was refused: %v", r.Path, r.Refused)
				}
				if !r.Summary {
					continue
				}
				calls++
				var body map[string]json.RawMessage
				ok(t, json.Unmarshal(r.Body, &body))
				if r.Path != "/v1/responses" || string(body["store"]) != "false" || body["include"] != nil || strings.Contains(string(body["tools"]), `"run"`) {
					t.Errorf("a summary was asked for at %s with %.300s", r.Path, r.Body)
				}
			}
			if calls == 0 {
				t.Error("no model was asked")
			}
		})
	}
}

// TestResponsesOverflowInAStream: if an overflow is reported after the opening events of a stream, the request is condensed and sent again without
// the client noticing.
func TestResponsesOverflowInAStream(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	w := newWorker(t, serve(t, "--config", s.configAt(t, embedded(newStore(t))+"\nmodels: {gpt-x: {context_window: 100000, max_output: 1000}}", 1000)))
	for n := range 12 {
		w.work(n, 100)
	}
	const opening = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"status\":\"in_progress\"}}\n\n"
	for _, code := range []string{"server_error", "context_length_exceeded"} { // in this order: after a condensation, a failure is answered by a retry
		relieved := code == "context_length_exceeded"
		for _, event := range []string{
			`{"type":"error","sequence_number":1,"code":%q,"message":"Your input exceeds the context window of this model."}`,
			`{"type":"response.failed","sequence_number":1,"response":{"status":"failed","error":{"code":%q,"message":"Your input exceeds the context window of this model."}}}`,
		} {
			if !relieved {
				event = strings.Replace(event, "Your input exceeds the context window of this model.", "We are sorry.", 1)
			}
			s.Upstream.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: http.StatusOK, ContentType: "text/event-stream", Body: fmt.Appendf(nil,
				opening+"event: x\ndata: "+event+"\n\n", code)}})
			header, answer := w.ask()
			if told := strings.Contains(answer, code); told == relieved || strings.HasPrefix(header.Get("X-Dewpoint-Condensed"), "overflow") != relieved {
				t.Errorf("%s: condensed %q: %s", event, header.Get("X-Dewpoint-Condensed"), answer)
			}
			w.work(len(w.items), 100)
		}
	}
}

// TestResponsesKept: a request whose history upstream stores, and a request for a compaction, are forwarded unchanged.
func TestResponsesKept(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	for _, body := range []string{
		`{"model":"gpt-x","input":"Count to three."}`,
		`{"model":"gpt-x","previous_response_id":"resp_000000","input":[{"role":"user","content":"And on."}]}`,
		`{"model":"gpt-x","input":[{"role":"user","content":"Count."},{"type":"compaction_trigger"}]}`,
	} {
		a := sendTo(t, p, "/responses", []byte(body))
		ok(t, a.finish())
		if got := string(lastBody(s.Upstream)); got != body {
			t.Errorf("%s\nwas forwarded as %s", body, got)
		}
	}
}

// TestLoneItem: a history that is a single item is recognised when the client sends it again in a list.
func TestLoneItem(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
		return fakeupstream.Answer{Content: "Done."}
	}})
	p := serve(t, "--config", s.config(t, embedded(newStore(t))))
	const item = `{"role":"user","content":"Repair the build of the parcel service."}`
	thread := ""
	for _, input := range []string{item, `[` + item + `,{"role":"assistant","content":"Done."},{"role":"user","content":"Thanks."}]`} {
		a := sendTo(t, p, "/responses", []byte(`{"model":"gpt-x","input":`+input+`}`))
		ok(t, a.finish())
		got := a.Header.Get("X-Dewpoint-Thread")
		if got == "" || thread != "" && got != thread {
			t.Errorf("%s belongs to thread %q, the first request to %q", input, got, thread)
		}
		thread = got
		if body := lastBody(s.Upstream); !strings.Contains(string(body), `"input":`+input) {
			t.Errorf("upstream got %s", body)
		}
	}
}
