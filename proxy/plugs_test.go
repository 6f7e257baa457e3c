package proxy_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/dialect/chat"
	"github.com/dewpoint-proxy/dewpoint/engine"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/proxy"
	"github.com/dewpoint-proxy/dewpoint/proxy/plug"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Paths of the wires.
const (
	litellmPath  = plug.LiteLLMPath
	portkeyPath  = plug.PortkeyPath
	compressPath = "/v1" + plug.CompressPath
	usagePath    = "/v1" + plug.UsagePath
)

func wires() map[string]plug.Wire {
	return map[string]plug.Wire{
		plug.LiteLLMPath:  plug.LiteLLM{Path: chat.Path},
		plug.PortkeyPath:  plug.Portkey{Paths: map[string]string{"chatComplete": chat.Path}},
		plug.CompressPath: plug.Compress{Chat: chat.Path},
	}
}

// excerpting condenses histories of more than ten events without a model.
func excerpting() condense.Condenser {
	return condense.Excerpts{Settings: condense.Settings{MaxSize: 10, KeepFirst: 1, MinimumProgress: 0.1}}
}

func pluggedRig(t *testing.T, s setup) *rig {
	t.Helper()
	s.plugs = wires()
	if s.condenser == nil {
		s.condenser = excerpting()
	}
	return newRig(t, s)
}

// plugIn sends a body to a gateway's endpoint. Whatever it is, the answer is 200 and JSON.
func (r *rig) plugIn(path, body string, header ...string) map[string]any {
	r.t.Helper()
	resp, err := r.client.Do(r.request(guard(r.t), http.MethodPost, path, body, header...))
	must(r.t, err)
	text := drain(r.t, resp)
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil || resp.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: status %d, %v: %.300s", path, resp.StatusCode, err, text)
	}
	return answer
}

// litellm is what LiteLLM 1.110.2 sends before a request.
func litellm(list []string) string {
	return fmt.Sprintf(`{"input_type":"request","litellm_call_id":"call-1","litellm_trace_id":"7b0c","structured_messages":[%s],"images":null,"tools":null,
		"texts":["x"],"request_data":{"user_api_key_hash":"88dc","user_api_key_alias":null},"request_headers":{"host":"h","authorization":"[present]"},
		"litellm_version":"1.110.2","additional_provider_specific_params":{},"tool_calls":null,"model":"gpt-4o"}`, strings.Join(list, ","))
}

// portkey is what the webhook of Portkey's gateway 1.15.2 sends before a request.
func portkey(list []string) string {
	return fmt.Sprintf(`{"request":{"json":%s,"text":"x","isStreamingRequest":false,"isTransformed":false},"response":{"json":{},"text":"","statusCode":null,
		"isTransformed":false},"provider":"openai","requestType":"chatComplete","metadata":{},"eventType":"beforeRequestHook"}`, messages(list...))
}

// history returns the history that a gateway forwards after an answer: what came back, or its own.
func history(t *testing.T, path string, answer map[string]any, own []string) any {
	t.Helper()
	var list any
	switch path {
	case litellmPath:
		if list = answer["structured_messages"]; (answer["action"] == "GUARDRAIL_INTERVENED") != (list != nil) {
			t.Errorf("action %v with messages: %v", answer["action"], list != nil)
		}
	case portkeyPath:
		if answer["verdict"] != true {
			t.Errorf("verdict %v", answer["verdict"])
		}
		if data, is := answer["transformedData"].(map[string]any); is {
			body := data["request"].(map[string]any)["json"].(map[string]any)
			if list = body["messages"]; body["model"] != "gpt-4o" {
				t.Errorf("model %v", body["model"])
			}
		}
	default:
		if list = answer["messages"]; list == nil {
			t.Error("no messages")
		}
	}
	if list == nil {
		must(t, json.Unmarshal([]byte("["+strings.Join(own, ",")+"]"), &list))
	}
	return list
}

func asked(path string, list []string) string {
	switch path {
	case litellmPath:
		return litellm(list)
	case portkeyPath:
		return portkey(list)
	}
	return messages(list...)
}

// quartersOf counts a raw message without calls as quarters does.
func quartersOf(raw []byte) int {
	var m struct{ Content string }
	_ = json.Unmarshal(raw, &m)
	return quarters{}.Message(session.Content{Text: m.Content})
}

