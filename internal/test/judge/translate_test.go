package judge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// TestTranslate: a run has the same steps, system prompt, answers and tools in the other protocols.
func TestTranslate(t *testing.T) {
	raw := func(text string) json.RawMessage { return json.RawMessage(text) }
	run := replay.Run{
		Name: "run", Tools: raw(`[{"type":"function","function":{"name":"look","description":"Looks.","parameters":{"type":"object"}}}]`),
		Messages: []json.RawMessage{
			raw(`{"role":"system","content":"You help."}`), raw(`{"role":"user","content":"Fix it."}`),
			raw(`{"role":"assistant","content":"I look.","tool_calls":[{"id":"A","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"B","type":"function","function":{"name":"look","arguments":"{}"}}]}`),
			raw(`{"role":"tool","tool_call_id":"A","content":"one"}`), raw(`{"role":"tool","tool_call_id":"B","content":"two"}`),
		},
		Final: raw(`{"role":"assistant","content":"Fixed."}`),
	}
	for _, protocol := range []replay.Protocol{replay.ProtocolChat, replay.ProtocolMessages, replay.ProtocolResponses} {
		got, err := Translate(run, protocol)
		if err != nil {
			t.Fatal(err)
		}
		calls := got.Calls()
		if len(calls) != 2 || !strings.Contains(string(calls[0].Answer), "I look.") || !strings.Contains(string(calls[1].Answer), "Fixed.") {
			t.Errorf("%q: %d steps: %s", protocol, len(calls), got.Messages)
		}
		if !strings.Contains(string(got.Tools), `"look"`) || !strings.Contains(string(got.System)+string(got.Messages[0]), "You help.") {
			t.Errorf("%q: tools %s, system %s", protocol, got.Tools, got.System)
		}
	}
	if _, err := Translate(run, "gopher"); err == nil {
		t.Error("an unknown protocol was taken")
	}
}
