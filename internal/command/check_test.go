package command

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// TestProbe probes models that answer, models that do not, and a model that needs a client's key.
func TestProbe(t *testing.T) {
	up := fakeupstream.New(fakeupstream.Options{Models: []string{"here"}, SummariserModels: []string{"able"}, APIKeys: []string{"sk-right"}, Strict: true})
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	condenser := ""
	f := func(want int, llms string, says ...string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "dewpoint.yaml")
		text := fmt.Sprintf("upstream: {base_url: \"http://127.0.0.1:1/v1\"}\nllms: {%s}\n%s", strings.ReplaceAll(llms, "URL", up.URL()+"/v1"), condenser)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := command(t, "check-config", "--probe", file)
		for _, s := range says {
			if code != want || !strings.Contains(out+errs, s) || strings.Contains(out+errs, "sk-") {
				t.Errorf("exit code %d, want %d; wrote %s, want %q in it", code, want, out+errs, s)
			}
		}
	}
	f(exitOK, "clients: {model: here}", "llms.clients: here at http://127.0.0.1", "not probed")
	f(exitOK, `good: {model: here, base_url: "URL", api_key: sk-right}`, "answers")
	f(exitOK, `good: {model: here, base_url: "URL", api_key: sk-right, api: messages}`, "answers")
	f(exitUsage, `bad: {model: here, base_url: "URL", api_key: sk-wrong, api: messages}`, "denied (status 401) authentication_error")
	f(exitUsage, `good: {model: here, base_url: "URL", api_key: sk-right}, gone: {model: gone, base_url: "URL", api_key: sk-right}`,
		"\nllms.good: here", "\nllms.gone: gone", "does not answer: call summariser: rejected (status 404) model_not_found", "configured models that do not answer: 1")
	f(exitUsage, `bad: {model: here, base_url: "URL", api_key: sk-wrong}`, "denied (status 401)")

	// In the form in which the condensers ask: the model "able" calls functions and follows schemas, "here" answers in text.
	const able, here = `good: {model: able, base_url: "URL", api_key: sk-right}`, `good: {model: here, base_url: "URL", api_key: sk-right}`
	for _, c := range []struct{ condenserType, fault string }{{"structured_summary", "summary malformed"}, {"llm_attention", "summary malformed"}} {
		condenser = "condenser: {type: pipeline, condensers: [{type: " + c.condenserType + ", llm_config: good}]}\n"
		for _, api := range []string{"", ", api: messages", ", api: responses"} {
			f(exitOK, strings.Replace(able, "}", api+"}", 1), "/v1 answers in the form that "+c.condenserType+" needs\n")
		}
		f(exitUsage, here, "/v1 does not answer in the form that "+c.condenserType+" needs: "+c.fault, "configured models that do not answer: 1")
	}
	condenser = "condenser: {type: pipeline, condensers: [{type: llm, llm_config: good}, {type: llm_attention, llm_config: good}]}\n"
	f(exitUsage, here, "/v1 answers\n", "/v1 does not answer in the form that llm_attention needs: ")
}

// TestCheckConfigSaysWhetherAFileIsValid: one line, warnings and when condensing begins below it, and the whole configuration only if it is asked for.
func TestCheckConfigSaysWhetherAFileIsValid(t *testing.T) {
	good, odd := write(t, "good.yaml", "upstream: {api_key: sk-1234}\n"), write(t, "odd.yaml", "condenser: {type: llm, max_tokens: 75}\nlimits: {max_body: 64}\n")
	code, out, errs := command(t, "check-config", good)
	if code != exitOK || !strings.HasPrefix(out, good+": valid\n  condenser: gpt-5.5 is condensed when that pays, usually from ") || strings.Count(out, "\n") != 2 || errs != "" {
		t.Errorf("exit code %d: %q, %q", code, out, errs)
	}
	code, out, errs = command(t, "check-config", odd)
	lines := strings.Split(out, "\n")
	if code != exitOK || errs != "" || len(lines) != 5 || lines[0] != odd+": valid, with 2 warnings" ||
		!strings.HasPrefix(lines[1], "  condenser.max_tokens: is 75 tokens, ") || !strings.HasSuffix(lines[1], " (line 1)") ||
		!strings.HasPrefix(lines[2], "  limits.max_body: is 64 bytes, ") {
		t.Errorf("exit code %d: %q, %q", code, out, errs)
	}
	for _, file := range []string{good, odd} {
		code, out, _ = command(t, "check-config", file, "--print")
		again := write(t, "again.yaml", out)
		if code != exitOK || !strings.HasPrefix(out, "listen: ") || !strings.Contains(out, "\n# "+file+": valid") || strings.Contains(out, "sk-1234") {
			t.Errorf("exit code %d: %s", code, out)
		}
		if code, _, errs := command(t, "check-config", again); code != exitOK {
			t.Errorf("what is printed is no configuration: %s", errs)
		}
	}
}

// TestHelpIsOutput: help that is asked for is the command's output; an unknown flag is an error and prints no help.
func TestHelpIsOutput(t *testing.T) {
	for _, name := range []string{"", "serve", "check-config", "replay", "health", "demo", "init", "doctor"} {
		args := strings.Fields(name)
		code, out, errs := command(t, append(args, "--help")...)
		if code != exitOK || !strings.Contains(out, "Usage") || errs != "" {
			t.Errorf("%s --help: exit code %d, %q, %q", name, code, out, errs)
		}
		code, out, errs = command(t, append(args, "--nope")...)
		if code != exitUsage || out != "" || strings.Count(errs, "\n") != 2 {
			t.Errorf("%s --nope: exit code %d, %q, %q", name, code, out, errs)
		}
	}
}

// TestHealthAsksARefusedConfiguration checks that the admin address is found in a configuration that is otherwise invalid.
func TestHealthAsksARefusedConfiguration(t *testing.T) {
	for text, want := range map[string]string{
		"{admin: {listen: '127.0.0.1:9191'}, tenants: {a: {api_keys: [], colour: red}}, tenants_dir: /missing}": "127.0.0.1:9191",
		"{admin: {listen: nowhere}}": "",
		"{admin: ":                   "",
	} {
		if got, err := adminAddress("", write(t, "refused.yaml", text)); got != want || (err == nil) != (want != "") {
			t.Errorf("%s is asked at %q, %v", text, got, err)
		}
	}
}