func TestAGatewayForwardsWhatTheProxyWould(t *testing.T) {
	for _, path := range []string{litellmPath, portkeyPath, compressPath} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			counts := fakeupstream.Options{CountTokens: quartersOf} // as the gateway, which is not told upstream's count
			proxied, plugged := newRig(t, setup{condenser: excerpting(), upstream: counts}), pluggedRig(t, setup{})
			shorter := 0
			for n := 1; n <= 41; n += 2 {
				list := turns("ships", n)
				proxied.ask(messages(list...))
				var want struct{ Messages any }
				must(t, json.Unmarshal(proxied.forwarded().Body, &want))
				got := history(t, path, plugged.plugIn(path, asked(path, list)), list)
				if !reflect.DeepEqual(got, want.Messages) {
					t.Fatalf("%d messages: forwarded %.300v, want %.300v", n, got, want.Messages)
				}
				if len(got.([]any)) < len(list) {
					shorter++
				}
			}
			if shorter < 10 || len(plugged.up.Requests()) > 0 {
				t.Errorf("condensed %d times, %d requests went upstream", shorter, len(plugged.up.Requests()))
			}
			if n := plugged.metric(`dewpoint_sessions_begun_total{tenant="default"}`); n != 1 {
				t.Errorf("%v sessions", n)
			}
			saved := `dewpoint_saved_tokens_total{model="gpt-4o",tenant="default"}`
			if got, want := plugged.metric(saved), proxied.metric(saved); got < want*0.95 || got > want*1.05 || want == 0 {
				t.Errorf("%v tokens saved, as a proxy %v", got, want)
			}
		})
	}
}

// TestNothingThatAGatewaySendsFailsItsRequest sends bodies that are damaged in a hundred ways.
func TestNothingThatAGatewaySendsFailsItsRequest(t *testing.T) {
	r := pluggedRig(t, setup{})
	for _, path := range []string{litellmPath, portkeyPath, compressPath, usagePath} {
		random := rand.New(rand.NewPCG(20, 26))
		whole := asked(path, turns("ships", 13))
		if path == usagePath {
			whole = `{"id":"x","usage":{"prompt_tokens":10,"completion_tokens":2}}`
		}
		for i := range 100 {
			damaged := []byte(whole)
			switch at := random.IntN(len(damaged)); i % 5 {
			case 0:
				damaged = damaged[:at]
			case 1:
				damaged[at] ^= byte(1 + random.IntN(255))
			case 2:
				damaged = append(damaged[:at], damaged[min(at+1+random.IntN(40), len(damaged)):]...)
			case 3:
				damaged = []byte(strings.NewReplacer(`"role"`, `"roll"`, `[{`, `{"x":[{`).Replace(whole[at:]))
			case 4:
				damaged = []byte(strings.Replace(whole, `"`, fmt.Sprintf(`"%c`, random.IntN(128)), 1+random.IntN(3)))
			}
			answer := r.plugIn(path, string(damaged))
			switch path {
			case litellmPath:
				if a := answer["action"]; a != "NONE" && a != "GUARDRAIL_INTERVENED" {
					t.Errorf("action %v for %.200q", a, damaged)
				}
			case portkeyPath:
				if answer["verdict"] != true {
					t.Errorf("verdict %v for %.200q", answer["verdict"], damaged)
				}
			}
		}
	}
	for _, body := range []string{"", "null", "[]", "{}", `{"messages":[]}`, `{"messages":{}}`, `{"input":"x"}`, strings.Repeat("[", 1<<16), `{"messages":[{"role":"user","content":"a"}],"token_budget":-1}`} {
		for _, path := range []string{litellmPath, portkeyPath, compressPath, usagePath} {
			r.plugIn(path, body)
		}
	}
}

