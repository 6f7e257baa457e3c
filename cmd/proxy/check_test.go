package main

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
	up := fakeupstream.New(fakeupstream.Options{Models: []string{"here"}, APIKeys: []string{"sk-right"}, Strict: true})
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	f := func(want int, llms string, says ...string) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "dewpoint.yaml")
		text := fmt.Sprintf("upstream: {base_url: \"http://127.0.0.1:1/v1\"}\nllms: {%s}\n", strings.ReplaceAll(llms, "URL", up.URL()+"/v1"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := command(t, "check-config", "--probe", file)
		_, out, _ = strings.Cut(out, ": valid\n")
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
		"# llms.good: here", "# llms.gone: gone", "does not answer: call summariser: rejected (status 404) model_not_found", "configured models that do not answer: 1")
	f(exitUsage, `bad: {model: here, base_url: "URL", api_key: sk-wrong}`, "denied (status 401)")
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
