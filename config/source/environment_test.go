package source

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/config/internal/syntax"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// scalarKey is one key of the configuration, found by reflection.
type scalarKey struct {
	variable string
	path     []string // field names, map keys, indexes
	typ      reflect.Type
	need     []string // variables that must be set too, so that the configuration is valid
}

// scalarKeys lists every key of a single value or a list of plain values, with one model name, one list element and one level of pipelines.
func scalarKeys(t reflect.Type, at scalarKey) []scalarKey {
	at.typ = t
	switch {
	case syntax.IsScalar(t) || t.Kind() == reflect.Slice && syntax.IsScalar(t.Elem()):
		return []scalarKey{at}
	case t.Kind() == reflect.Pointer:
		return scalarKeys(t.Elem(), at)
	case t.Kind() == reflect.Map:
		return scalarKeys(t.Elem(), at.below("CHEAP", "cheap"))
	case t.Kind() == reflect.Slice:
		return scalarKeys(t.Elem(), at.below("0", "0"))
	}
	var keys []scalarKey
	for f := range t.Fields() {
		if name := syntax.KeyOf(f); name != "" {
			keys = append(keys, fieldKeys(t, f, at)...)
		}
	}
	return keys
}

func fieldKeys(t reflect.Type, f reflect.StructField, at scalarKey) []scalarKey {
	if f.Name == "Condensers" && strings.Contains(at.variable, "CONDENSERS") {
		return nil
	}
	next := at.below(strings.ToUpper(syntax.KeyOf(f)), f.Name)
	switch condenser, _, _ := strings.Cut(at.variable, "_PER_MODEL"); {
	case t == reflect.TypeFor[config.Override]():
		next.need = append(slices.Clone(at.need), condenser+"_TYPE="+typeWith(syntax.KeyOf(f)))
	case t == reflect.TypeFor[config.Condenser]() && f.Name != "Type" && f.Name != "PerModel":
		next.need = append(slices.Clone(at.need), condenser+"_TYPE="+typeWith(syntax.KeyOf(f)))
	}
	return scalarKeys(f.Type, next)
}

func (k scalarKey) below(variable, name string) scalarKey {
	k.variable = strings.TrimPrefix(k.variable+"_"+variable, "_")
	k.path = append(slices.Clone(k.path), name)
	return k
}

func typeWith(key string) string {
	for _, e := range catalogue.Entries() {
		if e.Has(key) {
			return e.Type
		}
	}
	return ""
}

// sample returns a value that is not a default, and its text.
func sample(t reflect.Type) (value any, text string) {
	switch {
	case t.Kind() == reflect.Pointer:
		return sample(t.Elem())
	case t == reflect.TypeFor[time.Duration]():
		return 42 * time.Second, "42s"
	case t == reflect.TypeFor[limit.Period]():
		return limit.Month, "month"
	case t == reflect.TypeFor[limit.Bytes]():
		return limit.Bytes(3 << 20), "3MiB"
	case t == reflect.TypeFor[config.Secret]():
		return config.Secret("${not} expanded"), "${not} expanded"
	}
	switch t.Kind() {
	case reflect.String:
		return "recent_events", "recent_events"
	case reflect.Int:
		return 17, "17"
	case reflect.Float64:
		return 0.375, "0.375"
	case reflect.Slice:
		return []string{"a:1", "b:2"}, "a:1, b:2"
	default:
		return true, "true"
	}
}

func TestEveryKeyHasAVariable(t *testing.T) {
	keys := scalarKeys(reflect.TypeFor[config.Config](), scalarKey{})
	if len(keys) < 120 {
		t.Fatalf("only %d keys were found", len(keys))
	}
	seen := map[string]bool{}
	for _, key := range keys {
		if seen[key.variable] {
			t.Errorf("%s stands for two keys", key.variable)
		}
		seen[key.variable] = true
		testVariable(t, key)
	}
}

func testVariable(t *testing.T, key scalarKey) {
	value, text := sample(key.typ)
	if key.variable == "STORE_CONTENT" {
		value, text = false, "false"
	}
	if key.variable == "TENANTS_DIR" {
		text = t.TempDir()
		value = text
	}
	var env []string
	for _, pair := range append(key.need, key.variable+"="+text) {
		env = append(env, envPrefix+pair)
	}
	p := &problems{}
	cfg := build(&node{kind: kindTable}, Input{}, environment(env), p)
	if err := p.list.Err(); err != nil {
		t.Errorf("%v: %v", env, err)
		return
	}
	if got := follow(reflect.ValueOf(*cfg), key.path); !reflect.DeepEqual(got, value) {
		t.Errorf("%v gave %#v, want %#v", env, got, value)
	}
}

func follow(v reflect.Value, path []string) any {
	for _, name := range path {
		v = reflect.Indirect(v)
		switch v.Kind() {
		case reflect.Map:
			v = v.MapIndex(reflect.ValueOf(name))
		case reflect.Slice:
			v = v.Index(0)
		default:
			v = v.FieldByName(name)
		}
	}
	return reflect.Indirect(v).Interface()
}

