package command

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/setup"
)

// atHome makes an empty folder the user's home, and returns where the configuration file is by default.
func atHome(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for name, value := range map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, "config"), "XDG_STATE_HOME": filepath.Join(home, "state"),
		"APPDATA": filepath.Join(home, "config"), "LOCALAPPDATA": filepath.Join(home, "state"), "DEWPOINT_CONFIG": "",
		"OPENAI_BASE_URL": "", "OPENAI_API_BASE": "", "ANTHROPIC_BASE_URL": "", "OPENAI_API_KEY": "", "ANTHROPIC_API_KEY": "", "GEMINI_API_KEY": "",
	} {
		t.Setenv(name, value)
	}
	return filepath.Join(home, "config", "dewpoint", "config.yaml")
}

// TestInitWithoutATerminal: without questions it writes the defaults, which are read from then on, and never replaces a file.
func TestInitWithoutATerminal(t *testing.T) {
	path := atHome(t)
	code, out, errs := command(t, "init")
	if code != exitUsage || out != "" || errs != "dewpoint: init asks questions, and this is no terminal: run it with --yes to write the defaults\n" {
		t.Errorf("exit code %d: %q, %q", code, out, errs)
	}
	code, out, errs = command(t, "init", "--yes")
	text, err := os.ReadFile(path)
	if err != nil || code != exitOK || errs != "" || !strings.HasPrefix(out, string(text)) || !strings.HasSuffix(out, "Start it with 'dewpoint', and check it with 'dewpoint doctor'.\n") {
		t.Errorf("exit code %d, %v: %q, %q", code, err, out, errs)
	}
	if from, err := parseServe(nil, &bytes.Buffer{}, &bytes.Buffer{}); err != nil || from.file != path {
		t.Errorf("serve reads %q, %v", from.file, err)
	}
	code, _, errs = command(t, "init", "--yes")
	if again, err := os.ReadFile(path); err != nil || code != exitFailure || !strings.Contains(errs, path+" exists") || string(again) != string(text) {
		t.Errorf("exit code %d, %v: %s", code, err, errs)
	}
	other := filepath.Join(t.TempDir(), "new", "other.yaml")
	if code, out, errs = command(t, "init", "--yes", "--file", other); code != exitOK || !strings.Contains(out, "Start it with 'dewpoint --config "+other+"'") {
		t.Errorf("exit code %d: %q, %q", code, out, errs)
	}
}

// TestWhatInitWritesIsValid writes a configuration for different answers: each starts, with no warning but that the
// price of the model for summaries is not known.
func TestWhatInitWritesIsValid(t *testing.T) {
	atHome(t)
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	local := "http://127.0.0.1:8080/v1"
	for _, a := range []setup.Answers{
		{}, {State: filepath.Join(t.TempDir(), `with "quotes" and ${HOME}.db`)},
		{Upstream: "https://gateway.example/v1", Summary: &setup.Model{Name: "small", BaseURL: "https://gateway.example/v1"}},
		{Upstream: local, Local: "llama.cpp", Summary: &setup.Model{Name: "qwen3-coder:30b", BaseURL: local}},
		{Summary: &setup.Model{Name: "gpt-5-mini", BaseURL: "https://api.openai.com/v1", API: "chat", Key: "OPENAI_API_KEY"}},
	} {
		var out bytes.Buffer
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := writeConfig(path, a.File(), &out); err != nil {
			t.Errorf("%+v: %v", a, err)
			continue
		}
		if code, out, errs := command(t, "check-config", path); code != exitOK || !strings.HasPrefix(out, path+": valid") {
			t.Errorf("%+v: exit code %d: %s%s", a, code, out, errs)
		}
		cfg, err := load(configSource{file: path}, nil)
		if err != nil || !cfg.Condenser.ByPrice() || a.State != cfg.Store.Path {
			t.Fatalf("%+v: %+v, %v", a, cfg.Store, err)
		}
		for _, w := range cfg.Warnings {
			if !strings.Contains(w.Message, "whose price is not known") {
				t.Errorf("%+v: %v", a, w)
			}
		}
	}
}

// TestInitWritesNothingThatIsRefused: a key that is not in the environment would prevent the start.
func TestInitWritesNothingThatIsRefused(t *testing.T) {
	path := atHome(t)
	os.Unsetenv("OPENAI_API_KEY") // t.Setenv restores it
	a := setup.Answers{Summary: &setup.Model{Name: "gpt-5-mini", BaseURL: "https://api.openai.com/v1", Key: "OPENAI_API_KEY"}}
	err := writeConfig(path, a.File(), &bytes.Buffer{})
	if err == nil || !strings.Contains(err.Error(), "nothing was written") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

func TestDoctorReportsFaults(t *testing.T) {
	atHome(t)
	broken := write(t, "broken.yaml", "condensor: {}\nlisten: 127.0.0.1:0\nadmin: {listen: '127.0.0.1:0'}\n")
	code, out, errs := command(t, "doctor", "--config", broken)
	if code != exitFailure || !strings.HasPrefix(out, "FAIL  config     condensor: ") || !strings.Contains(out, "\n                 fix: ") ||
		errs != "dewpoint: there are faults: each has a line that begins with FAIL\n" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	code, out, _ = command(t, "doctor", "--json", "--config", broken)
	var found []struct{ Level, About, Says, Fix string }
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != exitFailure || len(found) < 4 || found[0].Level != "fail" || found[0].Fix == "" {
		t.Errorf("exit code %d, %v: %s", code, err, out)
	}
	fine := write(t, "fine.yaml", "upstream: {base_url: 'http://127.0.0.1:1/v1'}\nlisten: 127.0.0.1:0\nadmin: {listen: '127.0.0.1:0'}\n")
	if code, out, _ = command(t, "doctor", "--config", fine); code != exitFailure || !strings.Contains(out, "FAIL  upstream   http://127.0.0.1:1/v1 cannot be reached: connection refused\n") {
		t.Errorf("exit code %d: %s", code, out)
	}
	if code, _, errs := command(t, "doctor", "now"); code != exitUsage || !strings.Contains(errs, "no arguments") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
