package setup

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
)

func TestServersThatAnAgentsFilesName(t *testing.T) {
	f := func(command, file, text, want string) {
		t.Helper()
		home, env := t.TempDir(), map[string]string{}
		t.Chdir(t.TempDir())
		name := filepath.FromSlash(file)
		if file[0] == '~' {
			name = filepath.Join(home, name[1:])
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := OwnServers(agents.LaunchOf(command), home, func(name string) string { return env[name] })
		got := ""
		for _, s := range found {
			got += fmt.Sprintf("%s: %s is %s\n", s.Provider, s, s.URL)
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s with %s:\n%s\ngave %q, want %q", command, file, text, got, want)
		}
	}
	f("codex", "~/.codex/config.toml", "model = \"m\"\nopenai_base_url = \"https://a/v1\" # ours\n[x]\n", "openai: openai_base_url in ~/.codex/config.toml is https://a/v1\n")
	f("codex", "~/.codex/config.toml", "[profiles.x]\nopenai_base_url = \"https://a/v1\"\n", "")
	f("codex", ".codex/config.toml", "openai_base_url = 'https://a/v1'", "openai: openai_base_url in .codex/config.toml is https://a/v1\n")
	f("claude", "~/.codex/config.toml", "openai_base_url = \"https://a/v1\"", "")
	f("pi", "~/.pi/agent/models.json", `{"providers": {"openai": {"baseUrl": "https://a/v1"}, "other": {"baseUrl": "https://b/v1"}}}`,
		"openai: providers.openai.baseUrl in ~/.pi/agent/models.json is https://a/v1\n")
	f("kilo", "~/.config/kilo/kilo.jsonc", "{\n// my gateway: \"x\"\n\"provider\": {\"anthropic\": {\"options\": {\"baseURL\": \"https://a/v1\"}}}, /* } */\n}",
		"anthropic: provider.anthropic.options.baseURL in ~/.config/kilo/kilo.jsonc is https://a/v1\n")
	f("goose", "~/.config/goose/config.yaml", "GOOSE_PROVIDER: openai\nOPENAI_HOST: https://a\n", "openai: OPENAI_HOST in ~/.config/goose/config.yaml is https://a/v1\n")
	f("qwen", "~/.qwen/.env", "# mine\nexport OPENAI_BASE_URL=\"https://a/v1\"\n", "openai: OPENAI_BASE_URL in ~/.qwen/.env is https://a/v1\n")
	f("python3", ".env", "ANTHROPIC_BASE_URL=https://a\nOPENAI_API_KEY=sk-x\n", "anthropic: ANTHROPIC_BASE_URL in .env is https://a/v1\n")
	f("pi", "~/.pi/agent/models.json", "{\"providers\": [", "correct ~/.pi/agent/models.json, which cannot be read: it may name a server in providers.openai.baseUrl")
}

// A variable of the environment wins over the same one in a file.
func TestFilesOfVariablesDoNotReplaceTheEnvironment(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile(".env", []byte("OPENAI_BASE_URL=https://a/v1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := OwnServers(agents.LaunchOf("qwen"), "", func(name string) string { return map[string]string{"OPENAI_BASE_URL": "https://b/v1"}[name] })
	if len(found) > 0 || err != nil {
		t.Errorf("%v, %v", found, err)
	}
}
