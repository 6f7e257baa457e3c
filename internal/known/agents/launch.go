package agents

import (
	"path/filepath"
	"slices"
	"strings"
)

// Launch is how an agent is pointed at a proxy by what it is started with. In values, {base} stands for the proxy's base URL without a version,
// {v1} for the one with it, and {file} for the path of File.
type Launch struct {
	Name     string     // in words
	Commands []string   // of its programs, without a folder
	Env      []Variable // that are set
	Args     []string   // that come first on its command line
	File     File       // that it reads
	Note     string     // what its user has to know; may be empty
	Instead  string     // how it is pointed by hand, because it cannot be by what it is started with; empty: it can
	Never    bool       // it cannot be pointed at all: the note says why

	// What the agent reads that may name a server of its user's, and that Env, Args and File replace: files in which variables of Env are set
	// (beside .env in the current folder), and keys of others. The key for that server may stand there, too.
	EnvFiles []string
	Settings []Setting
}

// File is a file of ours that an agent reads. It is the same at each start, and names no address. Without a name there is none.
type File struct{ Name, Text string }

// Setting is a key of an agent's own files, as "openai.options.baseURL", that names a server. A path begins with ~/ for the home folder, or
// with $NAME/ for a folder that a variable names; others are in the current folder.
type Setting struct {
	Files    []string // TOML, YAML, JSON
	Key      string
	Provider string // as in Variable
}

// Variable is an environment variable by which an agent is pointed.
type Variable struct {
	Name, Value string
	Provider    string // whose clients read it, as package provider names it; empty: it has another form than a URL
}

// Variables that many clients read. SDKs of Anthropic add the version, those of OpenAI do not.
var (
	openAIURL    = Variable{"OPENAI_BASE_URL", "{v1}", "openai"}
	openAIBase   = Variable{"OPENAI_API_BASE", "{v1}", "openai"} // LiteLLM, and older SDKs
	anthropicURL = Variable{"ANTHROPIC_BASE_URL", "{base}", "anthropic"}
	geminiURL    = Variable{"GOOGLE_GEMINI_BASE_URL", "{base}", "gemini"}
)

const throughV1 = "http://127.0.0.1:8080/v1"

// The files of Kilo's settings.
var kiloFiles = []string{"~/.config/kilo/kilo.json", "~/.config/kilo/kilo.jsonc", "kilo.json", "kilo.jsonc", ".kilo/kilo.json", ".kilo/kilo.jsonc"}

// piExtension points pi at the proxy that a variable names.
const piExtension = `// Written by "dewpoint run", which names the proxy in PI_DEWPOINT_URL. Without that, it changes nothing.
export default function (pi) {
	const base = process.env.PI_DEWPOINT_URL;
	if (!base) return;
	pi.registerProvider("openai", { baseUrl: base + "/v1" });
	pi.registerProvider("anthropic", { baseUrl: base });
}
`

