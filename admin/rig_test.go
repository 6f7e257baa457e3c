package admin_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/tokenize"
)

// encoders are shared by all rigs: the race detector makes loading a vocabulary slow.
var encoders = tokenize.New()

// patience bounds waits in tests.
const patience = time.Minute

// Models used in the tests.
const (
	agentModel = "priced-model"
	summariser = "cheap-model"
)

// rig is a complete service with a fake upstream, and a client of its admin port that validates every response.
type rig struct {
	t    *testing.T
	cfg  *config.Config
	up   *fakeupstream.Server
	app  *app.App
	logs *observer.ObservedLogs
	spec *spec
	now  func() time.Time // nil: the time
	http http.Transport   // not shared: an unused connection would delay the service's shutdown
}

// start starts a service that condenses above ten events. change modifies its configuration.
func start(t *testing.T, change func(*config.Config), options ...func(*rig)) *rig {
	t.Helper()
	r := &rig{t: t, up: fakeupstream.New(fakeupstream.Options{SummariserModels: []string{summariser}}), spec: newSpec(t)}
	must(t, r.up.Start())
	t.Cleanup(r.up.Close)
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen = "127.0.0.1:0", "127.0.0.1:0"
	cfg.Store.Path = filepath.Join(t.TempDir(), "store.db")
	cfg.Upstream.BaseURL = r.up.URL() + "/v1"
	cfg.Store.Timeout = patience
	cfg.LLMs = map[string]config.LLM{"cheap": {Model: summariser, BaseURL: cfg.Upstream.BaseURL, Timeout: patience}}
	price, low := model.Price{Input: 2, CachedInput: 0.5, CacheWrite: 2.5, Output: 8}, model.Price{Input: 0.1, CachedInput: 0.1, CacheWrite: 0.1, Output: 0.4}
	cfg.Models = map[string]model.Info{
		agentModel: {ContextWindow: 100_000, MaxOutput: 1000, Encoding: model.EncodingO200k, Price: price},
		summariser: {ContextWindow: 100_000, MaxOutput: 1000, Encoding: model.EncodingO200k, Price: low}, // cheaper than the agent's model
	}
	cfg.Condenser = catalogue.Default(catalogue.TypeLLM)
	cfg.Condenser.Trigger = catalogue.TriggerLimits
	cfg.Condenser.LLMConfig, cfg.Condenser.MaxSize, cfg.Condenser.KeepFirst = "cheap", 10, 1
	cfg.Condenser.MinTokens, cfg.Condenser.Wait, cfg.Condenser.BackgroundAt = 0, catalogue.WaitDeadline, 0
	if change != nil {
		change(cfg)
	}
	r.cfg = cfg
	for _, set := range options {
		set(r)
	}
	r.restart()
	t.Cleanup(r.stop)
	return r
}

func (r *rig) restart() {
	r.t.Helper()
	if r.app != nil {
		r.stop()
	}
	var err error
	var core zapcore.Core
	core, r.logs = observer.New(zap.InfoLevel)
	r.app, err = app.New(r.cfg, zap.New(core), app.Options{Encoders: encoders, Now: r.now})
	must(r.t, err)
	r.app.Start()
}

func (r *rig) stop() {
	r.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	must(r.t, r.app.Stop(ctx))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// place is the session and thread that the proxy reports for a request.
type place struct{ session, thread, condensed string }

func (p place) url(rest string) string {
	return "/api/v1/sessions/" + p.session + "/threads/" + p.thread + rest
}

// ask sends a history to the proxy until the proxy has logged it. Once may not be enough: on a busy machine a turn may proceed without the
// store, and the end of an answer waits only briefly for the log.
func (r *rig) ask(messages []string, header ...string) place {
	r.t.Helper()
	condensed := ""
	for end := time.Now().Add(patience); ; {
		p := r.send(messages, header...)
		if condensed == "" {
			condensed = p.condensed
		}
		if p.session != "" && r.logged(p, messages) {
			p.condensed = condensed
			return p
		}
		if time.Now().After(end) {
			r.t.Fatal("the history is not logged")
		}
	}
}

// logged waits briefly for a history to be in the log.
func (r *rig) logged(p place, messages []string) bool {
	want := 0
	for _, m := range messages {
		if !strings.Contains(m, `"role":"system"`) && !strings.Contains(m, `"role":"developer"`) {
			want++
		}
	}
	for end := time.Now().Add(patience / 20); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var thread struct{ Length int }
		a := r.call(http.MethodGet, p.url(""))
		if a.StatusCode == http.StatusOK && json.Unmarshal(a.body, &thread) == nil && thread.Length >= want {
			return true
		}
	}
	return false
}

