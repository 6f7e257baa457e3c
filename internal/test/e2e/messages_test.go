package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// coder is a coding agent that uses the Messages API.
type coder struct {
	t        *testing.T
	proxy    *process
	elements []string
	most     int         // tokens of an answer; 0: the default
	model    string      // of the requests of step; claude-x if empty
	header   http.Header // of the requests of step, in addition to its own
}

func newCoder(t *testing.T, p *process) *coder {
	return &coder{t: t, proxy: p, elements: []string{`{"role":"user","content":[{"type":"text","text":"Repair the build of the parcel service."}]}`}}
}

// ask sends the history, with the caching mark at its end, and returns the answer.
func (c *coder) ask() (http.Header, string) {
	c.t.Helper()
	last := len(c.elements) - 1
	marked := strings.TrimSuffix(c.elements[last], "}]}") + `,"cache_control":{"type":"ephemeral"}}]}`
	body := `{"model":"claude-x","max_tokens":` + strconv.Itoa(cmp.Or(c.most, 400)) + `,"stream":true,"thinking":{"type":"adaptive"},
		"system":[{"type":"text","text":"You are a coding agent.","cache_control":{"type":"ephemeral"}}],
		"tools":[{"name":"Bash","description":"runs a command","input_schema":{"type":"object"}}],
		"messages":[` + strings.Join(append(c.elements[:last:last], marked), ",") + `]}`
	req, err := http.NewRequest(http.MethodPost, c.proxy.url()+"/v1/messages?beta=true", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "X-Api-Key": {"sk-of-the-client"}, "Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"some-beta"},
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("message_stop")) && !bytes.Contains(answer, []byte("event: error")) {
		c.t.Fatalf("%d messages: %s: %s (%v)", len(c.elements), resp.Status, answer, err)
	}
	return resp.Header, string(answer)
}

// work adds a step to the history.
func (c *coder) work(n, size int) {
	c.elements = append(c.elements,
		fmt.Sprintf(`{"role":"assistant","content":[{"type":"text","text":"Step %d."},{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command":"make %d"}}]}`, n, n, n),
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"}]}`, n, strings.Repeat(fmt.Sprintf("line %d of a log ", n), size)))
}

func isSummary(r *fakeupstream.Request) bool {
	return strings.Contains(string(r.Body), "You keep the record of")
}

// TestMessagesOwnModel: in the Messages API too, the request's own model summarises, in its own protocol and with the client's
// key.
func TestMessagesOwnModel(t *testing.T) {
	for _, kind := range []string{"llm", "structured_summary"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{APIKeys: []string{"sk-of-the-client"}, IsSummary: isSummary})
			c := newCoder(t, serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: %s, max_size: 12, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), kind))))
			condensed := 0
			for n := range 20 {
				c.work(n, 20)
				header, _ := c.ask()
				if failed := header.Get("X-Dewpoint-Condense-Failed"); failed != "" {
					t.Fatalf("step %d: %s", n, failed)
				}
				if strings.Contains(header.Get("X-Dewpoint-Condensed"), "summary") {
					condensed++
				}
			}
			if condensed == 0 {
				t.Error("nothing was condensed")
			}
			summarised(t, s.Upstream)
			if r := s.Upstream.Requests(); condensed > 0 && strings.Count(string(r[len(r)-1].Body), `"cache_control"`) != 3 {
				t.Errorf("not marked are the system prompt, the record and the newest message: %s", r[len(r)-1].Body)
			}
		})
	}
}

