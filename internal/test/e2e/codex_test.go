package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// newCodex configures Codex with the proxy as a custom provider.
func newCodex(t *testing.T, p *process) *agent {
	t.Helper()
	return codexWith(t, fmt.Sprintf(`
model = "a-model-of-ours"
model_context_window = 400000
model_provider = "ours"
[model_providers.ours]
name = "ours"
base_url = "%s/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
`, "http://"+p.Addr))
}

// newBuiltInCodex configures Codex with the proxy as its built-in provider, from which it requests compactions.
func newBuiltInCodex(t *testing.T, p *process, settings string) *agent {
	t.Helper()
	a := codexWith(t, fmt.Sprintf("model = \"gpt-5.1-codex\"\nmodel_context_window = 400000\nopenai_base_url = \"%s/v1\"\n%s\n", "http://"+p.Addr, settings))
	login := fmt.Sprintf("echo sk-client | '%s' login --with-api-key", a.command[0])
	if out, errs, err := runIn(t, a.project, a.environment, "sh", "-c", login); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	return a
}

func codexWith(t *testing.T, settings string) *agent {
	t.Helper()
	a, modules := newAgent(t, "OPENAI_API_KEY=sk-client")
	a.environment = append(a.environment, "CODEX_HOME="+a.home)
	writeFile(t, a.home, "config.toml", settings)
	a.command = []string{filepath.Join(modules, ".bin", "codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}
	a.again = append(a.command[:len(a.command):len(a.command)], "resume", "--last")
	return a
}

// TestCodex runs the real Codex through the proxy with a sub-agent, with several condensations, and lets it resume its session.
func TestCodex(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs the real Codex")
	}
	var delegated, parts atomic.Int32
	work := modelOf("exec_command")
	delegate := func(name string, arguments any) fakeupstream.Answer {
		return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{callOf("call_"+name, name, arguments)}}
	}
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealResponsesDetails, IsSummary: isSummary,
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			if r.Header.Get("X-Openai-Subagent") != "" {
				if n := int(parts.Add(1)); n < agentSteps {
					return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{shell(1000+n, "exec_command")}}
				}
				return fakeupstream.Answer{Content: "The parts are counted."}
			}
			switch delegated.Add(1) {
			case 20:
				return delegate("spawn_agent", map[string]string{"message": "Count in parts."})
			case 21:
				return delegate("wait_agent", map[string][]string{"targets": {spawned(t, r)}})
			default:
				return work(r)
			}
		},
	})
	newCodex(t, serve(t, "--config", s.ownModel(t, 20))).work()
	if parts.Load() != agentSteps {
		t.Errorf("the delegate took %d steps", parts.Load())
	}
	s.checkAgent(t, 60)
}

// TestCodexAndHiddenTools runs the real Codex with a model that calls tools unknown to Codex, alone and together with its own.
func TestCodexAndHiddenTools(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs the real Codex")
	}
	var asked atomic.Int32
	work := modelOf("exec_command")
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealResponsesDetails, IsSummary: isSummary,
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			n := int(asked.Add(1))
			if !bytes.Contains(r.Tools, []byte(`"recall"`)) {
				return work(r)
			}
			hidden := callOf(fmt.Sprintf("call_hidden_%d", n), "recall", map[string]string{"query": "step 1"})
			switch n % 4 {
			case 1:
				return fakeupstream.Answer{Content: "Let me see.", ToolCalls: []fakeupstream.ToolCall{hidden}}
			case 2:
				a := work(r)
				if len(a.ToolCalls) > 0 {
					a.ToolCalls = append([]fakeupstream.ToolCall{hidden}, a.ToolCalls...)
				}
				return a
			}
			return work(r)
		},
	})
	newCodex(t, serve(t, "--config", s.write(t, embedded(newStore(t)), "max_size: 20, agent_request: true, recall: true", "{delay: 0s, timeout: 1m}"))).work()
	s.checkAgent(t, 100)
	shown := 0
	for _, r := range s.Upstream.Requests() {
		shown = max(shown, bytes.Count(r.Body, []byte(`"call_id":"call_hidden_`)))
	}
	if shown < 4 {
		t.Errorf("upstream was shown %d calls and outputs at the most", shown)
	}
}

// spawned returns the id of the agent that the last call started.
func spawned(t *testing.T, r *fakeupstream.Request) string {
	t.Helper()
	var result struct{ Output string }
	var agent struct {
		ID string `json:"agent_id"`
	}
	ok(t, json.Unmarshal(r.Messages[len(r.Messages)-1], &result))
	ok(t, json.Unmarshal([]byte(result.Output), &agent))
	return agent.ID
}

// TestCodexCompacts has the real Codex compact its history several times, with an upstream that supports compaction, and with one that does
// not and whose model writes a record of the history or refuses to.
func TestCodexCompacts(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs the real Codex")
	}
	for name, record := range map[string]string{"upstream compacts": "", "the proxy compacts": "CURRENT_STATE: counting goes on.", "excerpts": "No."} {
		t.Run(name, func(t *testing.T) {
			knows := record == ""
			var asked atomic.Int32
			s := newSetting(t, fakeupstream.Options{
				Seals: fakeupstream.SealResponsesDetails,
				Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
					if asksForRecord(r) {
						return fakeupstream.Answer{Content: record}
					}
					n := int(asked.Add(1))
					if n == 40 {
						return fakeupstream.Answer{Content: "Finished."}
					}
					return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{shell(n, "exec_command")}}
				},
			})
			if !knows {
				s.Upstream.RefuseCompaction()
			}
			p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
			c := newBuiltInCodex(t, p, "model_auto_compact_token_limit = 14000")
			if said := c.run("Count the lines of notes.txt."); !strings.Contains(said, "Finished.") {
				t.Fatalf("it said %s", said)
			}
			refused, triggers, records, forwarded := 0, 0, 0, 0
			for _, r := range s.Upstream.Requests() {
				if r.Refused != nil {
					refused++
				}
				if asksForRecord(&r) {
					records++
				}
				triggers += bytes.Count(r.Body, []byte(`"compaction_trigger"`))
				if bytes.Contains(r.Body, []byte("counting goes on")) || bytes.Contains(r.Body, []byte("messages were removed without a summary")) || bytes.Contains(r.Body, []byte(`"compacted.`)) {
					forwarded++
				}
			}
			t.Logf("%d requests: %d refused, %d triggers, %d records, %d behind a compaction", len(s.Upstream.Requests()), refused, triggers, records, forwarded)
			switch {
			case forwarded < 15:
				t.Errorf("%d requests went on behind a compaction", forwarded)
			case knows && (refused > 0 || records > 0 || triggers < 2):
				t.Errorf("%d refused, %d triggers, %d records", refused, triggers, records)
			case !knows && (refused != 1 || triggers != 1 || records < 2):
				t.Errorf("%d refused, %d triggers, %d records", refused, triggers, records)
			}
		})
	}
}
