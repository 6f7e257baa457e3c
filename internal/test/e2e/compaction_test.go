package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// asksForRecord reports whether a request asks the model for a record of its history.
func asksForRecord(r *fakeupstream.Request) bool {
	return bytes.Contains(r.Body, []byte("about to be replaced by a record"))
}

// newNoCompactor returns a setting whose upstream does not support compaction, and whose model writes records on request.
func newNoCompactor(t *testing.T, record string) *setting {
	t.Helper()
	s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
		if asksForRecord(r) {
			return fakeupstream.Answer{Content: record}
		}
		return fakeupstream.Answer{Content: "Understood."}
	}})
	s.Upstream.RefuseCompaction()
	return s
}

// compact requests a compaction of the history, and returns the resulting item.
func (w *worker) compact(streamed bool) (item string) {
	w.t.Helper()
	item, input := w.compacted(streamed)
	if input == 0 {
		w.t.Fatal("the compaction has no usage")
	}
	return item
}

// compacted is compact for an upstream that may fail. It also returns the tokens of the prompt.
func (w *worker) compacted(streamed bool) (item string, input int) {
	w.t.Helper()
	body := fmt.Sprintf(`{"model":"gpt-x","stream":%t,"store":false,"tools":[{"type":"function","name":"run","parameters":{"type":"object"}}],"input":[%s,{"type":"compaction_trigger"}]}`,
		streamed, strings.Join(w.items, ","))
	a := sendTo(w.t, w.proxy, "/responses", []byte(body), w.key)
	text, err := a.rest()
	ok(w.t, err)
	if streamed {
		_, last, found := strings.Cut(text, "event: response.completed\ndata: ")
		if !found || !strings.Contains(text, "response.output_item.done") {
			w.t.Fatalf("got %s", text)
		}
		var e struct{ Response json.RawMessage }
		ok(w.t, json.Unmarshal([]byte(last), &e))
		text = string(e.Response)
	}
	var r struct {
		Status string
		Output []json.RawMessage
		Usage  struct {
			Input int `json:"input_tokens"`
		}
	}
	ok(w.t, json.Unmarshal([]byte(text), &r))
	if r.Status != "completed" || len(r.Output) != 1 || !strings.Contains(string(r.Output[0]), `"type":"compaction"`) {
		w.t.Fatalf("got %s", text)
	}
	return string(r.Output[0]), r.Usage.Input
}

// TestCompactionForAnyUpstream: if upstream does not support compaction, a client that requests one gets an item with a record,
// which replaces the history from then on, on every replica.
func TestCompactionForAnyUpstream(t *testing.T) {
	t.Parallel()
	s := newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7.")
	config := s.configAt(t, inRedis(sessiontest.StartRedis(t).Addr), 1000)
	w := newWorker(t, serve(t, "--config", config))
	other := serve(t, "--config", config)
	for n := range 6 {
		w.work(n, 20)
	}
	for round, streamed := range []bool{true, false, true} {
		item := w.compact(streamed)
		w.items = []string{w.items[0], item, `{"type":"message","role":"user","content":"Go on with it."}`}
		w.proxy, other = other, w.proxy
		w.ask()
		requests := s.Upstream.Requests()
		last := string(requests[len(requests)-1].Body)
		if n := strings.Count(last, "Record of earlier work in this conversation"); n != 1 {
			t.Errorf("round %d: %d records were forwarded: %s", round, n, last)
		}
		if !strings.Contains(last, "fails in stage 7") || !strings.Contains(last, "Repair the build") || strings.Contains(last, `"type":"compaction"`) {
			t.Errorf("round %d: forwarded %s", round, last)
		}
		w.work(100+round, 20)
	}
	refused := 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			refused++
		}
		if asksForRecord(&r) && (r.Stream || !bytes.Contains(r.Body, []byte(`"tool_choice":"none"`))) {
			t.Errorf("a record was asked for by %.300s", r.Body)
		}
	}
	if refused != 2 { // each replica finds out once
		t.Errorf("%d requests were refused", refused)
	}
}

// TestCompactionOfUpstreams: if upstream supports compaction, its item is passed on unchanged in both directions.
func TestCompactionOfUpstreams(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	w := newWorker(t, serve(t, "--config", s.config(t, embedded(newStore(t)))))
	w.work(0, 5)
	for range 2 {
		item := w.compact(true)
		if !strings.Contains(item, `"encrypted_content":"compacted.`) {
			t.Fatalf("got %s", item)
		}
		w.items = []string{item, `{"type":"message","role":"user","content":"Go on with it."}`}
		w.ask()
		if last := string(lastBody(s.Upstream)); !strings.Contains(last, item) {
			t.Errorf("%s was not forwarded: %s", item, last)
		}
	}
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil || asksForRecord(&r) {
			t.Errorf("%v: %.200s", r.Refused, r.Body)
		}
	}
}