func TestAGatewayIsAnsweredWhateverFails(t *testing.T) {
	away := func(t *testing.T) setup {
		store := &flaky{done: make(chan struct{}, 100)}
		store.fail(false, all()...)
		return setup{store: func(s session.Store) session.Store { store.Store = s; return store }}
	}
	for name, s := range map[string]func(t *testing.T) setup{
		"a store that is away":      away,
		"a registry that panics":    func(*testing.T) setup { return setup{sessions: panicking{}} },
		"a condenser that panics":   func(*testing.T) setup { return setup{condenser: panicking{}} },
		"a tokenizer that panics":   func(*testing.T) setup { return setup{tokens: panicking{}} },
		"a limit that is exceeded":  func(*testing.T) setup { return setup{tenants: one(func(t *proxy.Tenant) { t.Limits.Body = 100 })} },
		"a key that is not known":   func(*testing.T) setup { return setup{tenants: one(func(t *proxy.Tenant) { t.Anonymous = false })} },
		"a body that is too large":  func(*testing.T) setup { return setup{limits: func(l *proxy.Limits) { l.Body = 200 }} },
		"a server without a secret": func(*testing.T) setup { return setup{sessions: noSessions{}} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := pluggedRig(t, s(t))
			for _, path := range []string{litellmPath, portkeyPath} {
				list := turns("ships", 13)
				if got := history(t, path, r.plugIn(path, asked(path, list)), list); len(got.([]any)) != len(list) {
					t.Errorf("%s: %d messages of %d", path, len(got.([]any)), len(list))
				}
			}
			answer := r.plugIn(compressPath, messages(turns("ships", 13)...))
			if answer["skip_reason"] == nil && !strings.Contains(name, "panics") {
				t.Errorf("no reason in %v", answer)
			}
			panics := r.metric("dewpoint_panics_total")
			if (panics > 0) != strings.Contains(name, "panics") {
				t.Errorf("%v panics", panics)
			}
			r.atEnd("dewpoint_panics_total", panics)
		})
	}
}

// TestAGatewaysUsersAreApart: behind one key of a gateway, equal histories of two users are two sessions where no tenants are configured.
func TestAGatewaysUsersAreApart(t *testing.T) {
	r := pluggedRig(t, setup{})
	list := turns("ships", 3)
	for _, user := range []string{"one", "two", "one"} {
		r.plugIn(litellmPath, strings.Replace(litellm(list), "88dc", user, 1))
	}
	if n := r.metric(`dewpoint_sessions_begun_total{tenant="default"}`); n != 2 {
		t.Errorf("%v sessions, want 2", n)
	}
}

func TestAGatewaysClientNamesItsSession(t *testing.T) {
	r := pluggedRig(t, setup{})
	for _, body := range []string{
		strings.Replace(litellm(turns("ships", 1)), `"host":"h"`, `"x-litellm-session-id":"run-7"`, 1),
		strings.NewReplacer(`"host":"h"`, `"thread-id":"[present]"`, "7b0c", "run-7").Replace(litellm(turns("boats", 1))),
		litellm(turns("rafts", 1)),                                     // a random trace id names nothing
		strings.Replace(litellm(turns("rafts", 3)), "7b0c", "1234", 1), // so the next one continues it
	} {
		r.plugIn(litellmPath, body)
	}
	r.plugIn(compressPath, strings.Replace(messages(turns("kites", 1)...), `{`, `{"config":{"session_id":"run-7"},`, 1))
	r.plugIn(portkeyPath, strings.Replace(portkey(turns("balls", 1)), `"metadata":{}`, `"metadata":{"session_id":"run-7"}`, 1))
	named := 0
	sessions := r.sessionsOf(6)
	for _, s := range sessions {
		if s.HasKey("run-7") {
			named++
		}
	}
	if len(sessions) != 3 || named != 2 {
		t.Errorf("%d sessions, %d of them named run-7 (of LiteLLM's user, and of no user)", len(sessions), named)
	}
}

// sessionsOf returns the stored sessions once they have had so many requests: a request is stored after its answer.
func (r *rig) sessionsOf(requests int) []session.Session {
	r.t.Helper()
	var sessions []session.Session
	eventually(r.t, fmt.Sprintf("%d requests are stored", requests), func() bool {
		page, err := r.store.(session.Archive).Sessions(guard(r.t), session.SessionQuery{Limit: 10})
		must(r.t, err)
		sessions = page.Sessions
		stored := 0
		for _, s := range sessions {
			stored += s.Requests
		}
		return stored == requests
	})
	return sessions
}

