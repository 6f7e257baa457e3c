package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// agent is a coding agent from npm, with a home directory and a working directory.
type agent struct {
	t             *testing.T
	command       []string // starts it, followed by a prompt
	again         []string // resumes its session, followed by a prompt
	environment   []string
	home, project string
}

// newAgent installs an agent. The variables are set in addition to those that all agents have.
func newAgent(t *testing.T, variables ...string) (a *agent, modules string) {
	t.Helper()
	node, npm := need(t, "node", "install Node.js 20 or newer"), need(t, "npm", "install npm")
	files := []string{"agents/package.json", "agents/package-lock.json", "agents/.npmrc"}
	dir := inCache(t, "agents", versionOf(t, node), files, func(dir string) {
		installBy(t, filepath.Join(dir, "agents"), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	a = &agent{t: t, home: t.TempDir(), project: t.TempDir()}
	a.environment = append(variables, "HOME="+a.home, "XDG_CONFIG_HOME="+a.home, "XDG_DATA_HOME="+a.home, "XDG_CACHE_HOME="+a.home, "XDG_STATE_HOME="+a.home,
		"PWD="+a.project, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	writeFile(t, a.project, "notes.txt", "alpha one\nbeta two\n")
	return a, filepath.Join(dir, "agents", "node_modules")
}

// platform is the platform in the names of npm's packages.
func platform() string {
	return runtime.GOOS + "-" + map[string]string{"amd64": "x64"}[runtime.GOARCH] + strings.TrimPrefix(runtime.GOARCH, "amd64")
}

// run runs the agent with a prompt and returns its output.
func (a *agent) run(prompt string) string { return a.do(a.command, prompt) }

// resume is run within the last session.
func (a *agent) resume(prompt string) string { return a.do(a.again, prompt) }

func (a *agent) do(command []string, prompt string) string {
	a.t.Helper()
	if _, err := os.Stat(command[0]); err != nil {
		a.t.Skipf("NOT TESTED: npm has no such agent for this machine: %v", err)
	}
	out, errs, err := runIn(a.t, a.project, a.environment, command[0], append(command[1:len(command):len(command)], prompt)...)
	if err != nil {
		a.t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	return out + errs
}

func newClaudeCode(t *testing.T, p *process, model string) *agent {
	t.Helper()
	a, modules := newAgent(t, "ANTHROPIC_BASE_URL=http://"+p.Addr, "ANTHROPIC_API_KEY=sk-client", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	program := filepath.Join(modules, "@anthropic-ai", "claude-code-"+platform(), "claude")
	a.command = []string{program, "--model", model, "--allowedTools", "Bash,Agent", "-p"}
	a.again = []string{program, "--model", model, "--allowedTools", "Bash,Agent", "--continue", "-p"}
	return a
}

// newOpencode returns an opencode that uses the API of one of Vercel's packages.
func newOpencode(t *testing.T, p *process, sdk string) *agent {
	t.Helper()
	a, modules := newAgent(t, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1")
	program := filepath.Join(modules, "opencode-"+platform(), "bin", "opencode")
	a.command, a.again = []string{program, "run"}, []string{program, "run", "--continue"}
	writeFile(t, a.project, "opencode.json", fmt.Sprintf(`{"model": "ours/a-model", "small_model": "ours/a-model", "permission": {"bash": "allow"},
"provider": {"ours": {"npm": %q, "options": {"baseURL": "%s/v1", "apiKey": "sk-client"},
"models": {"a-model": {"name": "Ours", "limit": {"context": 400000, "output": 8000}}}}}}`, sdk, "http://"+p.Addr))
	return a
}

func newPi(t *testing.T, p *process, api, path string) *agent {
	t.Helper()
	a, modules := newAgent(t, "PI_OFFLINE=1")
	node := filepath.Join(modules, "node-"+platform(), "bin", "node")
	program := filepath.Join(modules, "@earendil-works", "pi-coding-agent", "dist", "bundle", "cli.js")
	a.command = []string{node, program, "--provider", "ours", "--model", "a-model", "-p"}
	a.again = []string{node, program, "--provider", "ours", "--model", "a-model", "--continue", "-p"}
	dir := filepath.Join(a.home, ".pi", "agent")
	ok(t, os.MkdirAll(dir, 0o700))
	writeFile(t, dir, "models.json", fmt.Sprintf(`{"providers": {"ours": {"baseUrl": "%s%s", "api": %q, "apiKey": "sk-client",
"models": [{"id": "a-model", "reasoning": true, "contextWindow": 400000, "maxTokens": 8000}]}}}`, "http://"+p.Addr, path, api))
	return a
}

// agentSteps is the number of an agent's steps for a prompt, of which all but the last call a tool. agentPrompts is the number of
// prompts.
const agentSteps, agentPrompts = 12, 4

// shell returns the n-th call of an agent's tool for commands.
func shell(n int, tool string) fakeupstream.ToolCall {
	command := fmt.Sprintf("echo step %d; seq 1 200", n)
	return callOf(fmt.Sprintf("call_%d", n), tool, map[string]string{"command": command, "cmd": command, "description": "Counts"})
}

func callOf(id, tool string, arguments any) fakeupstream.ToolCall {
	return fakeupstream.ToolCall{ID: id, Name: tool, Arguments: string(encode(arguments))}
}

// modelOf returns the answers of an agent's model: calls of its shell, and a text after every few of them.
func modelOf(tool string) func(*fakeupstream.Request) fakeupstream.Answer {
	var asked atomic.Int32
	return func(r *fakeupstream.Request) fakeupstream.Answer {
		if !hasTools(r) {
			return fakeupstream.Answer{Content: "Counting"} // a title
		}
		n := int(asked.Add(1))
		if n%agentSteps == 0 {
			return fakeupstream.Answer{Content: allDone(n)}
		}
		return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{shell(n, tool)}}
	}
}

func allDone(steps int) string { return fmt.Sprintf("Finished after %d steps.", steps) }

func hasTools(r *fakeupstream.Request) bool {
	var tools []json.RawMessage
	return json.Unmarshal(r.Tools, &tools) == nil && len(tools) > 0
}

// work runs the agent with its prompts, each in a new process.
func (a *agent) work() {
	a.t.Helper()
	for n := range agentPrompts {
		do := a.resume
		if n == 0 {
			do = a.run
		}
		if said := do(fmt.Sprintf("Count the lines of notes.txt, time %d.", n)); !strings.Contains(said, allDone((n+1)*agentSteps)) {
			a.t.Fatalf("it said %s", said)
		}
	}
}

// TestAgents runs real agents through the proxy in each of their APIs, with several condensations, and lets them resume their
// sessions.
func TestAgents(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs real agents")
	}
	opencode := func(sdk string) func(*testing.T, *process) *agent {
		return func(t *testing.T, p *process) *agent { return newOpencode(t, p, sdk) }
	}
	pi := func(api, path string) func(*testing.T, *process) *agent {
		return func(t *testing.T, p *process) *agent { return newPi(t, p, api, path) }
	}
	// With this model it adds a system message at each step. Some of these it changes later, so thinking is not bound to them here.
	claude := func(t *testing.T, p *process) *agent { return newClaudeCode(t, p, "claude-fable-5-1") }
	for name, kind := range map[string]struct {
		seals fakeupstream.Seal
		tool  string
		start func(*testing.T, *process) *agent
	}{
		"Claude Code":           {"", "Bash", claude},
		"opencode in messages":  {fakeupstream.SealThinkingBlocks, "bash", opencode("@ai-sdk/anthropic")},
		"opencode in responses": {fakeupstream.SealResponsesDetails, "bash", opencode("@ai-sdk/openai")},
		"pi in messages":        {fakeupstream.SealThinkingBlocks, "bash", pi("anthropic-messages", "")},
		"pi in responses":       {fakeupstream.SealResponsesDetails, "bash", pi("openai-responses", "/v1")},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSetting(t, fakeupstream.Options{Seals: kind.seals, IsSummary: isSummary, Reply: modelOf(kind.tool)})
			a := kind.start(t, serve(t, "--config", s.ownModel(t, 20)))
			a.work()
			s.checkAgent(t, 60)
		})
	}
}

// TestClaudeCode runs the real Claude Code through the proxy, with a sub-agent and, at the end, a compaction of its own.
func TestClaudeCode(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make full runs real agents")
	}
	var delegated, parts atomic.Int32
	const task, record = "Count in parts, as the delegate.", "The lines were counted four times."
	work := modelOf("Bash")
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealThinkingBlocks, ByAuthor: true, IsSummary: isSummary, // as Sonnet 4.5's
		Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
			switch {
			case bytes.Contains(r.Messages[len(r.Messages)-1], []byte("detailed summary")):
				if !bytes.Contains(r.Body, []byte("echo step 5;")) {
					t.Errorf("the agent summarises a history that was condensed before: %d messages", len(r.Messages))
				}
				return fakeupstream.Answer{Content: "<summary>" + record + "</summary>"}
			case bytes.Contains(r.Messages[0], []byte(task)):
				if n := int(parts.Add(1)); n < agentSteps {
					return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{shell(1000+n, "Bash")}}
				}
				return fakeupstream.Answer{Content: "The parts are counted."}
			case hasTools(r) && delegated.Add(1) == 20:
				return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{callOf("call_agent", "Agent", map[string]any{
					"description": "Counts in parts", "prompt": task, "subagent_type": "general-purpose", "run_in_background": false,
				})}}
			default:
				return work(r)
			}
		},
	})
	a := newClaudeCode(t, serve(t, "--config", s.ownModel(t, 20)), "claude-sonnet-4-5")
	a.work()
	if parts.Load() != agentSteps {
		t.Errorf("the delegate took %d steps", parts.Load())
	}
	s.checkAgent(t, 60)
	a.resume("/compact")
	before := len(s.Upstream.Requests())
	if said := a.resume("Go on."); !strings.Contains(said, allDone((agentPrompts+1)*agentSteps)) {
		t.Errorf("after its own compaction it said %s", said)
	}
	for i, r := range s.Upstream.Requests()[before:] {
		if !bytes.Contains(r.Body, []byte(record)) && !r.Summary {
			t.Errorf("%d messages went upstream without the agent's own summary", len(r.Messages))
		}
		// The agent keeps its newest answer, whose thinking is bound to the history that it has just replaced. After a refusal, it sends
		// the answer without thinking.
		if r.Refused != nil && i > 0 {
			t.Errorf("%s was refused: %v", r.Path, r.Refused)
		}
	}
}

// checkAgent checks that no request of an agent was refused, that its history was condensed, and how many messages were forwarded at once,
// not counting system messages, which stay.
func (s *setting) checkAgent(t *testing.T, most int) {
	t.Helper()
	longest, summaries := 0, 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			t.Errorf("%s was refused: %v", r.Path, r.Refused)
		}
		if r.Summary {
			summaries++
			continue
		}
		isSystem := func(m json.RawMessage) bool { return bytes.Contains(m, []byte(`"role":"system"`)) }
		longest = max(longest, len(slices.DeleteFunc(slices.Clone(r.Messages), isSystem)))
	}
	t.Logf("%d requests, %d summaries, at most %d messages", len(s.Upstream.Requests()), summaries, longest)
	if summaries < 3 || longest > most {
		t.Errorf("%d summaries, %d messages were forwarded at once", summaries, longest)
	}
}
