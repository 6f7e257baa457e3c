package source

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
)

// mounted writes files into a folder in the way that Kubernetes mounts them: links through a link to a hidden folder.
func mounted(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	release := filepath.Join(dir, "..2026_11_25_03_00_00.1")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(release, 0o700))
	must(os.Symlink(filepath.Base(release), filepath.Join(dir, "..data")))
	for name, text := range files {
		must(os.MkdirAll(filepath.Dir(filepath.Join(release, name)), 0o700))
		must(os.WriteFile(filepath.Join(release, name), []byte(text), 0o600))
		top, _, _ := strings.Cut(name, "/")
		if err := os.Symlink(filepath.Join("..data", top), filepath.Join(dir, top)); !errors.Is(err, fs.ErrExist) {
			must(err)
		}
	}
	return dir
}

// adminToken is required together with a folder of files that are not trusted.
const adminToken = "DEWPOINT_ADMIN_TOKEN=t"

// A list, a section, TOML and a folder give the same tenants.
func TestTenantsInEveryForm(t *testing.T) {
	dir := mounted(t, map[string]string{
		"a.yaml": "api_keys: [{env: KEY}]\nupstream: {api_key: \"${UP}\"}\ncondenser: {type: recent, max_events: 9}\n",
		"b.toml": "name = \"b\"\nnotify = true\napi_keys = [{env = \"KEY_2\"}]\n",
	})
	want := []config.Tenant{
		{
			Name: "a", APIKeys: []config.APIKey{{Env: "KEY", Value: "k1"}}, Upstream: config.Upstream{APIKey: "secret"},
			Condenser: &config.Condenser{Type: catalogue.TypeRecentEvents, MaxEvents: 9, KeepFirst: 1},
		},
		{Name: "b", Notify: true, APIKeys: []config.APIKey{{Env: "KEY_2", Value: "k2"}}},
	}
	a := `{api_keys: [{env: KEY}], upstream: {api_key: "${UP}"}, condenser: {type: recent, max_events: 9}}`
	b := `{api_keys: [{env: KEY_2}], notify: true}`
	for _, text := range []string{
		"tenants: [{name: a, " + a[1:] + ", {name: b, " + b[1:] + "]",
		"tenants: {a: " + a + ", b: {name: b, " + b[1:] + "}",
		fmt.Sprintf("{tenants_dir: %q, tenants_trusted: true}", dir),
		fmt.Sprintf("{tenants_dir: %q, tenants: [], tenants_trusted: true}", dir),
	} {
		cfg := mustBuild(t, ".yaml", text, "KEY=k1", "KEY_2=k2", "UP=secret")
		for i := range cfg.Tenants {
			cfg.Tenants[i].Key = ""
		}
		want[0].Condenser.KeepFirst = cfg.Tenants[0].Condenser.KeepFirst // the default of the type
		if !reflect.DeepEqual(cfg.Tenants, want) {
			t.Errorf("%s gave\n%s", text, effective(t, cfg))
		}
		cfg.TenantsDir, cfg.TenantsTrusted = "", false
		wantRoundTrip(t, cfg)
	}
}

