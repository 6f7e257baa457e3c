package source

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// A problem in a tenant's file concerns its tenant only. Each step writes files and loads again; got lists the tenants in force, with an
// asterisk for last good versions, and after a bar the refused ones, with their number of known keys.
func TestRefusedTenants(t *testing.T) {
	type step struct {
		operator string            // more of the operator's file
		files    map[string]string // empty text: removed
		want     string
	}
	good := func(key string) string { return "api_keys: [{env: " + key + "}]" }
	broken := good("K3") + "\nnotifi: true"
	for name, steps := range map[string][]step{
		"at the start": {
			{"", map[string]string{"a.yaml": good("K1"), "b.yaml": broken, "c.yaml": "api_keys: ["}, "op a | b1 c0"},
			{"", map[string]string{"b.yaml": good("K2"), "c.yaml": ""}, "op a b |"},
		},
		"last good": {
			{"", map[string]string{"a.yaml": good("K1"), "b.yaml": good("K2")}, "op a b |"},
			{"", map[string]string{"a.yaml": broken, "c.yaml": good("K4")}, "op a* b c | a2"},
			{"", map[string]string{"b.yaml": "", "a.yaml": "api_keys: ["}, "op a* c | a1"},
			{"", map[string]string{"a.yaml": good("K1")}, "op a c |"},
		},
		"a key of the operator's": {
			{"", map[string]string{"a.yaml": good("K0"), "b.yaml": good("K2")}, "op b | a1"},
		},
		"a name of the operator's": {
			{"", map[string]string{"b.yaml": good("K2")}, "op b |"},
			{"", map[string]string{"op.yaml": good("K1")}, "op b | op1"},
			{"  b: {api_keys: [{env: K3}]}\n", map[string]string{"b.yaml": "x"}, "op b | b1 op1"},
		},
		"a key of two files": {
			{"", map[string]string{"a.yaml": good("K1"), "b.yaml": good("K1"), "c.yaml": good("K2")}, "op c | a1 b1"},
			{"", map[string]string{"b.yaml": good("K3")}, "op a b c |"},
			{"", map[string]string{"b.yaml": good("K1")}, "op a* b* c | a2 b2"},
		},
		"a name of two files": {
			{"", map[string]string{"one/a.yaml": good("K1"), "two/a.yaml": good("K2")}, "op | a1 a1"},
			{"", map[string]string{"one/a.yaml": ""}, "op a |"},
			{"", map[string]string{"one/a.yaml": good("K1")}, "op a* | a2 a2"},
		},
		"a key of a last good version": {
			{"", map[string]string{"a.yaml": good("K1"), "b.yaml": good("K2")}, "op a b |"},
			{"", map[string]string{"b.yaml": "x"}, "op b* a | b1"},
			{"", map[string]string{"a.yaml": good("K2")}, "op b* a* | a2 b1"},
		},
		"a last good version that does not fit": {
			{"", map[string]string{"a.yaml": good("K1") + "\nlimits: {max_body: 2MiB}", "b.yaml": good("K2")}, "op a b |"},
			{"  x: {api_keys: [{env: K1}]}\n", map[string]string{"a.yaml": "x"}, "op x b | a1"},
			{"", map[string]string{"c.yaml": good("K3")}, "op b c a* | a1"}, // it returns
			{"  x: {api_keys: [{env: K1}]}\n", nil, "op x b c | a1"},
			{"", map[string]string{"c.yaml": good("K1")}, "op b c | a1"}, // too late
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "dewpoint.yaml")
			var inForce *config.Config
			for i, s := range steps {
				write(t, file, fmt.Sprintf("tenants_dir: %q\ntenants:\n  op: {api_keys: [{env: K0}]}\n%s", filepath.Join(dir, "tenants"), s.operator))
				for name, text := range s.files {
					path := filepath.Join(dir, "tenants", name)
					if text == "" {
						_ = os.Remove(path)
						continue
					}
					write(t, path, text)
				}
				env := []string{adminToken, "K0=0", "K1=1", "K2=2", "K3=3", "K4=4"}
				cfg, err := Load(Input{File: file, Env: env, RefuseTenants: true, InForce: inForce})
				if err != nil {
					t.Fatalf("step %d: %v", i, err)
				}
				var got []string
				for _, tenant := range cfg.Tenants {
					got = append(got, tenant.Name+strings.Repeat("*", map[bool]int{true: 1}[tenant.Kept]))
				}
				got = append(got, "|")
				for _, r := range cfg.Refused {
					got = append(got, fmt.Sprintf("%s%d", r.Name, len(r.Keys())))
					if isKept := slices.Contains(got, r.Name+"*"); isKept != r.Kept {
						t.Errorf("step %d: %s is kept: %t", i, r.Name, r.Kept)
					}
				}
				if text := strings.Join(got, " "); text != s.want {
					t.Errorf("step %d: %s, not %s: %v", i, text, s.want, cfg.Refused)
				}
				again, err := Load(Input{File: file, Env: env, RefuseTenants: true, InForce: cfg})
				if err != nil || !reflect.DeepEqual(again.Refused, cfg.Refused) {
					t.Errorf("step %d: loaded again: %v %v", i, err, again.Refused)
				}
				inForce = cfg
			}
		})
	}
}

// The last good version of a file that was trusted is not kept in force once files are not trusted any more.
func TestTrustIsNotKept(t *testing.T) {
	dir := t.TempDir()
	file, team := filepath.Join(dir, "dewpoint.yaml"), filepath.Join(dir, "tenants", "a.yaml")
	env := []string{adminToken, "K0=0", "K1=1"}
	write(t, file, fmt.Sprintf("{tenants_dir: %q, tenants_trusted: true}", filepath.Dir(team)))
	write(t, team, "api_keys: [{env: K1}]\nmemory: {file: /tmp/x}")
	inForce, err := Load(Input{File: file, Env: env, RefuseTenants: true})
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, fmt.Sprintf("{tenants_dir: %q}", filepath.Dir(team)))
	cfg, err := Load(Input{File: file, Env: env, RefuseTenants: true, InForce: inForce})
	if err != nil || len(cfg.Tenants) != 0 || len(cfg.Refused) != 1 || cfg.Refused[0].Kept || cfg.IsOpen() {
		t.Errorf("%v: %+v", err, cfg)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
