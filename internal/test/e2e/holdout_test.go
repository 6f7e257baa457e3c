package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/session/sessiontest"
)

// price is the price of the models in a holdout test, per million tokens.
const price = "price: {input: 10, cached_input: 1, cache_write: 10, output: 0}"

type heldArm struct {
	Sessions, Steps int
	Unpriced        int `json:"unpriced_requests"`
	USD             float64
}

// account returns the account of the only tenant from the admin API.
func (p *process) account() (a struct {
	Condensed heldArm
	HeldOut   heldArm `json:"held_out"`
	Verdict   string
}) {
	p.t.Helper()
	var list struct{ Holdouts []json.RawMessage }
	ok(p.t, json.Unmarshal(p.administer(http.MethodGet, "/holdouts", http.StatusOK), &list))
	if len(list.Holdouts) != 1 {
		p.t.Fatalf("holdouts: %s", list.Holdouts)
	}
	ok(p.t, json.Unmarshal(list.Holdouts[0], &a))
	return a
}

// conversation is the label of a conversation in the holdout test.
var conversation = regexp.MustCompile(`This is (run|sub-agent) \d\d\.`)

// TestHoldout: a share of sessions is held out, with their forks and sub-agents, whichever replica serves them and after a
// restart, and the accounts of both arms equal upstream's charges.
func TestHoldout(t *testing.T) {
	const sessions, rounds = 24, 14
	s := newSetting(t, fakeupstream.Options{})
	config := writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s}}
models: {%s: {%s}, %s: {%s}}
condenser: {type: llm, llm_config: cheap, max_size: %d, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
holdout: 0.5
shutdown: {delay: 0s, timeout: 1m}
`, s.url, inRedis(sessiontest.StartRedis(t).Addr), judge.Summariser, judge.Model, price, judge.Summariser, price, maxSize))
	replicas := [2]*process{serve(t, "--config", config), serve(t, "--config", config)}
	say := func(key, parent string, messages []json.RawMessage, n int) string {
		a := send(t, replicas[n%2], body(messages), http.Header{"X-Session-Id": {key}, "X-Parent-Session-Id": {parent}})
		var got struct {
			Choices []struct{ Message json.RawMessage }
		}
		ok(t, json.NewDecoder(a.Body).Decode(&got))
		return string(got.Choices[0].Message)
	}
	user := func(of string, round int) json.RawMessage {
		return encode(map[string]any{"role": "user", "content": fmt.Sprintf("This is %s. Question %d. %s", of, round, strings.Repeat("The sea is deep. ", 40))})
	}
	talk := func(key, parent, of string, n int) {
		var history []json.RawMessage
		for round := range rounds {
			if round == rounds/2 && n == 2 && parent == "" {
				replicas[0].terminate()
				wantExit(t, replicas[0], 0)
				replicas[0] = serve(t, "--config", config)
			}
			history = append(history, user(of, round))
			history = append(history, json.RawMessage(say(key, parent, history, n+round)))
		}
		fork := append(slices.Clip(history[:len(history)-2]), user(of, 99))
		say(key, parent, fork, n)
	}
	for n := range sessions {
		key := fmt.Sprintf("key-%d", n)
		talk(key, "", fmt.Sprintf("run %02d.", n), n)
		talk(key+"-sub", key, fmt.Sprintf("sub-agent %02d.", n), n)
	}
	count := encode(map[string]any{"model": "claude-x", "messages": []any{map[string]string{"role": "user", "content": "How long is this?"}}})
	sendTo(t, replicas[0], "/messages/count_tokens", count, http.Header{"X-Session-Id": {"key-0"}}) // costs nothing, and is not a step
	arms := map[bool]*heldArm{false: {}, true: {}}                                                  // by whether they are held out
	condensed := map[string]bool{}
	of := map[string][]fakeupstream.Request{} // requests by their conversation
	for _, r := range s.Upstream.Requests() {
		if name := conversation.FindString(r.Text()); name != "" {
			of[name] = append(of[name], r)
			if strings.Contains(string(r.Body), "dewpoint_record") && !r.Summary {
				condensed[name] = true
			}
		}
	}
	for n := range sessions {
		run, sub := fmt.Sprintf("This is run %02d.", n), fmt.Sprintf("This is sub-agent %02d.", n)
		held := !condensed[run] && !condensed[sub]
		if condensed[run] != condensed[sub] {
			t.Errorf("session %d and its sub-agent are not in one arm", n)
		}
		arm := arms[held]
		arm.Sessions++
		for _, r := range slices.Concat(of[run], of[sub]) {
			arm.USD += float64(10*(r.PromptTokens-r.CachedTokens)+r.CachedTokens) / 1e6
			if !r.Summary {
				arm.Steps++
			}
		}
	}
	if arms[true].Sessions < sessions/4 || arms[false].Sessions < sessions/4 {
		t.Errorf("%d sessions are held out, %d are not", arms[true].Sessions, arms[false].Sessions)
	}
	for _, p := range replicas { // the last charges may be recorded after the client has its answer
		got := p.account()
		for range 1000 {
			if got.Condensed.Steps+got.HeldOut.Steps == arms[true].Steps+arms[false].Steps {
				break
			}
			got = p.account()
		}
		for held, arm := range map[bool]heldArm{true: got.HeldOut, false: got.Condensed} {
			want := *arms[held]
			if math.Abs(arm.USD-want.USD) > 1e-6 || arm.Sessions != want.Sessions || arm.Steps != want.Steps || arm.Unpriced != 0 {
				t.Errorf("held out %v: %+v, want %+v", held, arm, want)
			}
		}
		if got.Verdict != "not known yet" {
			t.Errorf("of %d sessions is claimed: %s", sessions, got.Verdict)
		}
	}
	if line := fmt.Sprintf(`dewpoint_holdout_sessions{arm="held_out",tenant="default"} %d`, arms[true].Sessions); !slices.Contains(replicas[1].metrics(), line) {
		t.Errorf("no metric %s", line)
	}
}
