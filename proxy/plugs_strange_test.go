package proxy_test

import (
	"reflect"
	"strings"
	"testing"
)

// TestWhatLiteLLMSendsBesidesHistoriesIsLeftAlone: its guardrail is also asked about answers, texts without a history, and empty histories.
func TestWhatLiteLLMSendsBesidesHistoriesIsLeftAlone(t *testing.T) {
	r := pluggedRig(t, setup{})
	whole := litellm(turns("ships", 13))
	empty := litellm(nil)
	for name, c := range map[string]struct{ body, reason string }{
		"an answer":            {strings.Replace(whole, `"input_type":"request"`, `"input_type":"response"`, 1), "not_a_request"},
		"texts only":           {strings.Replace(empty, `"structured_messages":[]`, `"structured_messages":null`, 1), "no_history"},
		"texts, and no list":   {strings.Replace(empty, `"structured_messages":[],`, ``, 1), "no_history"},
		"a list of no objects": {strings.Replace(empty, `"structured_messages":[]`, `"structured_messages":[1,"a"]`, 1), "no_history"},
		"an unknown kind":      {strings.Replace(whole, `"input_type":"request"`, `"input_type":7`, 1), "not_a_request"},
	} {
		answer := r.plugIn(litellmPath, c.body)
		if answer["action"] != "NONE" || answer["reason"] != c.reason {
			t.Errorf("%s: %v, want the reason %s", name, answer, c.reason)
		}
	}
	if answer := r.plugIn(litellmPath, empty); answer["action"] != "NONE" {
		t.Errorf("an empty history: %v", answer)
	}
	if n := r.metric(`dewpoint_sessions_begun_total{tenant="default"}`); n > 1 {
		t.Errorf("%v sessions", n)
	}
}

// TestImagesAndToolsOfAGatewayDoNotDisturb: images beside the history, other tools from one request to the next, and another content type.
func TestImagesAndToolsOfAGatewayDoNotDisturb(t *testing.T) {
	plain, odd := pluggedRig(t, setup{}), pluggedRig(t, setup{})
	list := turns("ships", 21)
	want := history(t, litellmPath, plain.plugIn(litellmPath, litellm(list)), list)
	for _, tools := range []string{`[{"type":"function","function":{"name":"f","parameters":{}}}]`, `[]`, `null`} {
		body := strings.NewReplacer(`"images":null`, `"images":["data:image/png;base64,AAAA"]`, `"tools":null`, `"tools":`+tools).Replace(litellm(list))
		got := history(t, litellmPath, odd.plugIn(litellmPath, body, "Content-Type", "text/plain"), list)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("tools %s: forwarded %.300v, want %.300v", tools, got, want)
		}
	}
}

// TestARetryOfAGatewayGetsTheSameHistory: LiteLLM asks again with the same call id if the provider failed.
func TestARetryOfAGatewayGetsTheSameHistory(t *testing.T) {
	r := pluggedRig(t, setup{})
	list := turns("ships", 21)
	first := r.plugIn(litellmPath, litellm(list))
	for range 3 {
		if again := r.plugIn(litellmPath, litellm(list)); !reflect.DeepEqual(again, first) {
			t.Errorf("again: %.300v, first %.300v", again, first)
		}
	}
	if first["action"] != "GUARDRAIL_INTERVENED" || r.metric(`dewpoint_sessions_begun_total{tenant="default"}`) != 1 {
		t.Errorf("action %v, %v sessions", first["action"], r.metric(`dewpoint_sessions_begun_total{tenant="default"}`))
	}
	if answer := r.plugIn(usagePath, `{"id":"call-1","usage":{"prompt_tokens":100}}`); answer["recorded"] != true {
		t.Errorf("the report of the last try: %v", answer)
	}
}

// TestUsageIsTakenFromItsGatewayOnly: who does not send the key of the gateway reports nothing about its requests.
func TestUsageIsTakenFromItsGatewayOnly(t *testing.T) {
	r := pluggedRig(t, setup{})
	r.plugIn(litellmPath, litellm(turns("ships", 13)), "x-api-key", keyMark+"gateway")
	report := `{"id":"call-1","usage":{"prompt_tokens":1000,"completion_tokens":20}}`
	if answer := r.plugIn(usagePath, report, "x-api-key", keyMark+"stranger"); answer["reason"] != "unknown_request" {
		t.Errorf("a stranger's report: %v", answer)
	}
	if answer := r.plugIn(usagePath, report, "x-api-key", keyMark+"gateway"); answer["recorded"] != true {
		t.Errorf("the gateway's report: %v", answer)
	}
}

// TestHeadroomsRowsComeBackInPlace: LiteLLM's headroom guardrail sends results without the calls that asked for them, and puts each row back by its place.
func TestHeadroomsRowsComeBackInPlace(t *testing.T) {
	r := pluggedRig(t, setup{})
	long := strings.Repeat("all of it 0123456789 ", 2000)
	rows := []string{say("user", "begin"), `{"role":"tool","tool_call_id":"c1","content":"` + long + `"}`, `{"role":"tool","tool_call_id":"c2","content":"short"}`}
	answer := r.plugIn(compressPath, strings.Replace(messages(rows...), `{`, `{"config":{"mode":"ccr"},`, 1), "x-headroom-affinity", "a1b2")
	got, _ := answer["messages"].([]any)
	if len(got) != len(rows) {
		t.Fatalf("%d rows of %d: %.300v", len(got), len(rows), answer)
	}
	middle := got[1].(map[string]any)
	if middle["tool_call_id"] != "c1" || len(middle["content"].(string)) > len(long)/2 || got[2].(map[string]any)["content"] != "short" {
		t.Errorf("rows %.300v", got)
	}
}

// TestAgentgatewayCanUseEachAnswer: it takes an answer without messages, or with null, for "unchanged", and refuses an empty list and rows that
// are no objects.
func TestAgentgatewayCanUseEachAnswer(t *testing.T) {
	r := pluggedRig(t, setup{})
	for name, body := range map[string]string{
		"a history":           messages(turns("ships", 21)...),
		"blocks of Anthropic": `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"}]}],"model":"m"}`,
		"one message":         messages(say("user", "hello")),
		"without a model":     `{"messages":[` + say("user", "hello") + `]}`,
		"no role":             `{"messages":[{"content":"x"}],"model":"m"}`,
		"a budget of nothing": `{"messages":[` + say("user", "hello") + `],"token_budget":0}`,
	} {
		answer := r.plugIn(compressPath, body)
		list, is := answer["messages"].([]any)
		if answer["messages"] == nil {
			continue
		}
		if !is || len(list) == 0 {
			t.Errorf("%s: %.300v", name, answer)
		}
		for _, row := range list {
			if _, is := row.(map[string]any); !is {
				t.Errorf("%s: a row is %v", name, row)
			}
		}
	}
	if answer := r.plugIn(compressPath, messages(turns("boats", 21)...)); len(answer["messages"].([]any)) >= 21 {
		t.Errorf("nothing was condensed: %v", answer["transforms_applied"])
	}
}
