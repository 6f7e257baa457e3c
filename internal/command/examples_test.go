package command

import (
	"cmp"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// TestExamplesAreFine runs check-config on every example, with the variables that it names set.
func TestExamplesAreFine(t *testing.T) {
	files, err := filepath.Glob("../../examples/*/dewpoint.yaml")
	if err != nil || len(files) < 5 {
		t.Fatalf("examples are missing: %v, %v", files, err)
	}
	index, err := os.ReadFile("../../examples/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			setVariables(t, file)
			code, out, errs := command(t, "check-config", file)
			if code != exitOK || !strings.Contains(out, ": valid\n  condenser: ") {
				t.Errorf("exit code %d: %s%s", code, out, errs)
			}
			if _, out, _ = command(t, "check-config", "--print", file); strings.Contains(out, "value-of-") {
				t.Error("a secret is shown")
			}
			if !strings.Contains(string(index), "("+name+")") {
				t.Error("examples/README.md does not name it")
			}
		})
	}
}

// service is a service of the Compose example.
type service struct {
	Command, Volumes, Ports []string
	Environment             map[string]string
	DependsOn               map[string]any `yaml:"depends_on"`
	StopGracePeriod         string         `yaml:"stop_grace_period"`
}

// TestComposeExample renders the file as Compose would, with its variables set, and checks the service against its configuration.
func TestComposeExample(t *testing.T) {
	text, err := os.ReadFile("../../examples/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rendered := regexp.MustCompile(`\$\{(\w+):\?[^}]*\}`).ReplaceAll(text, []byte("value-of-$1"))
	var project struct{ Services map[string]service }
	if err := yaml.Unmarshal(rendered, &project); err != nil {
		t.Fatal(err)
	}
	ours := project.Services["dewpoint"]
	for name, value := range ours.Environment {
		t.Setenv(name, value)
	}
	file, inside, _ := strings.Cut(strings.TrimSuffix(ours.Volumes[0], ":ro"), ":")
	if ours.Command[0] != "serve" || ours.Command[len(ours.Command)-1] != inside {
		t.Errorf("the command is %v, the file is mounted at %s", ours.Command, inside)
	}
	cfg, err := load(configSource{file: filepath.Join("../../examples/compose", file)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Upstream.APIKey.Reveal() != "value-of-OPENAI_API_KEY" {
		t.Error("the key is not passed on")
	}
	if published := "127.0.0.1:8080" + cfg.Listen[strings.LastIndexByte(cfg.Listen, ':'):]; ours.Ports[0] != published {
		t.Errorf("ports are %v, and it listens on %s", ours.Ports, cfg.Listen)
	}
	host, _, _ := strings.Cut(cfg.Store.Redis.Addrs[0], ":")
	if _, there := project.Services[host]; !there || ours.DependsOn[host] == nil {
		t.Errorf("%s is no service that it waits for", host)
	}
	if grace, err := time.ParseDuration(ours.StopGracePeriod); err != nil || grace <= cfg.Shutdown.Delay+cfg.Shutdown.Timeout {
		t.Errorf("it is killed after %s", ours.StopGracePeriod)
	}
}

// TestExamplesSave: with each example, a recorded run costs less than without, or is shorter where its model has no price.
func TestExamplesSave(t *testing.T) {
	quick.Skip(t)
	files, err := filepath.Glob("../../examples/*/dewpoint.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	run, err := json.Marshal(demo.Sample())
	if err != nil {
		t.Fatal(err)
	}
	sample := write(t, "sample.json", string(run))
	models := map[string]string{"azure": "agents-large", "ollama": "qwen3-coder:30b"}
	for _, file := range files {
		name := filepath.Base(filepath.Dir(file))
		t.Run(name, func(t *testing.T) {
			setVariables(t, file)
			code, out, errs := command(t, "replay", "--json", "--config", file, "--model", cmp.Or(models[name], "gpt-5.5"), sample)
			var all struct {
				Configs []struct {
					Runs []struct {
						Condensations int
						Saved         float64 `json:"saved_usd"`
						Without, With struct {
							Input int `json:"input_tokens"`
						}
					}
				}
			}
			if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitOK || len(all.Configs) != 1 || len(all.Configs[0].Runs) != 1 {
				t.Fatalf("exit code %d, %v: %s%s", code, err, out, errs)
			}
			r := all.Configs[0].Runs[0]
			if r.Condensations == 0 || r.With.Input >= r.Without.Input || r.Saved <= 0 && name != "ollama" {
				t.Errorf("%+v", r)
			}
		})
	}
}

// setVariables sets the environment variables that a configuration names.
func setVariables(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, variable := range regexp.MustCompile(`\$\{(\w+)\}|env: (\w+)`).FindAllStringSubmatch(string(text), -1) {
		t.Setenv(variable[1]+variable[2], "value-of-"+variable[1]+variable[2])
	}
}