func TestVariablesOverFile(t *testing.T) {
	text := `
llms: {my-own.model: {model: a}, my: {model: b}}
models: {"gpt-4.1": {max_output: 5}}
tenants: [{name: a, api_keys: [{env: K1}]}, {name: b, api_keys: [{env: K2}]}]
`
	cfg := mustBuild(t, ".yaml", text, "K1=1", "K2=2", "K3=3",
		"DEWPOINT_LLMS_MY_OWN_MODEL_MODEL=x", "DEWPOINT_LLMS_MY_TIMEOUT=3s", "DEWPOINT_LLMS_NEW_ONE_MODEL=y",
		"DEWPOINT_MODELS_GPT_4_1_MAX_OUTPUT=6",
		"DEWPOINT_TENANTS_1_OBSERVE=true", "DEWPOINT_TENANTS_2_NAME=c", "DEWPOINT_TENANTS_2_API_KEYS_0_ENV=K3")
	llms := map[string]config.LLM{"my-own.model": {Model: "x"}, "my": {Model: "b", Timeout: 3 * time.Second}, "new_one": {Model: "y"}}
	if !reflect.DeepEqual(cfg.LLMs, llms) {
		t.Errorf("llms are %+v", cfg.LLMs)
	}
	if cfg.Models["gpt-4.1"].MaxOutput != 6 || len(cfg.Models) != 1 {
		t.Errorf("models are %+v", cfg.Models)
	}
	if len(cfg.Tenants) != 3 || cfg.Tenants[1].Observe == nil || !*cfg.Tenants[1].Observe || cfg.Tenants[1].Name != "b" || cfg.Tenants[2].APIKeys[0].Value != "3" {
		t.Errorf("tenants are %+v", cfg.Tenants)
	}
}

func TestUnknownVariables(t *testing.T) {
	const noKey = ": names no configuration key: correct its name, or remove it"
	for _, name := range []string{
		"DEWPOINT_UPSTREAM_URL", "DEWPOINT_", "DEWPOINT_UPSTREAM", "DEWPOINT_LISTEN_", "DEWPOINT_LLMS_MODEL",
		"DEWPOINT_TENANTS_00_NAME", "DEWPOINT_TENANTS_-1_NAME", "DEWPOINT_TENANTS_999_NAME", "DEWPOINT_TENANTS_0",
		"DEWPOINT_STORE_REDIS_ADDRS_0", "DEWPOINT_listen", "DEWPOINT_SUPPORT", "DEWPOINT_PORT",
	} {
		_, err := Load(Input{Env: []string{name + "=1"}})
		wantProblems(t, err, name+noKey)
	}
}

// A hole in a list that variables make is reported for the missing element. It causes no panic, and elements do not move up.
func TestVariablesLeaveHole(t *testing.T) {
	_, err := Load(Input{Env: []string{"DEWPOINT_TENANTS_1_NAME=b", "DEWPOINT_TENANTS_1_API_KEYS_0_ENV=K", "K=1"}})
	wantProblems(t, err, "tenants[0]: has no value: give it one, or remove it (DEWPOINT_TENANTS_1_API_KEYS_0_ENV)")
}

// A variable does not hide that the file has a value of another kind in that place.
func TestVariableBelowWrongValue(t *testing.T) {
	_, err := buildText(".yaml", "store: embedded\ntenants: x\n", "DEWPOINT_STORE_PATH=x", "DEWPOINT_TENANTS_0_NAME=a")
	wantProblems(t, err,
		"store: must be a section of keys, not a string: write it as {type: ...} or {path: ...} (line 1)",
		"tenants: must be a section of tenants by name, or a list, not a string: write it as {NAME: {api_keys: ...}} (line 2)")
}

// Kubernetes sets these in every container of a namespace where a service is called dewpoint, or dewpoint-redis.
func TestServiceLinksAreIgnored(t *testing.T) {
	var env []string
	for _, service := range []string{"DEWPOINT", "DEWPOINT_REDIS"} {
		for _, link := range []string{
			"SERVICE_HOST=10.0.0.1", "SERVICE_PORT=8080", "SERVICE_PORT_HTTP=8080", "PORT=tcp://10.0.0.1:8080",
			"PORT_8080_TCP=tcp://10.0.0.1:8080", "PORT_8080_TCP_PROTO=tcp", "PORT_8080_TCP_PORT=8080",
			"PORT_8080_TCP_ADDR=10.0.0.1", "PORT_53_UDP=udp://10.0.0.1:53",
		} {
			env = append(env, fmt.Sprintf("%s_%s", service, link))
		}
	}
	if cfg := mustLoad(t, Input{Env: env}); !reflect.DeepEqual(cfg, config.Default()) {
		t.Errorf("got %+v", cfg)
	}
}

func TestEmptyVariables(t *testing.T) {
	cfg := mustLoad(t, Input{Env: []string{"DEWPOINT_UPSTREAM_API_KEY=", "DEWPOINT_SESSION_HEADERS="}})
	if cfg.Upstream.APIKey != "" || len(cfg.Session.Headers) != 0 {
		t.Errorf("got %+v", cfg)
	}
	_, err := Load(Input{Env: []string{"DEWPOINT_CONDENSER_MAX_SIZE=", "DEWPOINT_STORE_TTL="}})
	wantProblems(t, err,
		"condenser.max_size: is not a whole number: write digits only (DEWPOINT_CONDENSER_MAX_SIZE)",
		"store.ttl: is not a duration: write it with a unit, such as 30s, 5m or 720h (DEWPOINT_STORE_TTL)")
}
