package charttest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/source"
)

// TestConfigurationsLoad: Dewpoint accepts every configuration that the chart renders, with the pod's environment.
func TestConfigurationsLoad(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		loaded := loadConfig(t, r)
		if loaded.Listen != "0.0.0.0:8080" || loaded.Admin.Listen != "0.0.0.0:9090" || loaded.Admin.Token.Reveal() != "dummy-secret-of-ADMIN_TOKEN" {
			t.Errorf("listens on %s and %s", loaded.Listen, loaded.Admin.Listen)
		}
	})
}

// TestPortsAreThoseListenedOn: the container's ports are those that the process listens on, whatever the image sets.
func TestPortsAreThoseListenedOn(t *testing.T) {
	for values, want := range map[string]string{
		"{}": "8080 9090",
		"config: {listen: ':80', admin: {listen: '[::]:90'}}": "80 90",
	} {
		r := mustRender(t, from(t, values))
		loaded, ports := loadConfig(t, r), container(t, r).Ports
		got := itoa(ports[0].ContainerPort) + " " + itoa(ports[1].ContainerPort)
		if listened := port(loaded.Listen) + " " + port(loaded.Admin.Listen); got != want || listened != want {
			t.Errorf("%s: ports %s, listens on %s, not %s", values, got, listened, want)
		}
	}
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// loadConfig loads the mounted configuration as the pod does.
func loadConfig(t *testing.T, r rendered) *config.Config {
	t.Helper()
	loaded, err := loadTenants(t, r, func(volume string) string { return "of-" + volume + ".yaml" })
	if err != nil {
		t.Fatalf("%v, in:\n%s", err, configText(t, r))
	}
	return loaded
}

// loadTenants loads the mounted configuration, with one tenant in each volume of tenants, in a file with the name that fileIn returns.
func loadTenants(t *testing.T, r rendered, fileIn func(volume string) string) (*config.Config, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "dewpoint.yaml")
	if err := os.WriteFile(file, []byte(configText(t, r)), 0o600); err != nil {
		t.Fatal(err)
	}
	variables := imageEnv()
	for name, value := range env(t, r) {
		switch {
		case name == "REDIS_URL":
			value = "rediss://user:password@redis.example:6379/1"
		case strings.HasPrefix(name, "STORE_KEY_"): // 32 bytes
			value = strings.Repeat(name[len(name)-1:], 64)
		}
		variables = append(variables, name+"="+value)
	}
	const folder = "/etc/dewpoint-tenants"
	if strings.Contains(configText(t, r), "tenants_dir: "+folder+"\n") {
		mounted := t.TempDir()
		for i, mount := range container(t, r).VolumeMounts {
			if below, ok := strings.CutPrefix(mount.MountPath, folder); ok {
				if err := os.Mkdir(filepath.Join(mounted, below), 0o700); err != nil {
					t.Fatal(err)
				}
				text := fmt.Sprintf("api_keys: [{sha256: %064d}]", i)
				if err := os.WriteFile(filepath.Join(mounted, below, fileIn(mount.Name)), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		variables = append(variables, "DEWPOINT_TENANTS_DIR="+mounted)
	}
	return source.Load(source.Input{File: file, Env: variables})
}

// imageEnv returns the variables that the image sets. They override the file, and the pod's own variables override them.
func imageEnv() []string {
	return []string{"DEWPOINT_LISTEN=0.0.0.0:8080", "DEWPOINT_STORE_PATH=/var/lib/dewpoint/dewpoint.db"}
}

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// TestSecretsAreReferences: the configuration contains only names of variables in place of secrets, and the container gets each of these
// variables from a Secret.
func TestSecretsAreReferences(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		text, variables := configText(t, r), env(t, r)
		for _, match := range reference.FindAllStringSubmatch(text, -1) {
			if variables[match[1]] != "dummy-secret-of-"+match[1] {
				t.Errorf("%s does not come from a secret", match[0])
			}
		}
		for _, line := range strings.Split(text, "\n") {
			key, value, _ := strings.Cut(strings.Trim(line, " -"), ": ")
			if slices.Contains([]string{"api_key", "password", "sentinel_password", "token", "secret"}, key) && !reference.MatchString(value) {
				t.Errorf("a secret stands in the configuration: %s", line)
			}
		}
		for _, value := range []string{"-for-a-test"} { // the ending of all secrets in the value sets
			if strings.Contains(withoutSecrets(r), value) {
				t.Errorf("a secret stands outside the Secrets")
			}
		}
	})
}

// withoutSecrets returns everything that was rendered except Secrets.
func withoutSecrets(r rendered) string {
	documents := slices.DeleteFunc(separator.Split(r.manifest, -1), func(document string) bool {
		return strings.Contains(document, "\nkind: Secret\n")
	})
	return strings.Join(documents, "") + r.notes
}

// TestCondensersInValues: the schema of the values accepts the same condensers as Dewpoint's loader.
func TestCondensersInValues(t *testing.T) {
	for _, e := range catalogue.Entries() {
		kind, keys := e.Type, ""
		if e.Has("url") {
			keys = ", url: http://condenser:8080, api_key: '${ADMIN_TOKEN}'"
		}
		if e.Wraps() {
			keys = ", condensers: [{type: noop}]"
		}
		text := "config: {condenser: {type: " + kind + keys + "}}"
		loaded := loadConfig(t, mustRender(t, from(t, text)))
		if loaded.Condenser.Type != kind {
			t.Errorf("%s became %s", kind, loaded.Condenser.Type)
		}
	}
	empty := "config: {condenser: {type: noop}, tenants: [{name: a, api_keys: [{sha256: " + strings.Repeat("ab", 32) + "}], condenser: {}}]}"
	loaded := loadConfig(t, mustRender(t, from(t, empty)))
	if got := loaded.CondenserFor(loaded.Tenants[0]).Type; got != catalogue.TypeNoop {
		t.Errorf("a tenant's empty condenser is %s", got)
	}
}