// Every problem of a tenant names its key, and for a tenant in a file, the file and line.
func TestProblemsOfTenants(t *testing.T) {
	dir := mounted(t, map[string]string{
		"broken.yaml": "api_keys: [",
		"d.yaml":      "api_keys: [{env: KEY}]\nnotify: maybe\nnotifi: true\n",
		"e.yaml":      "name: f\napi_keys: [{env: KEY_2}]\nnotify: true\nnotify: true\n",
		"twice.json":  `{"api_keys": [{"env": "UNSET"}]}`,
		"twice.yml":   "api_keys: [{env: KEY_2}]\nupstream: {api_key: \"${UNSET}\"}\n",
		"comma.json":  `{"api_keys": [{"env": "KEY"]}`,
		"notes.md":    "hello",
		"deep/e/x":    "hello",
	})
	_, err := buildText(".yaml", fmt.Sprintf("tenants_trusted: true\ntenants_dir: %q\n", dir)+`tenants:
  a: {api_keys: [{env: KEY}], name: b}
  d:
  "odd name": {api_keys: [{env: KEY}]}
`, "KEY=k", "KEY_2=k2")
	at := func(name, line string) string {
		return " (" + strings.TrimSuffix(filepath.Join(dir, name)+", "+line, ", ") + ")"
	}
	wantProblems(t, err,
		`tenants_dir["broken.yaml"]: is not YAML: check indentation, colons and quotes`+at("broken.yaml", "line 1"),
		`tenants_dir["comma.json"]: is not JSON: check commas, brackets and quotes`+at("comma.json", "line 1"),
		`tenants_dir["deep/e"]: is a folder: name a file, or move its files up`+at("deep/e", ""),
		`tenants_dir["e.yaml"].notify: is given twice: keep one`+at("e.yaml", "line 4"),
		`tenants_dir["notes.md"]: has no known extension: name it .yaml, .yml, .json or .toml`+at("notes.md", ""),
		`tenants_dir["twice.yml"].upstream.api_key: names the environment variable UNSET, which is not set: set it, or write $${ for a literal ${`+at("twice.yml", "line 2"),
		`tenants.a.name: is not "a", the name of its section or file: remove it, or make them equal (line 4)`,
		`tenants_dir["d.yaml"].notify: must be true or false, not a string: write it without quotes`+at("d.yaml", "line 2"),
		`tenants_dir["d.yaml"].notifi: is not a known key: did you mean notify?`+at("d.yaml", "line 3"),
		`tenants_dir["e.yaml"].name: is not "e", the name of its section or file: remove it, or make them equal`+at("e.yaml", "line 1"),
		`tenants.d.api_keys: is empty: give the tenant at least one key, or no client can use it (line 5)`,
		`tenants["odd name"].name: is not a plain name: use up to 64 letters, digits, - and _ (line 6)`,
		`tenants["odd name"].api_keys[0]: is also the key of tenants.a.api_keys[0]: write each key once, for one tenant (line 6)`,
		`tenants_dir["d.yaml"].name: is also the name of tenants.d: give each tenant its own`+at("d.yaml", "line 1"),
		`tenants_dir["d.yaml"].api_keys[0]: is also the key of tenants.a.api_keys[0]: write each key once, for one tenant`+at("d.yaml", "line 1"),
		`tenants_dir["twice.json"].api_keys[0].env: names the environment variable UNSET, which is empty or not set: set it`+at("twice.json", "line 1"),
		`tenants_dir["twice.yml"].name: is also the name of tenants_dir["twice.json"]: give each tenant its own`+at("twice.yml", "line 1"),
		`tenants_dir["twice.json"].name: is also the name of tenants_dir["twice.yml"]: give each tenant its own`+at("twice.json", "line 1"),
		`tenants_dir["twice.yml"].api_keys[0]: is also the key of tenants_dir["e.yaml"].api_keys[0]: write each key once, for one tenant`+at("twice.yml", "line 1"),
		`tenants_dir["e.yaml"].api_keys[0]: is also the key of tenants_dir["twice.yml"].api_keys[0]: write each key once, for one tenant`+at("e.yaml", "line 2"))
}

// A folder without a tenant does not open the proxy to any key.
func TestNoTenantInFolder(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for dir, want := range map[string]string{
		missing:         "cannot be read (no such file or directory): check its name and permissions",
		mounted(t, nil): "has no tenants, and neither has tenants, so that any key would pass: add a file, or remove tenants_dir",
	} {
		_, err := Load(Input{Env: []string{adminToken, "DEWPOINT_TENANTS_DIR=" + dir}})
		wantProblems(t, err, "tenants_dir: "+want+" (DEWPOINT_TENANTS_DIR)")
	}
}

