package charttest

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

var token = regexp.MustCompile(`(?m)^  token: .*$`)

// TestRendersAreTheSame: the same values render to the same objects, except for a generated token, which only a cluster can keep.
func TestRendersAreTheSame(t *testing.T) {
	for set, values := range sets(t) {
		first, second := mustRender(t, values), mustRender(t, values)
		if token.ReplaceAllString(first.manifest, "") != token.ReplaceAllString(second.manifest, "") || first.notes != second.notes {
			t.Errorf("%s renders to something else each time", set)
		}
	}
}

func annotation(t *testing.T, r rendered, name string) string {
	t.Helper()
	sum := deployment(t, r).Spec.Template.Annotations[name]
	if len(sum) != 64 {
		t.Fatalf("%s is %q", name, sum)
	}
	return sum
}

// TestChecksums: pods are replaced if, and only if, something changed that a running pod does not reload.
func TestChecksums(t *testing.T) {
	base := sets(t)["tenants"]
	hot := over(base, "configReload: hot", t)
	for _, tt := range []struct {
		what, change          string
		config, live, secrets bool
	}{
		{"nothing", "{}", false, false, false},
		{"a condenser", "config: {condenser: {max_size: 100}}", true, false, false},
		{"an upstream", "config: {upstream: {base_url: 'https://other.example/v1'}}", true, false, false},
		{"a tenant", "config: {tenants: [{name: team-c, api_keys: [{env: TEAM_A_KEY}]}]}", true, false, false},
		{"a model", "config: {models: {other: {context_window: 1000, max_output: 100}}}", true, false, false},
		{"a summariser", "config: {llms: {cheap: {model: other}}}", true, false, false},
		{"what is told of one", "config: {tenants: [{name: team-c, api_keys: [{env: TEAM_A_KEY}], holdout: 0.1}]}", true, false, false},
		{"who observes", "config: {observe: true}", true, false, false},
		{"a folder of tenants", "config: {tenants_dir: /etc/more}", true, false, false},
		{"whether their files are trusted", "config: {tenants_trusted: true}", true, false, false},
		{"which hosts they may name", "config: {tenants_hosts: [llm.example.com]}", true, false, false},
		{"limits of tenants", "config: {limits: {tenant: {concurrent: 5}}}", true, false, false},
		{"session keys", "config: {session: {headers: [x-other]}}", true, false, false},
		{"limits", "config: {limits: {max_header: 32KiB}}", true, true, false},
		{"the log", "config: {log: {level: info}}", true, true, false},
		{"the store", "config: {store: {ttl: 24h}}", true, true, false},
		{"the shutdown", "config: {shutdown: {timeout: 6m}}", true, true, false},
		{"the port", "config: {listen: '0.0.0.0:8081'}", true, true, false},
		{"a server", "redis: {addrs: ['other:6379']}", true, true, true},
		{"a secret", "secrets: {TEAM_A_KEY: {value: another}}", false, false, true},
		{"the number of pods", "replicaCount: 5", false, false, false},
	} {
		before, after := mustRender(t, base), mustRender(t, over(base, tt.change, t))
		if changed := annotation(t, before, "checksum/config") != annotation(t, after, "checksum/config"); changed != tt.config {
			t.Errorf("%s: checksum/config changes: %v", tt.what, changed)
		}
		if changed := annotation(t, before, "checksum/secrets") != annotation(t, after, "checksum/secrets"); changed != tt.secrets {
			t.Errorf("%s: checksum/secrets changes: %v", tt.what, changed)
		}
		before, after = mustRender(t, hot), mustRender(t, over(hot, tt.change, t))
		if changed := annotation(t, before, "checksum/config") != annotation(t, after, "checksum/config"); changed != tt.live {
			t.Errorf("%s, taken up while running: checksum/config changes: %v", tt.what, changed)
		}
	}
}

// TestKeysAreReadAtStartOrReloaded: a change of a configuration key that is read only at start replaces the pods. All other keys are reloaded.
func TestKeysAreReadAtStartOrReloaded(t *testing.T) {
	keys := []string{"listen", "admin", "store", "limits", "shutdown", "log"} // the sections that internal/serve/app/reload.go does not reload
	found := regexp.MustCompile(`omit \(\$config \| fromYaml\) (.*) }}`).FindSubmatch(chartFile(t, "templates/_config.tpl"))
	for _, key := range strings.Fields(string(found[1])) {
		keys = append(keys, strings.Trim(key, `"`))
	}
	var all []string
	for field := range reflect.TypeFor[config.Config]().Fields() {
		if key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); key != "-" {
			all = append(all, key)
		}
	}
	slices.Sort(keys)
	slices.Sort(all)
	if !slices.Equal(keys, all) {
		t.Errorf("the chart knows of\n%v, the configuration has\n%v", keys, all)
	}
}

// TestNotes: the notes of each mode contain the next commands to run, with the names in the values.
func TestNotes(t *testing.T) {
	eachSet(t, func(t *testing.T, r rendered) {
		for _, command := range []string{
			"kubectl -n agents rollout status deployment/" + name, "port-forward service/" + name + "-admin 9090:9090", "export OPENAI_BASE_URL=http",
		} {
			if !strings.Contains(r.notes, command) {
				t.Errorf("the notes do not tell %q:\n%s", command, r.notes)
			}
		}
		for _, left := range []string{"{{", "<no value>", "%!", "<nil>"} {
			if strings.Contains(r.notes+r.manifest, left) && left != "{{" || strings.Contains(r.notes, left) {
				t.Errorf("%q was left over", left)
			}
		}
	})
	const open = "any client that reaches the service spends it"
	key := "secrets: {K: {name: a, key: b}}\nconfig: "
	for values, warned := range map[string]bool{
		"{}":                                  false,
		key + "{upstream: {api_key: '${K}'}}": true,
		key + "{llms: {a: {model: m}, b: {model: m, api_key: '${K}'}}}":             true,
		key + "{upstream: {api_key: '${K}'}, tenants: {a: {api_keys: [{env: K}]}}}": false,
		"tenantsFrom: [{secret: a}]\n" + key + "{upstream: {api_key: '${K}'}}":      false,
	} {
		if notes := mustRender(t, from(t, values)).notes; strings.Contains(notes, open) != warned {
			t.Errorf("%s: the notes should warn of an open key: %v:\n%s", values, warned, notes)
		}
	}
	for set, values := range map[string]map[string]any{"production": sets(t)["production"], "argocd": argoCD(t)} {
		if notes := mustRender(t, values).notes; strings.Contains(notes, open) {
			t.Errorf("%s opens the operator's key to all", set)
		}
	}
	for set, want := range map[string]string{
		"default":    "port-forward service/try-dewpoint 8080:80\n",
		"gateway":    "export OPENAI_BASE_URL=https://llm.example.com/v1\n",
		"production": "pods/*/dewpoint_requests_in_flight\"",
		"minimal":    "Conversations are kept in one pod, and end with it.",
	} {
		if notes := mustRender(t, sets(t)[set]).notes; !strings.Contains(notes, want) {
			t.Errorf("%s: the notes do not tell %q:\n%s", set, want, notes)
		}
	}
}