// launches lists the known agents.
var launches = [...]Launch{
	{
		Name: "Claude Code", Commands: []string{"claude"}, Env: []Variable{anthropicURL},
		Note: "with an account or a key of Anthropic's; not on Bedrock, Vertex or Foundry",
	},
	{
		Name: "Codex", Commands: []string{"codex"}, Args: []string{"-c", `openai_base_url="{v1}"`},
		Note:     "with a ChatGPT account or a key of OpenAI's; a model_provider of your own keeps its address",
		Settings: []Setting{{[]string{"$CODEX_HOME/config.toml", "~/.codex/config.toml", ".codex/config.toml"}, "openai_base_url", "openai"}},
	},
	{
		Name: "opencode", Commands: []string{"opencode"},
		Env:  []Variable{openAIURL, {"ANTHROPIC_BASE_URL", "{v1}", "anthropic"}},
		Note: "its providers openai and anthropic; others keep their address",
	},
	{
		Name: "Qwen Code", Commands: []string{"qwen"}, Env: []Variable{openAIURL, anthropicURL},
		Note:     "with an OpenAI-compatible or Anthropic key; name the server by --upstream if it is not OpenAI's",
		EnvFiles: []string{".qwen/.env", "~/.qwen/.env", "~/.env"},
		Settings: []Setting{{[]string{"~/.qwen/settings.json", ".qwen/settings.json"}, "security.auth.baseUrl", "openai"}},
	},
	{
		Name: "Goose", Commands: []string{"goose"},
		Env: []Variable{
			{"OPENAI_HOST", "{base}", "openai"}, {"OPENAI_BASE_PATH", "v1/chat/completions", ""}, {"ANTHROPIC_HOST", "{base}", "anthropic"},
		},
		Note: "its providers openai and anthropic",
		Settings: []Setting{
			{[]string{"~/.config/goose/config.yaml"}, "OPENAI_HOST", "openai"}, {[]string{"~/.config/goose/config.yaml"}, "ANTHROPIC_HOST", "anthropic"},
		},
	},
	{
		Name: "Crush", Commands: []string{"crush"},
		Env:  []Variable{{"OPENAI_API_ENDPOINT", "{v1}", "openai"}, {"ANTHROPIC_API_ENDPOINT", "{base}", "anthropic"}},
		Note: "its providers openai and anthropic",
	},
	{Name: "Aider", Commands: []string{"aider"}, Env: []Variable{openAIBase, openAIURL, {"ANTHROPIC_API_BASE", "{base}", "anthropic"}, anthropicURL}},
	{
		Name: "OpenHands", Commands: []string{"openhands"}, Env: []Variable{{"LLM_BASE_URL", "{v1}", "openai"}}, Args: []string{"--override-with-envs"},
		Note:     "LLM_MODEL and LLM_API_KEY must be set; switch its own condenser off",
		Settings: []Setting{{[]string{"~/.openhands/agent_settings.json"}, "llm.base_url", "openai"}},
	},
	{
		Name: "Gemini CLI", Commands: []string{"gemini"}, Env: []Variable{geminiURL},
		Note:     "with a key of Gemini's that was chosen in it once, not with a Google account",
		EnvFiles: []string{".gemini/.env", "~/.gemini/.env", "~/.env"},
	},
	{Name: "GitHub Copilot CLI", Commands: []string{"copilot"}, Env: []Variable{{"COPILOT_PROVIDER_BASE_URL", "{v1}", "openai"}}, Note: "with a key of your own"},
	{
		Name: "Hermes Agent", Commands: []string{"hermes"}, Env: []Variable{openAIURL, anthropicURL},
		Note: "its providers openai-api and anthropic; others, and addresses in ~/.hermes, stay",
	},
	{Name: "mini-swe-agent", Commands: []string{"mini", "mini-swe-agent"}, Env: []Variable{openAIBase, openAIURL, {"ANTHROPIC_API_BASE", "{base}", "anthropic"}, anthropicURL},
		EnvFiles: []string{"~/.config/mini-swe-agent/.env"}},
	{Name: "grok-cli", Commands: []string{"grok"}, Env: []Variable{{"GROK_BASE_URL", "{v1}", "openai"}}, Note: "name xAI's server by --upstream https://api.x.ai/v1"},
	{Name: "Cline", Commands: []string{"cline"}, Instead: "cline auth -b " + throughV1},
	{
		Name: "Kilo", Commands: []string{"kilo", "kilocode"},
		Env: []Variable{{"KILO_CONFIG_CONTENT",
			`{"provider":{"openai":{"options":{"baseURL":"{v1}"}},"anthropic":{"options":{"baseURL":"{v1}"}}}}`, ""}},
		Note: "its providers openai and anthropic; others keep their address",
		Settings: []Setting{
			{kiloFiles, "provider.openai.options.baseURL", "openai"}, {kiloFiles, "provider.anthropic.options.baseURL", "anthropic"},
		},
	},
	{
		Name: "pi", Commands: []string{"pi"}, Env: []Variable{{"PI_DEWPOINT_URL", "{base}", ""}}, Args: []string{"-e", "{file}"}, File: File{"pi.js", piExtension},
		Note: "its providers openai and anthropic; others keep their address",
		Settings: []Setting{
			{[]string{"$PI_CODING_AGENT_DIR/models.json", "~/.pi/agent/models.json"}, "providers.openai.baseUrl", "openai"},
			{[]string{"$PI_CODING_AGENT_DIR/models.json", "~/.pi/agent/models.json"}, "providers.anthropic.baseUrl", "anthropic"},
		},
	},
	{Name: "Amp and Auggie", Commands: []string{"amp", "auggie"}, Never: true, Note: "they talk to their own servers only"},
}

// anyClient is how a program that is not known is pointed.
var anyClient = Launch{
	Name: "any other client", Env: []Variable{openAIURL, openAIBase, anthropicURL, geminiURL},
	Note: "if it reads these variables, as the SDKs of OpenAI, Anthropic and Google do",
}

// Launches lists the known agents. The last one stands for all others.
func Launches() []Launch { return append(slices.Clone(launches[:]), anyClient) }

// LaunchOf returns how a command is pointed.
func LaunchOf(command string) Launch {
	name := strings.ToLower(filepath.Base(command))
	for _, suffix := range []string{".exe", ".cmd", ".js"} {
		name = strings.TrimSuffix(name, suffix)
	}
	for _, l := range launches {
		if slices.Contains(l.Commands, name) {
			return l
		}
	}
	return anyClient
}

// At returns the launch with its values for a proxy's base URL, and the path of its file.
func (l Launch) At(base, file string) Launch {
	values := strings.NewReplacer("{base}", base, "{v1}", base+"/v1", "{file}", file)
	l.Env, l.Args = slices.Clone(l.Env), slices.Clone(l.Args)
	for i := range l.Env {
		l.Env[i].Value = values.Replace(l.Env[i].Value)
	}
	for i := range l.Args {
		l.Args[i] = values.Replace(l.Args[i])
	}
	return l
}

// Upstream returns the base URL, with its version, of the server that a variable of the user's names, such as
// https://openrouter.ai/api/v1 in OPENAI_BASE_URL.
func (v Variable) Upstream(value string) string {
	value = strings.TrimRight(value, "/")
	if strings.HasSuffix(v.Value, "{base}") && value != "" && WithoutVersion(value) == value {
		return value + "/v1"
	}
	return value
}
