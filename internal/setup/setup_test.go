package setup

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/known/model"
)

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, ok := strings.CutPrefix(p, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

func TestKeysAreFoundByName(t *testing.T) {
	getenv := env("ANTHROPIC_API_KEY=sk-ant-secret", "OPENAI_API_KEY=")
	found := Keys(getenv)
	if len(found) != 1 || found[0].Variable != "ANTHROPIC_API_KEY" {
		t.Errorf("%+v", found)
	}
	if k, ok := KeyFor("https://generativelanguage.googleapis.com/v1beta", env("GEMINI_API_KEY=AIza")); !ok || k.API != "gemini" {
		t.Errorf("%+v, %t", k, ok)
	}
	if k, ok := KeyFor("https://api.anthropic.com/v1/", getenv); !ok || k.Provider != "Anthropic" {
		t.Errorf("%+v, %t", k, ok)
	}
	if _, ok := KeyFor("https://api.anthropic.com.example/v1", getenv); ok {
		t.Error("the key is taken for another server's")
	}
}

// TestCheapModelsHaveAPrice: a summary by a model that is offered can be weighed against what it saves.
func TestCheapModelsHaveAPrice(t *testing.T) {
	for _, k := range keys {
		if info, _ := (model.Table{}).Lookup(k.Cheap); !info.Price.Known() || info.Price.Output > 3 {
			t.Errorf("%s costs %+v", k.Cheap, info.Price)
		}
	}
}

func TestServersAreFound(t *testing.T) {
	serve := func(header, body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if header != "" {
				w.Header().Set(header, "x")
			}
			if r.URL.Path != "/v1/models" || r.Header.Get("Authorization") != "" {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return s.URL + "/v1"
	}
	ollama := serve("", `{"data":[{"id":"qwen3-coder:30b","owned_by":"library"},{"id":"gpt-oss:20b"}]}`)
	ours := serve("X-Dewpoint-Request-Id", `{"data":[{"id":"gpt-5.5"}]}`)
	empty, page := serve("", `{"data":[]}`), serve("", `<html>`)
	found := Servers(t.Context(), []Address{{"a", ours}, {"b", ollama}, {"c", empty}, {"d", page}, {"e", "http://127.0.0.1:1/v1"}})
	if len(found) != 1 || found[0].Name != "Ollama" || found[0].BaseURL != ollama || !slices.Equal(found[0].Models, []string{"qwen3-coder:30b", "gpt-oss:20b"}) {
		t.Errorf("%+v", found)
	}
}

func TestPointersOfAgents(t *testing.T) {
	home := t.TempDir()
	for name, text := range map[string]string{
		".zshrc":                   "# export OPENAI_BASE_URL=http://commented\nexport OPENAI_BASE_URL=http://first/v1\n  export OPENAI_BASE_URL=\"http://me:secret@gateway.example/v1?key=secret\" # mine\n",
		".config/fish/config.fish": "set -gx ANTHROPIC_BASE_URL http://127.0.0.1:8080\n",
		".claude/settings.json":    `{"env": {"ANTHROPIC_BASE_URL": "https://claude.example", "OTHER": 1}}`,
		".codex/config.toml":       "model = \"gpt-5.5\"\n[model_providers.x]\nbase_url = \"http://codex.example/v1\"\n",
		".bashrc":                  "echo OPENAI_BASE_URL=http://said\n",
	} {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := Pointers(home, env("OPENAI_API_BASE=http://env.example/v1"))
	want := []Pointer{
		{"OPENAI_API_BASE", "the environment", "http://env.example/v1"},
		{"OPENAI_BASE_URL", "~/.zshrc line 3", "http://gateway.example/v1"},
		{"ANTHROPIC_BASE_URL", "~/.config/fish/config.fish line 1", "http://127.0.0.1:8080"},
		{"ANTHROPIC_BASE_URL", "~/.claude/settings.json", "https://claude.example"},
		{"base_url", "~/.codex/config.toml line 3", "http://codex.example/v1"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	if got := Pointers(filepath.Join(home, "nobody"), env()); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestDialogue answers the questions, wrongly at times, and reads the answers.
func TestDialogue(t *testing.T) {
	found := Found{
		Keys: []Key{keys[0], keys[1]}, State: "/home/ada/state.db",
		Servers: []Server{{Name: "Ollama", BaseURL: "http://127.0.0.1:11434/v1", Models: []string{"qwen3-coder:30b", "b", "c", "d", "e\x1b[2J"}}},
	}
	f := func(typed string, want Answers, says ...string) {
		t.Helper()
		var out strings.Builder
		got, err := NewDialogue(strings.NewReader(typed), &out).Ask(found)
		if err != nil || got.Upstream != want.Upstream || got.Local != want.Local || got.State != want.State ||
			(got.Summary == nil) != (want.Summary == nil) || got.Summary != nil && *got.Summary != *want.Summary {
			t.Errorf("%q: %+v, %v, want %+v", typed, got, err, want)
		}
		for _, s := range append(says, "OPENAI_API_KEY", "qwen3-coder:30b, b, c, d and 1 more") {
			if !strings.Contains(out.String(), s) {
				t.Errorf("%q is not in %s", s, out.String())
			}
		}
	}
	f("\n\n\n", Answers{})
	f("1\n3\n\n", Answers{Summary: &Model{Name: "claude-haiku-5-5", BaseURL: "https://api.anthropic.com/v1", API: "messages", Key: "ANTHROPIC_API_KEY"}})
	f("2\n4\n/tmp/s.db\n", Answers{
		Upstream: "http://127.0.0.1:11434/v1", Local: "Ollama", State: "/tmp/s.db",
		Summary: &Model{Name: "qwen3-coder:30b", BaseURL: "http://127.0.0.1:11434/v1"},
	})
	f("9\nx\n3\nnowhere\nhttps://me:pw@h/v1\nhttps://gw.example/v1\n5\n\nbig\n\n", Answers{
		Upstream: "https://gw.example/v1", Summary: &Model{Name: "big", BaseURL: "https://gw.example/v1"},
	}, "Please type a number from 1 to 3", "That is no address")
	f("1\n5\nbig\nhttps://api.openai.com/v1\n\n", Answers{
		Summary: &Model{Name: "big", BaseURL: "https://api.openai.com/v1", API: "chat", Key: "OPENAI_API_KEY"},
	})
	for _, typed := range []string{"", "1\n", "1\n1\n", "3\n"} {
		if _, err := NewDialogue(strings.NewReader(typed), io.Discard).Ask(found); !errors.Is(err, ErrLeft) {
			t.Errorf("%q: %v", typed, err)
		}
	}
}

func TestConfirm(t *testing.T) {
	for typed, want := range map[string]bool{"\n": true, "y\n": true, "Yes\n": true, "n\n": false, "what\nno\n": false} {
		if got, err := NewDialogue(strings.NewReader(typed), io.Discard).Confirm("Write?", true); got != want || err != nil {
			t.Errorf("%q: %t, %v", typed, got, err)
		}
	}
	if got, err := NewDialogue(strings.NewReader("\n"), io.Discard).Confirm("Replace?", false); got || err != nil {
		t.Errorf("%t, %v", got, err)
	}
}