// TestMessagesReminders: system messages in the history stay where the API accepts them when the messages around them are hidden.
func TestMessagesReminders(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	c := newCoder(t, serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: excerpts, max_size: 14, min_tokens: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t))))))
	condensed := 0
	for n := range 20 {
		c.elements = append(c.elements, fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"Go on with part %d."}]}`, n),
			fmt.Sprintf(`{"role":"system","content":[{"type":"text","text":"Reminder %d."}]}`, n))
		header, _ := c.ask()
		if failed := header.Get("X-Dewpoint-Condense-Failed"); failed != "" {
			t.Fatalf("step %d: %s", n, failed)
		}
		condensed += len(header.Values("X-Dewpoint-Condensed"))
		c.work(n, 20)
	}
	last := string(s.Upstream.Requests()[len(s.Upstream.Requests())-1].Body)
	if n := strings.Count(last, "Reminder "); condensed == 0 || n != 20 {
		t.Errorf("%d condensations; %d reminders in the last request, want 20: %s", condensed, n, last)
	}
}

// TestMessagesProbe: a request for one token, with which a client tests whether its history is accepted, is forwarded like the
// last request with that history. It is never condensed itself, and does not change the conversation.
func TestMessagesProbe(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	c := newCoder(t, serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: excerpts, max_size: 12, min_tokens: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t))))))
	messages := func() (n int) {
		all := s.Upstream.Requests()
		return len(all[len(all)-1].Messages)
	}
	condensed := 0
	for n := range 14 {
		c.work(n, 200)
		c.most = 1
		probe, _ := c.ask()
		probed := messages()
		c.most = 0
		header, _ := c.ask()
		if h := probe.Get("X-Dewpoint-Condensed"); h != "" {
			t.Errorf("step %d: a probe was condensed: %s", n, h)
		}
		switch sent := messages(); {
		case header.Get("X-Dewpoint-Condensed") != "":
			condensed++
			if probed <= sent {
				t.Errorf("step %d: %d messages went upstream for a probe, and then %d", n, probed, sent)
			}
		case probed != sent:
			t.Errorf("step %d: %d messages went upstream for a probe, and then %d", n, probed, sent)
		}
		if header.Get("X-Dewpoint-Session") != probe.Get("X-Dewpoint-Session") {
			t.Errorf("step %d: the probe is another session", n)
		}
	}
	if condensed < 2 {
		t.Errorf("condensed %d times", condensed)
	}
}

// summarised checks the calls of the summariser.
func summarised(t *testing.T, up *fakeupstream.Server) {
	t.Helper()
	calls := 0
	for _, r := range up.Requests() {
		if r.Refused != nil {
			t.Errorf("%s was refused: %v", r.Path, r.Refused)
		}
		if !r.Summary {
			continue
		}
		calls++
		var body map[string]json.RawMessage
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		h := r.Header
		if r.Path != "/v1/messages" || h.Get("X-Api-Key") != "sk-of-the-client" || h.Get("Authorization") != "" || len(h.Values("Anthropic-Version")) != 1 {
			t.Errorf("a summary was asked for at %s with %v", r.Path, h)
		}
		if body["thinking"] != nil || strings.Contains(string(body["tools"]), "Bash") || strings.Contains(string(r.Body), "cache_control") {
			t.Errorf("a summary was asked for with the client's fields: %.300s", r.Body)
		}
	}
	if calls == 0 {
		t.Error("no summary was asked for")
	}
}

// TestMessagesOverflowInAStream: if an overflow is reported in a stream with status 200, the request is condensed and sent again without the
// client noticing.
func TestMessagesOverflowInAStream(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	proxy := serve(t, "--config", s.configAt(t, embedded(newStore(t))+"\nmodels: {claude-x: {context_window: 100000, max_output: 1000}}", 1000))
	for message, relieved := range map[string]bool{
		"prompt is too long: 9000 tokens > 6000 maximum":                                       true, // Anthropic, Vertex
		"Input is too long for requested model.":                                               true, // Bedrock
		"input length and `max_tokens` exceed context limit: 5900 + 400 > 6000, decrease them": true,
		"Overloaded": false,
	} {
		c := newCoder(t, proxy)
		c.elements[0] = strings.Replace(c.elements[0], "parcel", message[:8], 1) // a new conversation
		for n := range 12 {
			c.work(n, 100)
		}
		s.Upstream.Script(fakeupstream.Answer{Raw: &fakeupstream.Raw{Status: http.StatusOK, ContentType: "text/event-stream", Body: fmt.Appendf(nil,
			"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"some_error\",\"message\":%q}}\n\n", message)}})
		header, answer := c.ask()
		if told := strings.Contains(answer, "event: error"); told == relieved || strings.HasPrefix(header.Get("X-Dewpoint-Condensed"), "overflow") != relieved {
			t.Errorf("%s: condensed %q: %s", message, header.Get("X-Dewpoint-Condensed"), answer)
		}
	}
}

// TestMessagesThinkingInALoop: a tool loop with thinking enabled in the request is condensed when it fills the window, although upstream refuses
// the newest answer without its thinking, and also with thinking that is bound to messages which are now hidden.
func TestMessagesThinkingInALoop(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealThinkingBlocks, ContextWindow: thinkerWindow, IsSummary: isSummary,
		Reply: callMake,
	})
	c := newThinker(t, s, "{type: llm}")
	condensed := 0
	for n := range 60 {
		if c.step(n) {
			condensed++
		}
	}
	if condensed < 2 {
		t.Errorf("condensed %d times", condensed)
	}
	dropping := 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			t.Errorf("refused: %v", r.Refused)
		}
		if bytes.Contains(r.Body, []byte("drop_block")) {
			dropping++
			if got := r.Header.Get("Anthropic-Beta"); got != "some-beta,thinking-binding-controls-2026-08-01" {
				t.Errorf("sent with %q", got)
			}
		}
	}
	if dropping != condensed {
		t.Errorf("%d requests ask for thinking to be dropped, %d were condensed", dropping, condensed)
	}
}

// TestMessagesThinkingBeginsALoop: with thinking enabled in the request, upstream refuses a tool loop without the thinking that it began with,
// even if no later answer has any. Such a loop is condensed when it fills the window, and so is the next loop. The beginning of a history that
// nothing changes keeps its thinking.
func TestMessagesThinkingBeginsALoop(t *testing.T) {
	t.Parallel()
	for name, thinks := range map[string]func(step int) bool{
		"once":        func(step int) bool { return step == 0 },
		"each loop":   func(step int) bool { return step == 0 || step == 30 },
		"every fifth": func(step int) bool { return step%5 == 0 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var step atomic.Int64
			s := newSetting(t, fakeupstream.Options{
				Seals: fakeupstream.SealThinkingBlocks, SealWhen: func(int) bool { return thinks(int(step.Load())) },
				ContextWindow: thinkerWindow, IsSummary: isSummary,
				Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
					if step.Load() == 29 && name != "once" {
						return fakeupstream.Answer{Content: "Done so far."}
					}
					return callMake(r)
				},
			})
			c := newThinker(t, s, "{type: llm, keep_first: 1}")
			condensed := 0
			for n := range 60 {
				step.Store(int64(n))
				if c.step(n) && n > 30 {
					condensed++
				}
			}
			if condensed == 0 {
				t.Error("the second half was not condensed")
			}
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					t.Errorf("request %d was refused: %v", r.Index, r.Refused)
				}
				if !r.Summary && r.Index > 1 && !bytes.Contains(r.Body, []byte(`"thinking":"A thought."`)) {
					t.Errorf("request %d has no thinking", r.Index)
				}
			}
		})
	}
}

// TestManualThinkingIsCondensedSoftly: a run of an older model is one tool loop with thinking. It is condensed when its events exceed the limit,
// and what stays keeps its thinking, which such a model does not bind to its place. A model that is known to bind it is asked to drop what is
// bound elsewhere. An unknown model that refuses to be asked is not asked again. A gateway may serve a newer model by the name of an older one: it
// refuses once, and then is treated as what it is.
func TestManualThinkingIsCondensedSoftly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		model           string
		byAuthor, asked bool
		refused         int
	}{
		"older":                {model: "claude-sonnet-4-5-20250929", byAuthor: true},
		"newer":                {model: "claude-opus-5-5", asked: true},
		"unknown":              {model: "claude-x", byAuthor: true, asked: true, refused: 1},
		"newer by an old name": {model: "claude-haiku-4-5", asked: true, refused: 1},
	} {
		for condenser, settings := range map[string]string{"llm": "{type: llm, max_size: 20}", "excerpts": "{type: excerpts, max_size: 20}"} {
			t.Run(name+" "+condenser, func(t *testing.T) {
				t.Parallel()
				s := newSetting(t, fakeupstream.Options{
					Seals: fakeupstream.SealThinkingBlocks, ByAuthor: c.byAuthor, IsSummary: isSummary, Reply: callMake,
				})
				p := newCoder(t, serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: %s
shutdown: {delay: 0s, timeout: 1m}`, s.url, embedded(newStore(t)), settings))))
				p.model = c.model
				condensed := 0
				for n := range 60 {
					if p.step(n) {
						condensed++
					}
				}
				if condensed < 2 {
					t.Errorf("condensed %d times", condensed)
				}
				asked, refused := 0, 0
				for _, r := range s.Upstream.Requests() {
					if r.Summary {
						continue
					}
					if bytes.Contains(r.Body, []byte("block_binding")) {
						asked++
					}
					if r.Refused != nil {
						refused++
						continue
					}
					answers, thoughts := bytes.Count(r.Body, []byte(`"role":"assistant"`)), bytes.Count(r.Body, []byte(`"thinking":"A thought."`))
					if c.byAuthor && answers != thoughts {
						t.Errorf("request %d has %d answers and the thinking of %d", r.Index, answers, thoughts)
					}
				}
				if refused != c.refused || (asked > 0) != c.asked || asked != refused && c.byAuthor {
					t.Errorf("%d requests asked for thinking to be dropped, %d were refused", asked, refused)
				}
			})
		}
	}
}