func TestAGatewaysTenant(t *testing.T) {
	const key = keyMark + "team"
	r := pluggedRig(t, setup{tenants: func(base *url.URL) []*proxy.Tenant {
		return []*proxy.Tenant{{
			Tenant: engine.Tenant{Name: "team", Condenser: excerpting()}, Keys: [][sha256.Size]byte{sha256.Sum256([]byte(key))}, Upstream: proxy.UpstreamConfig{BaseURL: base, Unpaid: true},
		}}
	}})
	list := turns("ships", 13)
	if answer := r.plugIn(litellmPath, litellm(list)); answer["reason"] != "invalid_api_key" {
		t.Errorf("without a key: %v", answer)
	}
	if answer := r.plugIn(litellmPath, litellm(list), "x-api-key", key); answer["action"] != "GUARDRAIL_INTERVENED" {
		t.Errorf("with the key: %v", answer)
	}
	if n := r.metric(`dewpoint_sessions_begun_total{tenant="team"}`); n != 1 {
		t.Errorf("%v sessions of the tenant", n)
	}
}

// TestAGatewayNamesTheTenantOfItsClient: LiteLLM sends the SHA-256 of a virtual key, by which a tenant may be known here as well.
func TestAGatewayNamesTheTenantOfItsClient(t *testing.T) {
	const gateway, team = keyMark + "gateway", keyMark + "team"
	sum := func(key string) [][sha256.Size]byte { return [][sha256.Size]byte{sha256.Sum256([]byte(key))} }
	r := pluggedRig(t, setup{tenants: func(base *url.URL) []*proxy.Tenant {
		to := proxy.UpstreamConfig{BaseURL: base}
		return []*proxy.Tenant{
			{Tenant: engine.Tenant{Name: "gateway", Condenser: excerpting()}, Gateway: true, Keys: sum(gateway), Upstream: to},
			{Tenant: engine.Tenant{Name: "team", Condenser: excerpting()}, Keys: sum(team), Upstream: to},
		}
	}})
	body := strings.Replace(litellm(turns("ships", 3)), "88dc", fmt.Sprintf("%x", sum(team)[0]), 1)
	r.plugIn(litellmPath, body, "x-api-key", gateway)
	r.plugIn(litellmPath, litellm(turns("boats", 3)), "x-api-key", gateway) // a key of nobody here
	other := strings.Replace(litellm(turns("rafts", 3)), "88dc", fmt.Sprintf("%x", sum(gateway)[0]), 1)
	r.plugIn(litellmPath, other, "x-api-key", team) // the team is no gateway
	for tenant, want := range map[string]float64{"team": 2, "gateway": 1} {
		if n := r.metric(fmt.Sprintf(`dewpoint_sessions_begun_total{tenant=%q}`, tenant)); n != want {
			t.Errorf("%v sessions of %s, want %v", n, tenant, want)
		}
	}
}

// TestTrimsKeepTheRows: LiteLLM's headroom guardrail takes a list of another length for a failure.
func TestTrimsKeepTheRows(t *testing.T) {
	r := pluggedRig(t, setup{})
	list := turns("ships", 13)
	long := strings.Repeat("all of it 0123456789 ", 2000)
	list = append(list, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
		fmt.Sprintf(`{"role":"tool","tool_call_id":"c1","content":%q}`, long))
	body := strings.Replace(messages(list...), `{`, `{"config":{"mode":"ccr"},`, 1)
	for i := range 2 {
		answer := r.plugIn(compressPath, body)
		got := answer["messages"].([]any)
		last := got[15].(map[string]any)
		if len(got) != len(list) || last["tool_call_id"] != "c1" || len(last["content"].(string)) > len(long)/2 {
			t.Errorf("request %d: %d rows of %d, the result %.200v", i, len(got), len(list), last)
		}
		if before, after := answer["tokens_before"].(float64), answer["tokens_after"].(float64); after >= before/2 || answer["tokens_saved"] != before-after {
			t.Errorf("request %d: %v", i, answer)
		}
		list = append(list, say("assistant", "done"), say("user", "more"))
		body = strings.Replace(messages(list...), `{`, `{"config":{"mode":"ccr"},`, 1)
	}
}