var sealedIn = regexp.MustCompile(`dewpoint\.1\.[A-Za-z0-9_-]+`)

// TestCompactionsAreNotForged: an item that was changed, truncated, invented, or issued to another client is refused in both
// protocols that have such items, and no part of it reaches upstream.
func TestCompactionsAreNotForged(t *testing.T) {
	t.Parallel()
	s := newNoCompactor(t, "CURRENT_STATE: all is well.")
	tenants := func() string {
		return embedded(newStore(t)) + fmt.Sprintf("\ntenants: [{name: mine, api_keys: [{sha256: %x}]}, {name: other, api_keys: [{sha256: %x}]}]",
			sha256.Sum256([]byte("sk-mine")), sha256.Sum256([]byte("sk-other")))
	}
	p := serve(t, "--config", s.configAt(t, tenants(), 1000))
	stranger := serve(t, "--config", s.configAt(t, tenants(), 1000)) // with another secret
	mine, other := http.Header{"Authorization": {"Bearer sk-mine"}}, http.Header{"Authorization": {"Bearer sk-other"}}
	w := newWorker(t, p)
	w.key = mine
	w.work(0, 5)
	item := w.compact(false)
	given := sealedIn.FindString(item)
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(given, "dewpoint.1."))
	ok(t, err)
	sent := len(s.Upstream.Requests())
	spelling := strings.NewReplacer() // how the client writes the same JSON text
	f := func(to *process, sealed string, as http.Header, want int) {
		t.Helper()
		for path, body := range map[string]string{
			"/v1/responses": fmt.Sprintf(`{"model":"gpt-x","input":[%s,{"role":"user","content":"Go on."}]}`, strings.Replace(item, given, sealed, 1)),
			"/v1/messages": fmt.Sprintf(`{"model":"claude-x","max_tokens":9,"messages":[
				{"role":"assistant","content":[{"type":"compaction","content":%q}]},{"role":"user","content":"Go on."}]}`, sealed),
		} {
			req, a := post(t, to, []byte(spelling.Replace(body)))
			req.URL.Path, req.Header["Authorization"] = path, as["Authorization"]
			req.Header.Set("Anthropic-Version", "2023-06-01")
			resp, err := a.client.RoundTrip(req)
			ok(t, err)
			a.Response = resp
			text, err := a.rest()
			ok(t, err)
			if resp.StatusCode != want || want != 200 && !strings.Contains(text, "compaction") {
				t.Errorf("%s: %.60s: %d %s", path, sealed, resp.StatusCode, text)
			}
		}
	}
	encode := func(raw []byte) string { return "dewpoint.1." + base64.RawURLEncoding.EncodeToString(raw) }
	random := rand.New(rand.NewPCG(1, 2))
	for n := range 60 {
		changed := bytes.Clone(raw)
		changed[random.IntN(len(raw))] ^= byte(1 << (n % 8))
		f(p, encode(changed), mine, 400)
	}
	for range 40 {
		f(p, encode(raw[:random.IntN(len(raw))]), mine, 400)
	}
	f(p, "dewpoint.1.", mine, 400)
	f(p, "dewpoint.1.!", mine, 400)
	f(p, given, other, 400)
	f(stranger, given, mine, 400)
	long := bytes.Clone(raw)
	long[0] = 0xff // the length of a key's id
	f(p, encode(long), mine, 400)
	for _, escaped := range [][]string{
		{`"assistant"`, `"user"`}, {"dewpoint.1", `dewpoint\u002e1`}, {`"compaction"`, `"comp\u0061ction"`}, {"dewpoint", `\u0064ewpoint`, `"compaction"`, `"\u0063ompaction"`},
	} {
		spelling = strings.NewReplacer(escaped...)
		f(p, encode(long), mine, 400)
		f(p, given, other, 400)
	}
	if n := len(s.Upstream.Requests()); n != sent {
		t.Errorf("%d requests reached upstream", n-sent)
	}
	f(p, given, mine, 200) // spelled with escapes
	spelling = strings.NewReplacer()
	f(p, given, mine, 200)
	for _, r := range s.Upstream.Requests()[sent:] {
		if strings.Contains(string(r.Body), strings.TrimPrefix(given, "dewpoint.1.")) {
			t.Errorf("upstream got an item of ours: %s", r.Body)
		}
	}
}