// Variables name tenants in a list by their index, and others by their name.
func TestVariablesOfTenants(t *testing.T) {
	dir := mounted(t, map[string]string{"team-c.yaml": "api_keys: [{env: C}]", "dir.yaml": "api_keys: [{env: D}]"})
	env := []string{
		adminToken, "DEWPOINT_TENANTS_HOSTS=c, *.d", "A=a", "B=b", "C=c", "D=d", "DEWPOINT_TENANTS_DIR=" + dir, "DEWPOINT_TENANTS_TEAM_C_NOTIFY=true", "DEWPOINT_TENANTS_TEAM_C_UPSTREAM_BASE_URL=http://c",
		"DEWPOINT_TENANTS_DIR_OBSERVE=true",
	}
	for text, more := range map[string]string{
		"tenants: [{name: team-a, api_keys: [{env: A}]}]": "DEWPOINT_TENANTS_0_NOTIFY=true",
		"tenants: {team-a: {api_keys: [{env: A}]}}":       "DEWPOINT_TENANTS_TEAM_A_NOTIFY=true",
		"tenants: {dir-observe: {api_keys: [{env: A}]}}":  "DEWPOINT_TENANTS_DIR_OBSERVE_NOTIFY=true",
		"{}": "DEWPOINT_TENANTS_0_NOTIFY=true DEWPOINT_TENANTS_0_NAME=x DEWPOINT_TENANTS_0_API_KEYS_0_ENV=A",
	} {
		cfg := mustBuild(t, ".yaml", text, slices.Concat(env, strings.Fields(more))...)
		first, folder, c := cfg.Tenants[0], cfg.Tenants[1], cfg.Tenants[2]
		if first.APIKeys[0].Value != "a" || !first.Notify || folder.Observe == nil || !c.Notify || c.Upstream.BaseURL != "http://c" || len(cfg.Tenants) != 3 {
			t.Errorf("%s gave\n%s", text, effective(t, cfg))
		}
	}
	_, err := buildText(".yaml", "tenants: [{name: team-a, api_keys: [{env: A}]}]", "A=a", "DEWPOINT_TENANTS_TEAM_A_NOTIFY=true")
	wantProblems(t, err, "DEWPOINT_TENANTS_TEAM_A_NOTIFY: names no configuration key: correct its name, or remove it")
}

