package e2e

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// codex is the coding agent from npm, with a home and a folder to work in.
type codex struct {
	t             *testing.T
	program       string
	home, project string
}

func newCodex(t *testing.T, p *process, settings string) *codex {
	t.Helper()
	node, npm := need(t, "node", "install Node.js 20 or newer"), need(t, "npm", "install npm")
	files := []string{"codex/package.json", "codex/package-lock.json", "codex/.npmrc"}
	dir := inCache(t, "codex", versionOf(t, node), files, func(dir string) {
		installBy(t, filepath.Join(dir, "codex"), npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	})
	c := &codex{t, filepath.Join(dir, "codex", "node_modules", ".bin", "codex"), t.TempDir(), t.TempDir()}
	writeFile(t, c.home, "config.toml", fmt.Sprintf(`
model = "a-model-of-ours"
model_context_window = 400000
model_provider = "ours"
%s
[model_providers.ours]
name = "ours"
base_url = "%s/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
request_max_retries = 0
stream_max_retries = 0
`, settings, p.url()))
	writeFile(t, c.project, "notes.txt", "alpha one\nbeta two\n")
	return c
}

// builtIn has the agent speak to the proxy as its own provider: then it asks upstream for compactions.
func (c *codex) builtIn(p *process, settings string) {
	c.t.Helper()
	writeFile(c.t, c.home, "config.toml", fmt.Sprintf("model = \"gpt-5.1-codex\"\nmodel_context_window = 400000\nopenai_base_url = \"%s/v1\"\n%s\n", p.url(), settings))
	login := []string{"-c", "echo sk-client | " + c.program + " login --with-api-key"}
	if out, errs, err := runIn(c.t, c.project, []string{"CODEX_HOME=" + c.home}, "sh", login...); err != nil {
		c.t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
}

// run has the agent do something, and gives what it says.
func (c *codex) run(args ...string) string {
	c.t.Helper()
	environment := []string{"CODEX_HOME=" + c.home, "OPENAI_API_KEY=sk-client", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1"}
	always := []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}
	out, errs, err := runIn(c.t, c.project, environment, c.program, append(always, args...)...)
	if err != nil {
		c.t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	return out + errs
}

// TestCodex has the real Codex work through the proxy for 40 steps and more, condensed several times, and go on where it was.
func TestCodex(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make slow runs the real Codex")
	}
	var asked atomic.Int32
	const steps = 40
	s := newSetting(t, fakeupstream.Options{
		Seals: fakeupstream.SealResponsesDetails, IsSummary: isSummary,
		Reply: func(*fakeupstream.Request) fakeupstream.Answer {
			n := int(asked.Add(1))
			if n%(steps+1) == 0 {
				return fakeupstream.Answer{Content: fmt.Sprintf("Finished after %d steps.", n)}
			}
			command := string(encode(map[string]string{"cmd": fmt.Sprintf("echo step %d; seq 1 200", n)}))
			return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: fmt.Sprintf("call_%d", n), Name: "exec_command", Arguments: command}}}
		},
	})
	p := serve(t, "--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(`
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: %q}
store: %s
condenser: {type: llm, max_size: 30, min_tokens: 0, wait: deadline, background_at: 0}
shutdown: {delay: 0s, timeout: 1m}
`, s.url, embedded(newStore(t)))))
	c := newCodex(t, p, "")
	if said := c.run("Count the lines of notes.txt."); !strings.Contains(said, "Finished after 41 steps.") {
		t.Fatalf("it said %s", said)
	}
	if said := c.run("resume", "--last", "Count them again."); !strings.Contains(said, "Finished after 82 steps.") {
		t.Fatalf("it said %s", said)
	}
	longest, summaries := 0, 0
	for _, r := range s.Upstream.Requests() {
		if r.Refused != nil {
			t.Errorf("%s was refused: %v", r.Path, r.Refused)
		}
		if r.Summary {
			summaries++
		}
		longest = max(longest, len(r.Messages))
	}
	t.Logf("%d requests, %d summaries, at most %d items", len(s.Upstream.Requests()), summaries, longest)
	if summaries < 3 || longest > 60 {
		t.Errorf("%d summaries, %d items were forwarded at once", summaries, longest)
	}
}

// TestCodexCompacts has the real Codex compact its history several times, where upstream knows how to and where it does not.
func TestCodexCompacts(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: make slow runs the real Codex")
	}
	for name, knows := range map[string]bool{"upstream compacts": true, "the proxy compacts": false} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			s := newSetting(t, fakeupstream.Options{
				Seals: fakeupstream.SealResponsesDetails,
				Reply: func(r *fakeupstream.Request) fakeupstream.Answer {
					if asksForRecord(r) {
						return fakeupstream.Answer{Content: "CURRENT_STATE: counting goes on."}
					}
					n := int(asked.Add(1))
					if n == 40 {
						return fakeupstream.Answer{Content: "Finished."}
					}
					command := string(encode(map[string]string{"cmd": fmt.Sprintf("echo step %d; seq 1 200", n)}))
					return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: fmt.Sprintf("call_%d", n), Name: "exec_command", Arguments: command}}}
				},
			})
			if !knows {
				s.Upstream.RefuseCompaction()
			}
			p := serve(t, "--config", s.configAt(t, embedded(newStore(t)), 1000))
			c := newCodex(t, p, "")
			c.builtIn(p, "model_auto_compact_token_limit = 14000")
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
				if bytes.Contains(r.Body, []byte("counting goes on")) || bytes.Contains(r.Body, []byte(`"compacted.`)) {
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