// TestCompactPath: the path that only compacts is also served if upstream does not have it.
func TestCompactPath(t *testing.T) {
	t.Parallel()
	for name, knows := range map[string]bool{"upstream's": true, "ours": false} {
		s := newSetting(t, fakeupstream.Options{Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			return fakeupstream.Answer{Content: "CURRENT_STATE: stage 7 fails."}
		}})
		if !knows {
			s.Upstream.RefuseCompaction()
		}
		w := newWorker(t, serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000)))
		w.work(0, 5)
		for range 2 {
			a := sendTo(t, w.proxy, "/responses/compact", []byte(`{"model":"gpt-x","input":[`+strings.Join(w.items, ",")+`]}`), w.key)
			text, err := a.rest()
			ok(t, err)
			var r struct {
				Object string
				Output []json.RawMessage
			}
			ok(t, json.Unmarshal([]byte(text), &r))
			if r.Object != "response.compaction" || len(r.Output) != 1 || strings.Contains(text, "dewpoint.1.") == knows {
				t.Fatalf("%s: %s", name, text)
			}
			w.items = []string{string(r.Output[0]), `{"type":"message","role":"user","content":"Go on with it."}`}
			w.ask()
			if last := string(lastBody(s.Upstream)); strings.Contains(last, "stage 7 fails") == knows {
				t.Errorf("%s: forwarded %s", name, last)
			}
		}
		w.proxy.terminate()
		w.proxy.wait()
		if strings.Contains(w.proxy.log.String(), `"condense":"compaction"`) == knows {
			t.Errorf("%s: no line tells whose the compaction was: %s", name, w.proxy.log)
		}
	}
}

// TestCompactionIsNotMisjudged: a failure unrelated to compaction is passed on, and the next attempt goes to upstream again.
func TestCompactionIsNotMisjudged(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	w := newWorker(t, serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000)))
	w.work(0, 5)
	for n, raw := range []fakeupstream.Raw{
		{Status: 200, ContentType: "text/event-stream", Body: []byte("data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\"}}}\n\n")},
		{Status: 429, ContentType: "application/json", Body: []byte(`{"error":{"message":"slow down"}}`)},
		{Status: 400, ContentType: "application/json", Body: []byte(`{"error":{"message":"too long","code":"context_length_exceeded"}}`)},
	} {
		up := fakeFor(t, raw)
		p := serve(t, "--upstream", up, "--config", s.configAt(t, embedded(newStore(t)), 1000))
		req, a := post(t, p, []byte(`{"model":"gpt-x","stream":true,"input":[`+strings.Join(w.items, ",")+`,{"type":"compaction_trigger"}]}`))
		req.URL.Path = "/v1/responses"
		resp, err := a.client.RoundTrip(req)
		ok(t, err)
		a.Response = resp
		if text, _ := a.rest(); resp.StatusCode != raw.Status || text != string(raw.Body) {
			t.Errorf("%d: %d %s", n, resp.StatusCode, text)
		}
	}
}

// fakeFor returns an upstream that gives the same answer to every request.
func fakeFor(t *testing.T, raw fakeupstream.Raw) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asksForRecord(&fakeupstream.Request{Body: readAll(t, r)}) {
			t.Error("a record was asked for")
		}
		w.Header().Set("Content-Type", raw.ContentType)
		w.WriteHeader(raw.Status)
		_, _ = w.Write(raw.Body)
	}))
	t.Cleanup(up.Close)
	return up.URL + "/v1"
}

func readAll(t *testing.T, r *http.Request) []byte {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		t.Error(err)
	}
	return body
}

