package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// chainer is a client that lets upstream keep its history: it sends the id of the newest response and what is new.
type chainer struct {
	t    *testing.T
	p    *process
	s    *setting
	id   string // of the newest response
	call string // in the newest response

	streams bool // responses are streamed
}

// calling answers each request with a call.
func calling(r *fakeupstream.Request) fakeupstream.Answer {
	return fakeupstream.Answer{Content: fmt.Sprintf("Step %d.", r.Index), ToolCalls: []fakeupstream.ToolCall{
		{ID: fmt.Sprintf("call_%04d", r.Index), Name: "run", Arguments: fmt.Sprintf(`{"command":"make stage%d"}`, r.Index)},
	}}
}

var (
	callID     = regexp.MustCompile(`"call_id":"(\w+)"`)
	responseID = regexp.MustCompile(`"id":"(resp_\w+)"`)
)

// send sends items after the newest response.
func (c *chainer) send(extra string, items ...string) *http.Response {
	c.t.Helper()
	body := fmt.Sprintf(`{"model":"gpt-x","stream":%t,"instructions":"Be brief.",`, c.streams) + extra
	if c.id != "" {
		body += fmt.Sprintf(`"previous_response_id":%q,`, c.id)
	}
	a := sendTo(c.t, c.p, "/responses", []byte(body+`"input":[`+strings.Join(items, ",")+`]}`))
	text, err := a.rest()
	ok(c.t, err)
	c.id, c.call = responseID.FindStringSubmatch(text)[1], callID.FindStringSubmatch(text)[1]
	return a.Response
}

// result sends the output of the newest call.
func (c *chainer) result(text string) *http.Response {
	c.t.Helper()
	return c.send("", fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":%q}`, c.call, text))
}

// refers reports whether the newest request upstream names an earlier response.
func (c *chainer) refers() bool {
	return strings.Contains(string(lastBody(c.s.Upstream)), `"previous_response_id"`)
}

// TestKeptHistoryIsCondensed: where upstream keeps the history, the view is sent in place of the id once something is due, and the requests after
// that name the response which upstream stored with it. It holds after a restart, with a summariser and without, and developer messages stay.
func TestKeptHistoryIsCondensed(t *testing.T) {
	t.Parallel()
	for name, condenser := range map[string]string{
		"excerpts":  "type: excerpts, trigger: limits, max_tokens: 4000, min_tokens: 0",
		"summaries": "type: llm, llm_config: cheap, trigger: limits, wait: deadline, deadline: 1m, background_at: 0, max_tokens: 4000, min_tokens: 0",
	} {
		for _, seal := range []fakeupstream.Seal{"", fakeupstream.SealResponsesDetails} {
			t.Run(fmt.Sprint(name, ", sealed ", seal != ""), func(t *testing.T) {
				t.Parallel()
				s := newSetting(t, fakeupstream.Options{Seals: seal, Reply: calling})
				config := s.writeFor(t, condenser)
				c := &chainer{t: t, p: serve(t, "--config", config), s: s}
				c.condenses(func(n int) {
					if n%9 == 5 {
						c.p = c.p.restart(config)
					}
				})
			})
		}
	}
}

// TestKeptHistoryOfReplicas: two replicas, each of which gets every second request, condense a history that upstream keeps, also one with an
// image whose responses are streamed.
func TestKeptHistoryOfReplicas(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Reply: calling})
	config := s.writeType(t, inRedis(sessiontest.StartRedis(t).Addr), "type: excerpts, trigger: limits, max_tokens: 4000, min_tokens: 0", "")
	operators := []string{operatorToken + "=an-operators-token"}
	replicas := []*process{serveUnder(t, operators, "--config", config), serveUnder(t, operators, "--config", config)}
	c := &chainer{t: t, p: replicas[0], s: s, streams: true}
	c.condenses(func(n int) { c.p = replicas[n%2] })
}

// keptLimit is the limit of the configurations under which condenses is called, in tokens.
const keptLimit = 4000