// TestMessagesUnbindingIsRefused: if upstream does not support the header that asks it to drop thinking, the request is sent again unchanged,
// with the client's own header.
func TestMessagesUnbindingIsRefused(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealThinkingBlocks, IsSummary: isSummary,
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			if bytes.Contains(r.Body, []byte("drop_block")) {
				return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: http.StatusBadRequest, Message: "Unexpected value for the anthropic-beta header"}}
			}
			return callMake(r)
		},
	})
	c := newThinker(t, s, "{type: llm}")
	for n := range 30 {
		c.step(n)
	}
	dropping := 0
	for _, r := range s.Upstream.Requests() {
		asks := bytes.Contains(r.Body, []byte("drop_block"))
		if asks {
			dropping++
		}
		if got := r.Header.Get("Anthropic-Beta"); !r.Summary && asks != (got != "some-beta") {
			t.Errorf("request %d went with %q", r.Index, got)
		}
	}
	if dropping == 0 {
		t.Error("nothing was condensed")
	}
}

// thinkerWindow is the window of a thinker's model.
const thinkerWindow = 6000

// newThinker returns a coder behind a proxy with a condenser and, perhaps, further settings.
func newThinker(t *testing.T, s *setting, condenser string, more ...string) *coder {
	t.Helper()
	return newThinkerAt(t, s, embedded(newStore(t)), condenser, more...)
}