// TestCompactionWithoutRecord: if no model writes a usable record, the client gets one that says so, with the user's words, the previous
// record and lines of the history. The next attempt may have a better one.
func TestCompactionWithoutRecord(t *testing.T) {
	t.Parallel()
	failures := map[string]fakeupstream.Answer{
		"refused": {Content: "I cannot help with that."},
		"cut off": {Content: "CURRENT_STATE: stage sev", FinishReason: "length"},
		"too long": {Error: &fakeupstream.APIError{
			Status: 400, Type: "invalid_request_error", Code: "context_length_exceeded",
			Message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
		}},
	}
	for _, condenser := range []string{"llm, llm_config: cheap, max_size: 1000", "noop"} {
		for name, failure := range failures {
			t.Run(condenser[:3]+" "+name, func(t *testing.T) {
				t.Parallel()
				failing := true
				s := newSetting(t, fakeupstream.Options{Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
					switch {
					case !asksForRecord(r):
						return fakeupstream.Answer{Content: "Understood."}
					case failing:
						return failure
					}
					return fakeupstream.Answer{Content: "CURRENT_STATE: the build fails in stage 7."}
				}})
				s.Upstream.RefuseCompaction()
				w := newWorker(t, serve(t, "--config", s.condensedBy(t, condenser)))
				f := func(want ...string) {
					t.Helper()
					item, input := w.compacted(true)
					if served := name != "too long" || !failing; served != (input > 0) {
						t.Errorf("a prompt of %d tokens is reported", input)
					}
					w.items = []string{w.items[0], item, `{"type":"message","role":"user","content":"Go on with it."}`}
					w.ask()
					last := string(lastBody(s.Upstream))
					for _, text := range append(want, "Repair the build") {
						if !strings.Contains(last, text) {
							t.Errorf("%q is not in %s", text, last)
						}
					}
					if strings.Contains(last, "stage sev") || strings.Contains(last, "I cannot help") || len(last) > 9000 {
						t.Errorf("forwarded %d bytes: %s", len(last), last)
					}
				}
				for n := range 9 {
					w.work(n, 200)
				}
				w.step("src/parcel/stage_8.go:17: undefined: weigh")
				f("NOT_SUMMARISED: 21 messages", "src/parcel/stage_8.go:17: undefined: weigh")
				failing = false
				f("fails in stage 7")
				failing = true
				w.step("src/parcel/stage_9.go:3: undefined: seal")
				f("fails in stage 7", "src/parcel/stage_9.go:3: undefined: seal", "Go on with it.")
				f("fails in stage 7", "src/parcel/stage_9.go:3: undefined: seal", "Go on with it.")
				w.proxy.counted(`dewpoint_compactions_total{outcome="excerpts",tenant="default"} 3`)
			})
		}
	}
}

// step adds a step with this result to the history.
func (w *worker) step(result string) {
	w.work(len(w.items), 1)
	last := &w.items[len(w.items)-1]
	*last = strings.Replace(*last, `"output":"`, `"output":"`+result+`\n`, 1)
}

// condensedBy writes a configuration with a condenser of this type.
func (s *setting) condensedBy(t *testing.T, condenser string) string {
	return writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s}}
condenser: {type: %s}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), judge.Summariser, condenser))
}

// TestCompactionsUnderKills: a thousand compactions over two replicas, one of which is killed and restarted now and then. Each
// replica opens items of the other one, and items from before a kill.
func TestCompactionsUnderKills(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full makes a thousand compactions")
	}
	s := newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7.")
	config := s.configAt(t, inRedis(sessiontest.StartRedis(t).Addr), 1000)
	pair := [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
	w := newWorker(t, pair[0])
	for n := range 1000 {
		if n%50 == 49 {
			pair[n/50%2].kill()
			pair[n/50%2] = serve(t, "--config", config)
		}
		w.work(n, 3)
		w.proxy = pair[n%2]
		item := w.compact(n%3 == 0)
		w.items = []string{w.items[0], item, fmt.Sprintf(`{"type":"message","role":"user","content":"Go on with step %d."}`, n)}
		w.proxy = pair[n/2%2]
		w.ask()
	}
	if last := string(lastBody(s.Upstream)); !strings.Contains(last, "fails in stage 7") || len(last) > 20_000 {
		t.Errorf("forwarded %d bytes: %.2000s", len(last), last)
	}
}

// TestCompactionAfterASystemMessage: the user's words are in the record even if a system message is the history's last.
func TestCompactionAfterASystemMessage(t *testing.T) {
	t.Parallel()
	s := newNoCompactor(t, "CURRENT_STATE: the build of the parcel service fails in stage 7.")
	p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
	const typed = "Never touch internal/legacy; the ticket is TRK-1177."
	text, err := sendTo(t, p, "/responses/compact", []byte(`{"model":"gpt-x","input":[{"role":"user","content":"`+typed+`"},{"role":"developer","content":"Be brief."}]}`)).rest()
	ok(t, err)
	var compacted struct{ Output []json.RawMessage }
	ok(t, json.Unmarshal([]byte(text), &compacted))
	a := sendTo(t, p, "/responses", []byte(fmt.Sprintf(`{"model":"gpt-x","input":[%s,{"role":"user","content":"Go on."}]}`, compacted.Output[0])))
	ok(t, a.finish())
	if got := string(lastBody(s.Upstream)); !strings.Contains(got, typed) {
		t.Errorf("forwarded %s", got)
	}
}
