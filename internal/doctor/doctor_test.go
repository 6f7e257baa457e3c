package doctor_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
	"github.com/dewpoint-proxy/dewpoint/internal/doctor"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/terminal"
)

// redirected sends every request to one server, whatever address it has.
type redirected struct{ to string }

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	sent := req.Clone(req.Context())
	sent.URL.Scheme, sent.URL.Host = "http", r.to
	return http.DefaultTransport.RoundTrip(sent)
}

// examine examines a configuration and returns the report. What the upstream answers depends on the key.
func examine(t *testing.T, text string, environment map[string]string, home string) string {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch key := r.Header.Get("Authorization") + r.Header.Get("X-Api-Key"); {
		case r.URL.Path != "/v1/models":
			http.NotFound(w, r)
		case !strings.Contains(key, "sk-right"):
			http.Error(w, key, http.StatusUnauthorized)
		}
	}))
	defer up.Close()
	file := filepath.Join(t.TempDir(), "dewpoint.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := doctor.Patient{
		File: file, Home: home, Getenv: func(name string) string { return environment[name] }, Ask: redirected{strings.TrimPrefix(up.URL, "http://")},
	}
	p.Config, p.Problems = source.Load(source.Input{File: file, Check: app.Check})
	var report bytes.Buffer
	doctor.Examine(t.Context(), p, func(f doctor.Finding) {
		if (f.Level == doctor.OK) != (f.Fix == "") {
			t.Errorf("%+v: each fault has a fix, and only faults have one", f)
		}
		report.WriteString(f.Render(terminal.Of(&report, os.Getenv)))
	})
	if strings.Contains(report.String(), "sk-") {
		t.Errorf("a key is shown: %s", report.String())
	}
	return report.String()
}

// settings is a configuration on free ports with a store of its own.
func settings(t *testing.T, more string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: {listen: '127.0.0.1:0'}\nstore: {path: '%s'}\n%s", filepath.Join(t.TempDir(), "state.db"), more)
}

func wants(t *testing.T, report string, says ...string) {
	t.Helper()
	for _, s := range says {
		if !strings.Contains("\n"+report, s) {
			t.Errorf("%q is not in\n%s", s, report)
		}
	}
}

func TestAHealthyMachine(t *testing.T) {
	home := t.TempDir()
	report := examine(t, settings(t, "upstream: {api_key: sk-right}"), nil, home)
	wants(t, report, "\nok    config     ", "\nok    store      ", "state.db does not exist yet and will be created", "\nok    port       127.0.0.1:0 is free\n",
		"\nok    upstream   https://api.openai.com/v1 answered in ", " and accepted the configured key\n", "\nok    agents     no setting of an agent names a server.")
	if strings.Contains(report, "FAIL") || strings.Contains(report, "warn") {
		t.Error(report)
	}
}

func TestEachFaultHasAFix(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	home := t.TempDir()
	if err := os.WriteFile(filepath.Join(home, ".bashrc"), []byte("export ANTHROPIC_BASE_URL=https://api.anthropic.com\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	report := examine(t, fmt.Sprintf("listen: %s\nadmin: {listen: '127.0.0.1:0'}\nstore: {path: '%s'}\nupstream: {api_key: sk-wrong}\ncondenser: {type: llm, max_tokens: 75}\n",
		taken.Addr(), filepath.Join(t.TempDir(), "state.db")), nil, home)
	wants(t, report, "\nwarn  config     condenser.max_tokens: is 75 tokens",
		fmt.Sprintf("\nFAIL  port       %s cannot be opened: address already in use\n                 fix: stop the program that uses it, or choose another with --listen or listen\n", taken.Addr()),
		"\nFAIL  upstream   https://api.openai.com/v1 refused the configured key (401)\n                 fix: correct upstream.api_key\n",
		"\nwarn  agents     ANTHROPIC_BASE_URL is https://api.anthropic.com in ~/.bashrc line 1, not this proxy\n",
		fmt.Sprintf("fix: if its agent should be condensed, make it http://%s\n", taken.Addr()))
	report = examine(t, settings(t, "condensor: {}\nlimits: {max_body: -1}"), nil, home)
	wants(t, report, "\nFAIL  config     condensor: ", "\nFAIL  config     limits.max_body: ", "\nok    port  ")
	if strings.Contains(report, "upstream  ") {
		t.Errorf("an upstream of an invalid configuration is asked: %s", report)
	}
}

// TestKeysOfTheEnvironment: a provider is asked with the key that the environment has for it, and no other server is.
func TestKeysOfTheEnvironment(t *testing.T) {
	f := func(upstream, want string, environment map[string]string) {
		t.Helper()
		wants(t, examine(t, settings(t, "upstream: {base_url: '"+upstream+"'}"), environment, ""), want)
	}
	right, wrong := map[string]string{"ANTHROPIC_API_KEY": "sk-right"}, map[string]string{"ANTHROPIC_API_KEY": "sk-wrong"}
	f("https://api.anthropic.com/v1", "and accepted the key in ANTHROPIC_API_KEY\n", right)
	f("https://api.anthropic.com/v1", "\nwarn  upstream   https://api.anthropic.com/v1 refused the key in ANTHROPIC_API_KEY (401)\n", wrong)
	f("https://api.openai.com/v1", "; each client sends its own key, so none was tried\n", right)
	f("https://gateway.example/v1", "; each client sends its own key, so none was tried\n", right)
	f("https://gateway.example/v2", "\nwarn  upstream   https://gateway.example/v2 has no list of models (404)", right)
}

// TestARunningProxyIsAsked: the store of a proxy that runs is not touched, and its ports are its own.
func TestARunningProxyIsAsked(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	cfg := config.Default()
	cfg.Listen, cfg.Admin.Listen, cfg.Store.Path = "127.0.0.1:0", "127.0.0.1:0", path
	log, err := app.NewLogger("error", os.Stderr, app.JSON)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close(t.Context())
	a, err := app.New(cfg, log.Logger, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a.Start()
	defer a.Stop(t.Context())
	report := examine(t, fmt.Sprintf("listen: %s\nadmin: {listen: '%s'}\nstore: {path: '%s'}\nupstream: {api_key: sk-right}\n", a.Addr(), a.AdminAddr(), path), nil, "")
	wants(t, report, "\nok    running    on "+a.Addr()+" since ", "\nok    port       "+a.Addr()+" is served by Dewpoint (process ", "\nok    port       "+a.AdminAddr()+" is served by Dewpoint")
	if strings.Contains(report, "FAIL") {
		t.Error(report)
	}
}

func TestFindingsFitTheirScreen(t *testing.T) {
	f := doctor.Finding{Level: doctor.Fail, About: "llms", Says: strings.Repeat("word ", 30) + "\x1b[2J", Fix: strings.Repeat("advice ", 20)}
	s := terminal.Emulated(nil, func() int { return 60 }, func(string) string { return "dumb" })
	for line := range strings.SplitSeq(f.Render(s), "\n") {
		if len(line) > 59 || strings.Contains(line, "\x1b") {
			t.Errorf("%q", line)
		}
	}
}