// newThinkerAt is newThinker with a store section.
func newThinkerAt(t *testing.T, s *setting, store, condenser string, more ...string) *coder {
	t.Helper()
	return newCoder(t, serveOperators(t, writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
models: {claude-x: {context_window: %d, max_output: 400}}
condenser: %s
shutdown: {delay: 0s, timeout: 1m}
%s`, s.url, store, thinkerWindow, condenser, strings.Join(more, "\n")))))
}

// step sends a request, and the result of the call in the answer. It reports whether the history was condensed.
func (c *coder) step(n int) bool {
	c.t.Helper()
	body := `{"model":"` + cmp.Or(c.model, "claude-x") + `","max_tokens":400,"thinking":{"type":"enabled","budget_tokens":200},"tools":[{"name":"Bash","input_schema":{"type":"object"}}],
		"messages":[` + strings.Join(c.elements, ",") + `]}`
	req, err := http.NewRequest(http.MethodPost, c.proxy.url()+"/v1/messages", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"sk"}, "Anthropic-Version": {"2023-06-01"}, "Anthropic-Beta": {"some-beta"}}
	maps.Copy(req.Header, c.header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	var said struct{ Content []json.RawMessage }
	if err = errors.Join(err, json.Unmarshal(answer, &said)); err != nil || resp.StatusCode != http.StatusOK {
		c.t.Fatalf("step %d: %s: %s (%v)", n, resp.Status, answer, err)
	}
	var call struct{ ID string }
	if err := json.Unmarshal(said.Content[len(said.Content)-1], &call); err != nil {
		c.t.Fatal(err)
	}
	c.elements = append(c.elements, fmt.Sprintf(`{"role":"assistant","content":%s}`, encode(said.Content)))
	if call.ID == "" {
		c.elements = append(c.elements, `{"role":"user","content":[{"type":"text","text":"Go on."}]}`)
		return resp.Header.Get("X-Dewpoint-Condensed") != ""
	}
	c.elements = append(c.elements,
		fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":%q,"content":"%s"}]}`, call.ID, strings.Repeat(fmt.Sprintf("line %d of a log ", n), 40)))
	return resp.Header.Get("X-Dewpoint-Condensed") != ""
}