// Subfolders may contain files of tenants as well. The tenants' names must be unique. Editors' backups are skipped.
func TestFoldersOfTenants(t *testing.T) {
	dir := mounted(t, map[string]string{
		"one/a.yaml": "api_keys: [{env: A}]", "two/b.yaml": "api_keys: [{env: B}]", "c.yaml": "api_keys: [{env: C}]",
		"c.yaml~": "api_keys: [", ".c.yaml.swp": "?", "two/#b.yaml~": "?", "two/.b.yaml.swp": "?",
	})
	text, env := fmt.Sprintf("tenants_dir: %q", dir), []string{adminToken, "A=a", "B=b", "C=c"}
	var names []string
	for _, tenant := range mustBuild(t, ".yaml", text, env...).Tenants {
		names = append(names, tenant.Name)
	}
	if !slices.Equal(names, []string{"c", "a", "b"}) {
		t.Errorf("the tenants are %v", names)
	}
	if err := os.WriteFile(filepath.Join(dir, "one", "b.yaml"), []byte("api_keys: [{env: D}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := buildText(".yaml", text, append(env, "D=d")...)
	wantProblems(t, err,
		fmt.Sprintf(`tenants_dir["two/b.yaml"].name: is also the name of tenants_dir["one/b.yaml"]: give each tenant its own (%s/two/b.yaml, line 1)`, dir),
		fmt.Sprintf(`tenants_dir["one/b.yaml"].name: is also the name of tenants_dir["two/b.yaml"]: give each tenant its own (%s/one/b.yaml, line 1)`, dir))
}

// The parsers' time is quadratic in the keys of a section, and all tenants wait for a reload.
func TestLongFileOfATenant(t *testing.T) {
	dir := mounted(t, map[string]string{
		"a.yaml": strings.Repeat("a:\n", 11000), "b.toml": "a = [" + strings.Repeat("1,", 1<<14) + "]",
		"c.yaml": "api_keys: [{env: A}]\n" + strings.Repeat("# a\n", 8000), "d.yaml": "a: |\n" + strings.Repeat(" \t\r\n", 5000),
	})
	_, err := buildText(".yaml", fmt.Sprintf("tenants_dir: %q", dir), adminToken, "A=a")
	wantProblems(t, err,
		fmt.Sprintf(`tenants_dir["a.yaml"]: is larger than 32KiB: shorten it, or name the right file (%s/a.yaml)`, dir),
		fmt.Sprintf(`tenants_dir["b.toml"]: is larger than 32KiB: shorten it, or name the right file (%s/b.toml)`, dir),
		fmt.Sprintf(`tenants_dir["d.yaml"]: has hundreds of blank lines in a row: remove them (%s/d.yaml)`, dir))
}

// A pipe is not opened, since reading might never end.
func TestPipeOfTenants(t *testing.T) {
	dir := mounted(t, map[string]string{"a.yaml": "api_keys: [{env: A}]"})
	pipe := filepath.Join(dir, "b.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := buildText(".yaml", fmt.Sprintf("tenants_dir: %q", dir), adminToken, "A=a")
	wantProblems(t, err, `tenants_dir["b.yaml"]: is not a regular file: name one, or remove it (`+pipe+`)`)
}

// Settings that give a tenant the rights of the process are accepted only in trusted files.
func TestFilesOfTenantsAreConfined(t *testing.T) {
	dir := mounted(t, map[string]string{
		"a.yaml": "api_keys: [{env: A}]\nupstream: {base_url: \"http://a\", api_key: \"${SECRET}\"}\nmemory: {file: /etc/x}\n",
		"b.toml": "api_keys = [{env = \"B\"}]\nmemory.mcp = {url = \"http://b\", arguments = \"{\\\"a\\\": \\\"$${B}\\\"}\", tool = \"t\"}\nknowledge.folder = \"/\"\n",
		"c.yaml": `api_keys: [{env: C}]
condenser: {type: pipeline, condensers: [{type: custom, url: "http://c", api_key: "${SECRET}"}, {type: llm, max_size: 50, prompt_file: /etc/x}]}
limits: {concurrent: 5}
memory: {webhook: {url: "http://c"}}
`,
	})
	env := []string{adminToken, "DEWPOINT_TENANTS_HOSTS=a,b,c", "A=a", "B=b", "C=c", "SECRET=verysecret"}
	if cfg := mustBuild(t, ".yaml", fmt.Sprintf("{tenants_dir: %q, tenants_trusted: true}", dir), env...); cfg.Tenants[0].Upstream.APIKey != "verysecret" {
		t.Errorf("files that are trusted give\n%s", effective(t, cfg))
	}
	mustBuild(t, ".yaml", fmt.Sprintf("tenants_dir: %q", dir), append(env, "DEWPOINT_TENANTS_TRUSTED=true")...)

	_, err := buildText(".yaml", fmt.Sprintf("tenants_dir: %q", dir), env...)
	const advice = ": remove it, or set tenants_trusted to true in the configuration if you trust every file in tenants_dir"
	at := func(name string, line int) string {
		return fmt.Sprintf(" (%s, line %d)", filepath.Join(dir, name), line)
	}
	wantProblems(t, err,
		`tenants_dir["a.yaml"].upstream.api_key: names an environment variable`+advice+at("a.yaml", 2),
		`tenants_dir["a.yaml"].memory.file: names a file or folder of this machine`+advice+at("a.yaml", 3),
		`tenants_dir["b.toml"].knowledge.folder: names a file or folder of this machine`+advice+at("b.toml", 3),
		`tenants_dir["c.yaml"].condenser.condensers[0].api_key: names an environment variable`+advice+at("c.yaml", 2),
		`tenants_dir["c.yaml"].condenser.condensers[1].prompt_file: names a file or folder of this machine`+advice+at("c.yaml", 2))

	cfg, _ := buildText(".yaml", fmt.Sprintf("tenants_dir: %q", dir), env...)
	for _, tenant := range cfg.Tenants { // which further checks may look at
		if tenant.Knowledge.Folder != "" || tenant.Memory.File != "" {
			t.Errorf("%s: folder %q, file %q", tenant.Name, tenant.Knowledge.Folder, tenant.Memory.File)
		}
	}
}

// Files that are not trusted may contain only addresses at hosts that the operator allows, whichever key has the address.
func TestHostsOfTenants(t *testing.T) {
	dir := mounted(t, map[string]string{
		"a.yaml": "api_keys: [{env: A}]\nupstream: {base_url: \"http://127.0.0.1:9090/api/v1\"}\nmemory: {webhook: {url: \"https://hooks.example/x\"}}\n",
		"b.yaml": `api_keys: [{env: B}]
upstream: {base_url: "https://llm.example/v1"}
memory: {mcp: {url: "http://169.254.169.254/mcp"}}
condenser: {type: pipeline, condensers: [{type: tool_output_trim}, {type: custom, url: "http://sub.wild.example:8000"}]}
`,
		"c.yaml": "api_keys: [{env: C}]\nobserve: true\n",
	})
	text, env := fmt.Sprintf("tenants_dir: %q\n", dir), []string{adminToken, "A=a", "B=b", "C=c"}
	const refused = ": names a host that teams may not use: remove it, or let the operator add the host to tenants_hosts in the configuration"
	at := func(name string, line int) string {
		return fmt.Sprintf(" (%s, line %d)", filepath.Join(dir, name), line)
	}
	metadata := `tenants_dir["b.yaml"].memory.mcp.url: is a link-local address or another one where clouds serve credentials: name another address` + at("b.yaml", 3)
	for hosts, want := range map[string][]string{
		"": {
			`tenants_dir["a.yaml"].upstream.base_url` + refused + at("a.yaml", 2),
			`tenants_dir["a.yaml"].memory.webhook.url` + refused + at("a.yaml", 3),
			metadata,
			`tenants_dir["b.yaml"].upstream.base_url` + refused + at("b.yaml", 2),
			`tenants_dir["b.yaml"].condenser.condensers[1].url` + refused + at("b.yaml", 4),
		},
		"hooks.example, llm.example:443, '*.wild.example:8000'": {
			`tenants_dir["a.yaml"].upstream.base_url` + refused + at("a.yaml", 2),
			metadata,
		},
		"hooks.example:80, llm.example, '*.wild.example', 127.0.0.0/8, 'a b'": {
			`tenants_hosts[4]: is not a host: write it as llm.example.com, *.example.com, 10.1.2.3 or 10.0.0.0/8, with a port as in llm.example.com:8000 if only that one is meant (line 2)`,
			`tenants_dir["a.yaml"].memory.webhook.url` + refused + at("a.yaml", 3),
			metadata,
		},
	} {
		_, err := buildText(".yaml", text+"tenants_hosts: ["+hosts+"]", env...)
		wantProblems(t, err, want...)
	}
	_, err := buildText(".yaml", text+"tenants_trusted: true", env[1:]...)
	wantProblems(t, err, metadata)
	_, err = buildText(".yaml", text+"tenants_hosts: [hooks.example, llm.example, '*.wild.example', 127.0.0.1, 169.254.169.254]", env[1:]...)
	wantProblems(t, err, "admin.token: is missing while teams write the files of tenants_dir: set a token, or set tenants_trusted to true if you trust every file", metadata)
}

// A variable that could mean either of two names is an error.
func TestVariableOfTwoTenants(t *testing.T) {
	_, err := buildText(".yaml", "tenants: {team-a: {api_keys: [{env: A}]}, team_a: {api_keys: [{env: B}]}}", "A=a", "B=b", "DEWPOINT_TENANTS_TEAM_A_HOLDOUT=0.1")
	wantProblems(t, err, "DEWPOINT_TENANTS_TEAM_A_HOLDOUT: matches both team-a and team_a: rename one of them, or set the key in the file")
}

// An empty list of tenants is an error, since it would open the proxy to any key.
func TestEmptyTenants(t *testing.T) {
	for _, text := range []string{"tenants: {}", "tenants: []", "tenants:"} {
		_, err := buildText(".yaml", text)
		wantProblems(t, err, "tenants: is empty, so that any key would pass: add a tenant, or remove tenants to open the proxy to all (line 1)")
	}
}