func TestATokenBudgetCondenses(t *testing.T) {
	r := pluggedRig(t, setup{condenser: condense.Excerpts{Settings: condense.Settings{MaxTokens: 100000, KeepFirst: 1, MinimumProgress: 0.1}}})
	list := turns("ships", 41)
	if answer := r.plugIn(compressPath, messages(list...)); answer["tokens_saved"] != 0.0 || answer["compression_ratio"] != 1.0 {
		t.Errorf("without a budget: %v", answer["tokens_saved"])
	}
	answer := r.plugIn(compressPath, strings.Replace(messages(turns("boats", 41)...), `{`, `{"token_budget":3000,`, 1))
	if after := answer["tokens_after"].(float64); after > 3000 || answer["compression_ratio"].(float64) >= 1 {
		t.Errorf("%v tokens after, ratio %v", after, answer["compression_ratio"])
	}
}

func TestAGatewayReportsUsage(t *testing.T) {
	r := pluggedRig(t, setup{})
	r.plugIn(litellmPath, litellm(turns("ships", 13)))
	first := r.plugIn(compressPath, messages(turns("boats", 13)...))
	id := first["session"].(map[string]any)["request"].(string)
	for _, c := range []struct{ body, reason string }{
		{`{"id":"call-1","usage":{"prompt_tokens":1000,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":700}}}`, ""},
		{`{"id":"call-1","usage":{"prompt_tokens":1000,"completion_tokens":20}}`, "already_reported"},
		{`{"id":"` + id + `","usage":{"prompt_tokens":2000,"completion_tokens":30}}`, ""},
		{`{"id":"other","usage":{"prompt_tokens":1000}}`, "unknown_request"},
		{`{"id":"call-1","usage":{"total":1000}}`, "no_history"},
	} {
		answer := r.plugIn(usagePath, c.body)
		if got, _ := answer["reason"].(string); got != c.reason || answer["recorded"] != (c.reason == "") {
			t.Errorf("%s: %v", c.body, answer)
		}
	}
	for stage, want := range map[string]float64{"prompt": 3000, "cached": 700, "completion": 50} {
		if got := r.metric(fmt.Sprintf(`dewpoint_tokens_total{model="gpt-4o",stage=%q,tenant="default"}`, stage)); got != want {
			t.Errorf("%s: %v, want %v", stage, got, want)
		}
	}
}

// TestAGatewayReportsUsageOfTheTenantThatItNames: the report comes with the gateway's key, and counts for the team.
func TestAGatewayReportsUsageOfTheTenantThatItNames(t *testing.T) {
	const gateway, team = keyMark + "gateway", keyMark + "team"
	sum := func(key string) [][sha256.Size]byte { return [][sha256.Size]byte{sha256.Sum256([]byte(key))} }
	r := pluggedRig(t, setup{tenants: func(base *url.URL) []*proxy.Tenant {
		other := *base
		other.Path = "/other"
		return []*proxy.Tenant{
			{Tenant: engine.Tenant{Name: "gateway", Condenser: excerpting()}, Gateway: true, Keys: sum(gateway), Upstream: proxy.UpstreamConfig{BaseURL: base}},
			{Tenant: engine.Tenant{Name: "team", Condenser: excerpting()}, Keys: sum(team), Upstream: proxy.UpstreamConfig{BaseURL: &other}},
		}
	}})
	body := strings.Replace(litellm(turns("ships", 3)), "88dc", fmt.Sprintf("%x", sum(team)[0]), 1)
	r.plugIn(litellmPath, body, "x-api-key", gateway)
	const report = `{"id":"call-1","usage":{"prompt_tokens":1000,"completion_tokens":20}}`
	if answer := r.plugIn(usagePath, report, "x-api-key", team); answer["reason"] != "unknown_request" {
		t.Errorf("reported with the team's own key: %v", answer)
	}
	if answer := r.plugIn(usagePath, report, "x-api-key", gateway); answer["recorded"] != true {
		t.Errorf("reported with the gateway's key: %v", answer)
	}
	if n := r.metric(`dewpoint_tokens_total{model="gpt-4o",stage="prompt",tenant="team"}`); n != 1000 {
		t.Errorf("%v tokens of the team, want 1000", n)
	}
	if n := r.metric(`dewpoint_requests_total{code="internal_error",dialect="",model="gpt-4o",status="2xx",tenant="team"}`); n != 0 {
		t.Errorf("%v recorded reports count as failed", n)
	}
}