// condenses plays a long tool loop. The model reads little, though it reads what has to stay. before is called before each step.
func (c *chainer) condenses(before func(n int)) {
	t, s := c.t, c.s
	c.send("", `{"role":"developer","content":"Never touch internal/legacy."}`, `{"role":"user","content":[{"type":"input_text","text":"Repair the build of the parcel service."},{"type":"input_image","detail":"low","image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="}]}`)
	resent, referred, session, thread := 0, 0, "", ""
	for n := range 40 {
		before(n)
		if n == 20 {
			c.send("", `{"role":"developer","content":"Plan mode is off."}`,
				fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"done"}`, c.call))
		}
		a := c.result(fmt.Sprintf("stage%d/file%d.go: ", n, n) + strings.Repeat(fmt.Sprintf("line %d of the log. ", n), 60))
		session, thread = a.Header.Get("X-Dewpoint-Session"), a.Header.Get("X-Dewpoint-Thread")
		if why := a.Header.Get("X-Dewpoint-Condense-Failed"); why != "" {
			t.Errorf("step %d: %s", n, why)
		}
		all := s.Upstream.Requests()
		last := all[len(all)-1]
		if last.PromptTokens > keptLimit*5/4 {
			t.Errorf("step %d: the model reads %d tokens", n, last.PromptTokens)
		}
		switch body := string(last.Body); {
		case c.refers():
			referred++
		default:
			resent++
			for _, want := range []string{"Never touch internal/legacy.", "Repair the build of the parcel service.", "Be brief."} {
				if !strings.Contains(body, want) {
					t.Errorf("step %d: %q is missing in %s", n, want, body)
				}
			}
			if n > 20 && !strings.Contains(body, "Plan mode is off.") {
				t.Errorf("step %d: a later developer message is missing in %s", n, body)
			}
		}
	}
	if resent < 2 || referred < 3*resent {
		t.Errorf("the history was sent %d times, and referred to %d times", resent, referred)
	}
	var shown struct {
		Log, View struct{ Messages, Tokens int }
	}
	ok(t, json.Unmarshal(c.p.administer(http.MethodGet, "/sessions/"+session+"/threads/"+thread+"/view", http.StatusOK), &shown))
	if shown.Log.Tokens < 2*keptLimit || shown.View.Tokens > keptLimit*5/4 {
		t.Errorf("an operator sees a log of %d tokens, and a view of %d", shown.Log.Tokens, shown.View.Tokens)
	}
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			t.Errorf("refused: %v", r.Refused)
		}
	}
}

// writeFor writes a configuration with this condenser, and an embedded store.
func (s *setting) writeFor(t testing.TB, condenser string) string {
	t.Helper()
	return s.writeType(t, embedded(newStore(t)), condenser, "shutdown: {delay: 0s}")
}

// TestKeptHistoryThatIsNotWhole: a history of which the log lacks a part, or to which the client refers as a conversation, passes as it came, and
// a header says so.
func TestKeptHistoryThatIsNotWhole(t *testing.T) {
	t.Parallel()
	const condenser = "type: excerpts, trigger: limits, max_size: 6, min_tokens: 0"
	s := newSetting(t, fakeupstream.Options{Reply: calling})
	c := &chainer{t: t, p: serve(t, "--config", s.writeFor(t, condenser)), s: s}
	c.send("", `{"role":"user","content":"Repair the build of the parcel service."}`)
	c.result("stage 1 fails")
	c.p = serve(t, "--config", s.writeFor(t, condenser)) // another store
	for n := range 8 {
		a := c.result(strings.Repeat("a line of the log. ", 20))
		if why := a.Header.Get("X-Dewpoint-Condense-Failed"); why != "kept_upstream" || !c.refers() {
			t.Errorf("step %d: %q, refers to the history: %t", n, why, c.refers())
		}
	}
	c.id = ""
	for n := range 8 {
		a := c.send(`"conversation":"conv_1",`, `{"role":"user","content":"Count the parcels."}`)
		if why := a.Header.Get("X-Dewpoint-Condense-Failed"); why != "kept_upstream" {
			t.Errorf("message %d of a conversation: %q", n, why)
		}
		c.id = ""
	}
}

// TestKeptHistoryIsRefused: if upstream refuses the view, the request goes again as the client sent it. If it refuses that as too long, the
// history is condensed although no limit says so.
func TestKeptHistoryIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		condenser string
		window    int
		refuse    int  // the status with which the view is refused
		passes    bool // the history is not sent in place of the id, unless it is refused
	}{
		"the view":           {condenser: "type: excerpts, trigger: limits, max_tokens: 2000, min_tokens: 0", refuse: http.StatusBadRequest},
		"an item of it":      {condenser: "type: excerpts, trigger: limits, max_tokens: 2000, min_tokens: 0", refuse: http.StatusNotFound},
		"by a broken server": {condenser: "type: excerpts, trigger: limits, max_tokens: 2000, min_tokens: 0", window: 5000, refuse: http.StatusInternalServerError},
		"the client's own":   {condenser: "type: excerpts, trigger: limits, max_size: 1000", window: 3000},
		"with a summariser":  {condenser: "type: llm, llm_config: cheap, trigger: limits, wait: deadline, deadline: 1m, background_at: 0, max_size: 1000", window: 3000},
		"switched off":       {condenser: "type: noop", passes: true},
		"observed as masked": {condenser: "type: observation_masking, attention_window: 4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{ContextWindow: c.window, Reply: calling})
			var refusing atomic.Bool
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(body))
				if refusing.Load() && !bytes.Contains(body, []byte("previous_response_id")) {
					http.Error(w, `{"error":{"message":"Item 'fc_1' is not allowed here.","type":"invalid_request_error"}}`, c.refuse)
					return
				}
				s.Upstream.ServeHTTP(w, r)
			}))
			t.Cleanup(front.Close)
			s.url = front.URL + "/v1"
			w := &chainer{t: t, p: serve(t, "--config", s.writeFor(t, c.condenser)), s: s}
			w.send("", `{"role":"user","content":"Repair the build of the parcel service."}`)
			resent := false
			for n := range 20 {
				refusing.Store(c.refuse > 0 && n > 12)
				w.result(fmt.Sprintf("stage%d: ", n) + strings.Repeat("a line of the log. ", 20))
				if resent = resent || !w.refers(); refusing.Load() && !w.refers() {
					t.Errorf("step %d: went on with %s", n, lastBody(s.Upstream))
				}
			}
			if resent == c.passes {
				t.Errorf("the history was sent in place of the id: %t", resent)
			}
		})
	}
}

// TestKeptHistoryForks: a branch has nothing of another one, and a request that is sent again goes upstream as before, condensed.
func TestKeptHistoryForks(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{Reply: calling, ContextWindow: 3000})
	c := &chainer{t: t, p: serve(t, "--config", s.writeFor(t, "type: excerpts, trigger: limits, max_tokens: 1500, min_tokens: 0")), s: s}
	c.send("", `{"role":"user","content":"Repair the build of the parcel service."}`)
	lines := strings.Repeat("a line of the log. ", 40)
	for range 2 {
		c.result("main " + lines)
	}
	trunk := *c
	for n := range 4 {
		c.send("", `{"role":"developer","content":"BRANCH B: delete the database."}`,
			fmt.Sprintf(`{"type":"function_call_output","call_id":%q,"output":"B %d %s"}`, c.call, n, lines))
	}
	c.id, c.call = trunk.id, trunk.call
	condensed := 0
	for n := range 24 {
		before := *c
		c.result(fmt.Sprintf("C %d %s", n, lines))
		body := string(lastBody(s.Upstream))
		if strings.Contains(body, "BRANCH B") || strings.Contains(body, "B 0") {
			t.Errorf("step %d has another branch: %s", n, body)
		}
		if c.refers() {
			continue
		}
		condensed++
		after := *c
		c.id, c.call = before.id, before.call
		c.result(fmt.Sprintf("C %d %s", n, lines))
		if again := string(lastBody(s.Upstream)); again != body {
			t.Errorf("step %d went as\n%s\nand again as\n%s", n, body, again)
		}
		c.id, c.call = after.id, after.call
	}
	if condensed < 2 {
		t.Errorf("condensed %d times", condensed)
	}
}

// TestKeptAnswersAreNotMixed: the log of the first answer is found by the id of that answer, and an answer that was cut off makes the history
// incomplete.
func TestKeptAnswersAreNotMixed(t *testing.T) {
	t.Parallel()
	for name, finish := range map[string]string{"complete": "", "cut off": "length"} {
		s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			a := calling(r)
			if r.Index == 1 {
				a.FinishReason = finish
			}
			return a
		}})
		config := s.writeFor(t, "type: excerpts, trigger: limits, max_size: 6, min_tokens: 0")
		c := &chainer{t: t, p: serve(t, "--config", config), s: s}
		var firsts []chainer
		for range 3 { // the same request; the client goes on from the second answer
			c.id = ""
			c.send("", `{"role":"user","content":"Repair the build of the parcel service."}`)
			firsts = append(firsts, *c)
		}
		c.p = c.p.restart(config)
		c.id, c.call = firsts[1].id, firsts[1].call
		resent := 0
		for n := range 12 {
			c.result(fmt.Sprintf("stage %d fails", n))
			body := string(lastBody(s.Upstream))
			if c.refers() {
				continue
			}
			resent++
			if strings.Contains(body, firsts[0].call) || strings.Contains(body, firsts[2].call) {
				t.Errorf("%s: step %d goes on from another answer: %s", name, n, body)
			}
		}
		if (resent > 0) != (finish == "") {
			t.Errorf("%s: the history was sent %d times", name, resent)
		}
	}
}
