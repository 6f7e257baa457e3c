package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// askToBuild sends a conversation that is due and names a few facts.
func askToBuild(t *testing.T, p *process) (o outcome) {
	t.Helper()
	facts := [...]string{"Port src/parser/lexer.go. Never touch the v1 endpoints.", "lexer.go has 1,204 lines", "the commit is 3f2a9bc0d1e2", "readToken fails"}
	var messages []any
	for n := range 21 {
		content := fmt.Sprintf("%s. %s", facts[n%len(facts)], strings.Repeat("more of it ", 60))
		messages = append(messages, map[string]string{"role": []string{"user", "assistant"}[n%2], "content": content})
	}
	return try(t, p, "/chat/completions", "build", map[string]any{"model": "gpt-4o", "max_tokens": 100, "messages": messages})
}

// grounding returns a configuration with a condenser of the type.
func (s *setting) grounding(t *testing.T, kind string) string {
	t.Helper()
	return writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
llms: {cheap: {model: %s}}
condenser: {type: %s, llm_config: cheap, max_size: 10, min_tokens: 0, wait: deadline, deadline: 1m, background_at: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)), judge.Summariser, kind))
}

// sentUpstream returns the newest request that was not the summariser's.
func sentUpstream(s *setting) string {
	text := ""
	for _, r := range s.Upstream.Requests() {
		if r.Model != judge.Summariser {
			text = string(r.Body)
		}
	}
	return text
}

// TestARecordIsGrounded: a line that names what the summariser was not shown is never forwarded. The share of lines that stayed is reported in
// the log, the metrics and the API, for each type that has a model write a record.
func TestARecordIsGrounded(t *testing.T) {
	t.Parallel()
	for kind, answer := range map[string]fakeupstream.Answer{
		"llm": {Content: "USER_CONTEXT: \"Never touch the v1 endpoints\"\nCODE_STATE: lexer.go, 1204 lines\nVERSION_CONTROL_STATUS: 3f2a9bc\n" +
			"TESTS: readToken fails\nNEXT_STEP: fix billing/invoice.go:88, 30 of 31 pass"},
		"structured_summary": {ToolCalls: []fakeupstream.ToolCall{{ID: "call_1", Name: "create_state_summary", Arguments: `{` +
			`"user_context": "\"Never touch the v1 endpoints\"", "completed_tasks": "", "pending_tasks": ["fix billing/invoice.go:88", "1 of 2"],` +
			`"current_state": "lexer.go, 1204 lines", "commits_made": "3f2a9bc", "failing_tests": "readToken"}`}}},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Summarise: func(*fakeupstream.Request) fakeupstream.Answer { return answer }})
			p := serve(t, "--config", s.grounding(t, kind))
			o := askToBuild(t, p)
			if sent := sentUpstream(s); !strings.Contains(o.Get("X-Dewpoint-Condensed"), "summary") || !strings.Contains(sent, "1204 lines") || strings.Contains(sent, "invoice") {
				t.Errorf("%v, sent %s", o.Header, sent)
			}
			if !strings.Contains(p.log.String(), `"grounded":"4 of 5"`) {
				t.Error("the log does not tell the share")
			}
			wantMetric(t, p, `dewpoint_record_lines_total{outcome="grounded",tenant="default"} 4`)
			wantMetric(t, p, `dewpoint_record_lines_total{outcome="struck",tenant="default"} 1`)
			var list struct{ Condensations []struct{ Grounded string } }
			path := "/sessions/" + o.Get("X-Dewpoint-Session") + "/threads/" + o.Get("X-Dewpoint-Thread") + "/condensations"
			ok(t, json.Unmarshal(p.administer(http.MethodGet, path, http.StatusOK), &list))
			if len(list.Condensations) != 1 || list.Condensations[0].Grounded != "4 of 5" {
				t.Errorf("the API has %+v", list)
			}
		})
	}
}

// TestWhatIsNoRecordHidesNothing: a reply that repeats the instructions, or tells mostly of what the summariser was not shown.
func TestWhatIsNoRecordHidesNothing(t *testing.T) {
	t.Parallel()
	for cause, reply := range map[string]func(r *fakeupstream.Request) string{
		"malformed": func(r *fakeupstream.Request) string { // the end of the instructions, where the example is
			lines := strings.Split(strings.TrimSpace(r.Text()[:strings.Index(r.Text(), "<dewpoint_")]), "\n")
			return strings.Join(lines[max(len(lines)-8, 0):], "\n")
		},
		"ungrounded": func(*fakeupstream.Request) string {
			return "USER_CONTEXT: \"Add OAuth2 login without touching the old paths\"\nTESTS: 841 pass; TestRefresh fails\nCHANGES: auth/login.go: readToken\nNEXT_STEP: auth/token.go:88"
		},
	} {
		t.Run(cause, func(t *testing.T) {
			t.Parallel()
			s := newSetting(t, fakeupstream.Options{Summarise: func(r *fakeupstream.Request) fakeupstream.Answer {
				return fakeupstream.Answer{Content: reply(r)}
			}})
			p := serve(t, "--config", s.grounding(t, "llm"))
			o := askToBuild(t, p)
			if got := o.Get("X-Dewpoint-Condense-Failed"); got != cause || o.Get("X-Dewpoint-Condensed") != "" {
				t.Errorf("failed %q, condensed %q", got, o.Get("X-Dewpoint-Condensed"))
			}
			if sent := sentUpstream(s); strings.Contains(sent, "dewpoint_record") || strings.Contains(sent, "NEXT_STEP") {
				t.Errorf("sent %s", sent)
			}
		})
	}
}