// send sends a history to the proxy once.
func (r *rig) send(messages []string, header ...string) place {
	r.t.Helper()
	body := fmt.Sprintf(`{"model":%q,"messages":[%s]}`, agentModel, strings.Join(messages, ","))
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, "http://"+r.app.Addr()+"/v1/chat/completions", strings.NewReader(body))
	must(r.t, err)
	req.Header.Set("Authorization", "Bearer client-key")
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := (&http.Client{Transport: &r.http}).Do(req)
	must(r.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(r.t, err)
	if resp.StatusCode != http.StatusOK {
		r.t.Fatalf("status %d: %s", resp.StatusCode, text)
	}
	h := resp.Header
	return place{h.Get("X-Dewpoint-Session"), h.Get("X-Dewpoint-Thread"), h.Get("X-Dewpoint-Condensed")}
}

// received returns the messages of the agent's latest request to upstream.
func (r *rig) received() []string {
	r.t.Helper()
	for _, req := range slices.Backward(r.up.Requests()) {
		if !req.Summary {
			var out []string
			for _, m := range req.Messages {
				out = append(out, string(m))
			}
			return out
		}
	}
	r.t.Fatal("nothing was forwarded")
	return nil
}

func say(role, text string) string {
	raw, _ := json.Marshal(map[string]string{"role": role, "content": text})
	return string(raw)
}

// turns returns a system prompt followed by n messages.
func turns(topic string, n int) []string {
	all := []string{say("system", "You help with "+topic+".")}
	for i := range n {
		all = append(all, say([]string{"user", "assistant"}[i%2], fmt.Sprintf("%s %d %s", topic, i, strings.Repeat("and so on ", 40))))
	}
	return all
}

// toolRun returns an agent run of n tool calls.
func toolRun(n int) []string {
	all := []string{say("system", "You are an agent."), say("user", "Look at all files.")}
	for i := range n {
		id := fmt.Sprintf("call_%020d", i)
		all = append(all,
			fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":%q,"type":"function","function":{"name":"read","arguments":"{\"path\":\"f%d\"}"}}]}`, id, i),
			fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":%q}`, id, strings.Repeat(fmt.Sprintf("line of file %d. ", i), 60)))
	}
	return all
}

// grow sends the first messages of a conversation, then two more with each request.
func (r *rig) grow(messages []string, first int, header ...string) place {
	r.t.Helper()
	var p place
	for n := first; n <= len(messages); n += 2 {
		p = r.ask(messages[:n], header...)
	}
	return p
}

// answer is a response of the admin port.
type answer struct {
	*http.Response
	body []byte
}

// call sends a request to the admin port, with the header that changes require, and validates the response.
func (r *rig) call(method, path string, header ...string) answer {
	r.t.Helper()
	return r.callWith("", method, path, header...)
}

// callWith is like call, but sends a body.
func (r *rig) callWith(content, method, path string, header ...string) answer {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+r.app.AdminAddr()+path, strings.NewReader(content))
	must(r.t, err)
	req.Header.Set("X-Dewpoint-Admin", "1")
	if token := cmp.Or(r.cfg.Admin.Token.Reveal(), r.app.AdminToken()); token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		if req.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	resp, err := (&http.Client{Transport: &r.http}).Do(req)
	must(r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(r.t, err)
	r.spec.check(r.t, req, resp, body)
	return answer{resp, body}
}

// get decodes a successful response.
func (r *rig) get(path string, into any) {
	r.t.Helper()
	a := r.call(http.MethodGet, path)
	if a.StatusCode != http.StatusOK {
		r.t.Fatalf("GET %s: %d %s", path, a.StatusCode, a.body)
	}
	must(r.t, json.Unmarshal(a.body, into))
}

// fails checks the status and code of an error response.
func (a answer) fails(t *testing.T, status int, code string) {
	t.Helper()
	var e struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(a.body, &e); err != nil || a.StatusCode != status || e.Error.Code != code || e.Error.Message == "" {
		t.Errorf("%s %s: %d %s, want %d %s", a.Request.Method, a.Request.URL, a.StatusCode, a.body, status, code)
	}
}
