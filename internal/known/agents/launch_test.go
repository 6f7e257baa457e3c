package agents

import (
	"slices"
	"testing"
)

func TestAgentsArePointedByWhatTheyAreStartedWith(t *testing.T) {
	const base = "http://127.0.0.1:1/run/ID"
	for command, want := range map[string]string{
		"claude":                "ANTHROPIC_BASE_URL=" + base,
		"/usr/local/bin/claude": "ANTHROPIC_BASE_URL=" + base,
		"codex.exe":             `-c openai_base_url="` + base + `/v1"`,
		"opencode":              "OPENAI_BASE_URL=" + base + "/v1",
		"qwen":                  "OPENAI_BASE_URL=" + base + "/v1",
		"goose":                 "OPENAI_HOST=" + base,
		"crush":                 "ANTHROPIC_API_ENDPOINT=" + base,
		"aider":                 "OPENAI_API_BASE=" + base + "/v1",
		"openhands":             "LLM_BASE_URL=" + base + "/v1",
		"gemini":                "GOOGLE_GEMINI_BASE_URL=" + base,
		"kilo":                  `KILO_CONFIG_CONTENT={"provider":{"openai":{"options":{"baseURL":"` + base + `/v1"}},"anthropic":{"options":{"baseURL":"` + base + `/v1"}}}}`,
		"hermes":                "OPENAI_BASE_URL=" + base + "/v1",
		"pi":                    "-e /state/file",
		"my-agent":              "OPENAI_BASE_URL=" + base + "/v1",
		"python3":               "ANTHROPIC_BASE_URL=" + base,
	} {
		l := LaunchOf(command).At(base, "/state/file")
		var has []string
		for _, v := range l.Env {
			has = append(has, v.Name+"="+v.Value)
		}
		for i := 1; i < len(l.Args); i++ {
			has = append(has, l.Args[i-1]+" "+l.Args[i])
		}
		if !slices.Contains(has, want) {
			t.Errorf("%s is pointed by %q, want %q among them", command, has, want)
		}
	}
	for _, l := range Launches() {
		if (l.Instead == "" && !l.Never) == (len(l.Env)+len(l.Args) == 0) {
			t.Errorf("%s is pointed neither by variables or arguments nor by hand, or by both", l.Name)
		}
	}
}

func TestServersThatVariablesName(t *testing.T) {
	for _, c := range []struct {
		variable    Variable
		value, want string
	}{
		{openAIURL, "https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1"},
		{anthropicURL, "https://gateway.example", "https://gateway.example/v1"},
		{anthropicURL, "https://gateway.example/v1", "https://gateway.example/v1"},
		{anthropicURL, "", ""},
	} {
		if got := c.variable.Upstream(c.value); got != c.want {
			t.Errorf("%s=%s names %s, want %s", c.variable.Name, c.value, got, c.want)
		}
	}
}
