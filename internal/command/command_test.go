package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// command runs a command line and returns its exit code and output.
func command(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), args, &o, &e)
	return code, o.String(), e.String()
}

func TestExitCodes(t *testing.T) {
	f := func(want int, says string, args ...string) {
		t.Helper()
		code, out, errs := command(t, args...)
		if code != want || !strings.Contains("\n"+out+errs, says) {
			t.Errorf("%v: exit code %d, want %d; wrote %q, want %q in it", args, code, want, out+errs, says)
		}
	}
	f(exitOK, "Usage:", "help")
	f(exitOK, "Usage:", "--help")
	f(exitOK, "\ndewpoint "+version, "version")
	f(exitOK, "\ndewpoint "+version, "--version")
	f(exitOK, "\ndewpoint "+version, "-v")
	f(exitOK, "\n                      all    5.7 TB   3,930,000,720\n", "size", "--sessions", "1000000")
	f(exitUsage, "at least 1", "size", "--days", "0")
	f(exitUsage, "unknown command", "sevre")
	f(exitUsage, "not defined", "serve", "--lisen", "x")
	f(exitUsage, "unexpected argument", "serve", "x")
	f(exitUsage, "listen", "--listen", "nowhere")
	f(exitUsage, "upstream.base_url: has no version: write it as https://api.anthropic.com/v1 (--upstream)", "--upstream", "https://api.anthropic.com/")
	f(exitUsage, "upstream.base_url: ends with /chat/completions, ", "--upstream", "http://127.0.0.1:1/v1/chat/completions/")
	f(exitUsage, "upstream.api_key: begins with $", "check-config", write(t, "dollar.yaml", "upstream: {api_key: $OPENAI_KEY}"))
	f(exitUsage, "one file", "check-config")
	f(exitUsage, "no such file", "check-config", "missing.yaml")
	f(exitUsage, "check-store was removed", "check-store", "missing.db")
	f(exitUsage, "recorded sessions", "replay")
	f(exitUsage, "\ndewpoint: there is no file or folder /nope\n", "replay", "/nope")
	f(exitUsage, "\nflag provided but not defined: -protocol\n", "demo", "--protocol", "chat")
	f(exitUsage, "\nflag provided but not defined: -sealed\n", "replay", "--sealed", "thinking_blocks", "/nope")
	f(exitOK, "\nllms.", "check-config", write(t, "after.yaml", "llms: {a: {model: m}}"), "--probe")
	f(exitUsage, "not defined: -prob\ndewpoint: see 'dewpoint check-config --help'\n", "check-config", "missing.yaml", "--prob")
	f(exitUsage, " (--admin)\n", "--admin", "nowhere") // not the key, which is no flag
	f(exitUsage, " (--store)\n", "--store", "/nope/dewpoint.db")
	f(exitOK, "\n  --probe\n", "check-config", "--help")
	f(exitUsage, "configuration: 1 problem\n", "check-config", "missing.yaml")
	f(exitUsage, "max_size: is", "replay", "--max-size", "-1", "/nope")
	f(exitUsage, "max_tokens: is", "replay", "--max-tokens", "-1", "/nope")
	f(exitFailure, "broken.json: it is not valid JSON", "replay", write(t, "broken.json", "{"))
	f(exitFailure, "docs/replay.md", "replay", write(t, "broken.json", "{"))
	f(exitFailure, "docs/replay.md", "replay", write(t, "empty.json", "{}"))
	f(exitOK, "docs/replay.md", "help")
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckConfigNamesEveryProblem(t *testing.T) {
	path := write(t, "bad.yaml", "listen: nowhere\nstore: {type: paper}\ncondensor: {}\n")
	code, _, errs := command(t, "check-config", path)
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	for _, key := range []string{"listen", "store.type", "condensor"} {
		if !strings.Contains(errs, key) {
			t.Errorf("%s is not named in %q", key, errs)
		}
	}
}

// TestCheckConfigReadsWhatTheStartReads: check-config and serve report the same problems, each with its line, including those of every file and
// variable that the configuration names.
func TestCheckConfigReadsWhatTheStartReads(t *testing.T) {
	f := func(text string, want ...string) {
		t.Helper()
		path := write(t, "absent.yaml", text)
		for _, args := range [][]string{{"check-config", path}, {"--config", path}} {
			code, out, errs := command(t, args...)
			heading, listed, _ := strings.Cut(errs, "\n")
			if code != exitUsage || out != "" || heading != fmt.Sprintf("configuration: %d problems", len(want)) || strings.Count(listed, "\n") != len(want) {
				t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
			}
			for _, says := range want {
				if !regexp.MustCompile(`\n  ` + says + `\n`).MatchString(errs) {
					t.Errorf("%v: %q is missing in %s", args, says, errs)
				}
			}
		}
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	f(`
listen: 8080
store: {type: redis, redis: {addrs: ["a:1"], tls: true, tls_ca: /nope.pem, tls_cert: /nope.crt, tls_key: /nope.key}}
knowledge: {folder: /nope}
memory: {file: /nope/findings.jsonl}
condenser: {type: custom, command: [/nope]}
log: {requests: false}
log_content: true
`, `listen: .* \(line 2\)`, `store\.redis\.tls_ca: .*: check .* \(line 3\)`, `store\.redis\.tls_cert: .*: check .* \(line 3\)`,
		`knowledge\.folder: .*: correct .* \(line 4\)`, `memory\.file: .*: create .* \(line 5\)`,
		`condenser\.command: was removed, .*: run .* \(line 6\)`, `condenser\.url: is missing: .* \(line 6\)`,
		`log_content: .* \(line 8\)`, `OTEL_EXPORTER_OTLP_PROTOCOL: is "grpc": write http/protobuf.*`)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "")
	key := strings.Repeat("ab", 31)
	f(`
store: {path: /nope/dewpoint.db}
condenser: {type: llm, llm_config: nope}
tenants:
  a: {api_keys: [{sha256: `+key+`00}], knowledge: {folder: /nope}}
  b: {api_keys: [{sha256: `+key+`01}], memory: {file: /nope/findings.jsonl}, condenser: {type: custom, url: 'c'}}
  c: {api_keys: [{sha256: `+key+`02}]}
`, `store\.path: .*: create .* \(line 2\)`, `condenser\.llm_config: .* \(line 3\)`, `tenants\.a\.knowledge\.folder: .* \(line 5\)`,
		`tenants\.b\.memory\.file: .*: create .* \(line 6\)`, `tenants\.b\.condenser\.url: .* \(line 6\)`)
	f(`
upstream: {base_url: "https://me:s3cret@host:80a/v1"}
tenants: {a: {api_keys: [{env: UNSET_KEY}]}, b: {api_keys: [{sha256: `+key+`01}]}}
`, `upstream\.base_url: [^@]* \(line 2\)`, `tenants\.a\.api_keys\[0\]\.env: .* \(line 3\)`)
}

// TestDocumentedConfigurationIsFine runs check-config on the sample in docs/configuration.md.
func TestDocumentedConfigurationIsFine(t *testing.T) {
	doc, err := os.ReadFile("../../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	sample := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(doc)
	if sample == nil {
		t.Fatal("no sample in docs/configuration.md")
	}
	t.Setenv("TEAM_A_KEY", "key-of-team-a")
	t.Setenv("TEAM_A_UPSTREAM_KEY", "key-for-upstream")
	text := strings.Replace(string(sample[1]), "<hex>", strings.Repeat("ab", 32), 1)
	code, out, errs := command(t, "check-config", "--print", write(t, "sample.yaml", text))
	if code != exitOK {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if strings.Contains(out, "key-for-upstream") {
		t.Error("a secret is shown")
	}
}

// small is a run of two steps.
const small = `{"id": "small", "messages": [
	{"role": "user", "content": "count"},
	{"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "wc", "arguments": "{}"}}]},
	{"role": "tool", "tool_call_id": "c1", "content": "3"}], "final_response": {"role": "assistant", "content": "Three."}}`

func TestReplay(t *testing.T) {
	quick.Alone(t)
	quick.Skip(t)
	path := write(t, "run.json", small)
	f := func(want int, says string, args ...string) {
		t.Helper()
		code, out, errs := command(t, append([]string{"replay"}, args...)...)
		if code != want || !strings.Contains(out+errs, says) {
			t.Errorf("%v: exit code %d: %.2000s, want %d and %q", args, code, out+errs, want, says)
		}
	}
	f(exitOK, "1 session, 0 of them long enough to condense\n", path)
	f(exitOK, "1 session, 0 of them long enough to condense\n", "--max-size", "10", filepath.Dir(path))
	f(exitOK, "2 sessions, 0 of them long enough to condense\n", path, write(t, "other.json", small))
	f(exitOK, "\ngpt-4o-mini              $0.15 ", path, "--model", "gpt-4o-mini")
	f(exitOK, "There is no price for a-model-of-ours", path, "--model", "a-model-of-ours")
	f(exitOK, "left out: user.json: it has no answer of a model", path, write(t, "user.json", `{"messages": [{"role": "user", "content": "x"}]}`))
	tenants := write(t, "tenants.yaml", `
store: {encryption: {active: a, keys: {a: MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=}}}
limits: {tenant: {requests_per_minute: 1}}
tenants:
  a: {api_keys: [{sha256: `+strings.Repeat("ab", 32)+`}], condenser: {type: amortized, max_size: 20, min_tokens: 0}, notify: true}
  b: {api_keys: [{sha256: `+strings.Repeat("cd", 32)+`}], condenser: {type: noop}, memory: {webhook: {url: "http://127.0.0.1:1"}}}`)
	f(exitOK, "\ntenants.yaml       $0.00", path, "--config", tenants)
	f(exitOK, `"condenser": "amortized_forgetting"`, path, "--json", "--config", tenants, "--tenant", "a")
	f(exitUsage, `dewpoint: the configuration has no tenant "c"`, path, "--config", tenants, "--tenant", "c")
	f(exitUsage, `condenser.max_size: does not belong to type "noop"`, path, "--config", tenants, "--tenant", "b", "--max-size", "20")
	t.Setenv("LITELLM_TO_DEWPOINT_KEY", "a-key")
	t.Setenv("OPENAI_API_KEY", "another-key")
	f(exitOK, "1 session", path, "--config", "../../examples/litellm/dewpoint.yaml")
	f(exitOK, "1 session", path, "--config", "../../examples/ollama/dewpoint.yaml", "--model", "qwen3-coder:30b")
}

// TestReplayPrintsRecords replays the sample: each condensation is printed with its record, as text and in the JSON.
func TestReplayPrintsRecords(t *testing.T) {
	quick.Skip(t)
	quick.Alone(t)
	text, err := json.Marshal(demo.Sample())
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"replay", "--config", write(t, "excerpts.yaml", "condenser: {type: excerpts, trigger: limits, max_size: 40, min_tokens: 0}"), write(t, "sample.json", string(text))}
	code, out, errs := command(t, append(args, "--json", "--records")...)
	var all struct {
		Configs []struct {
			Condenser string
			Runs      []struct {
				Steps, Condensations int
				Saved                float64 `json:"saved_usd"`
				Records              []struct {
					Step, Events int
					Record       string
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitOK || errs != "" || len(all.Configs) != 1 {
		t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
	}
	results := all.Configs[0]
	if results.Condenser != "excerpts" || len(results.Runs) != 1 || results.Runs[0].Condensations == 0 {
		t.Fatalf("%+v", results)
	}
	code, out, errs = command(t, append(args, "--records")...)
	for _, r := range results.Runs[0].Records {
		if says := fmt.Sprintf("excerpts.yaml, sample, step %d, condensed by events: %d events hidden, ", r.Step, r.Events); !strings.Contains(out, says) {
			t.Errorf("%q is not in %.2000s", says, out)
		}
		if !strings.Contains(r.Record, "<dewpoint_excerpts>") {
			t.Errorf("the record of step %d is %q", r.Step, r.Record)
		}
	}
	if code != exitOK || errs != "" || strings.Count(out, "  | <dewpoint_excerpts>\n") != results.Runs[0].Condensations || !strings.Contains(out, "\n1 session\n") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestDemo(t *testing.T) {
	quick.Alone(t)
	code, out, errs := command(t, "demo")
	if code != exitOK || !strings.Contains(out, "condensations") || !strings.Contains(out, "OPENAI_BASE_URL=") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
