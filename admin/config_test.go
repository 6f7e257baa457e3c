package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
)

// TestConfigShowsNoSecret fills every field of a configuration and checks that no secret among them is shown.
func TestConfigShowsNoSecret(t *testing.T) {
	cfg := config.Default()
	var planted []string
	fill(reflect.ValueOf(cfg).Elem(), &planted)
	if len(planted) < 7 {
		t.Fatalf("only %d secrets planted", len(planted))
	}
	text, err := cfg.EffectiveJSON()
	must(t, err)
	for _, secret := range planted {
		if strings.Contains(string(text), secret) {
			t.Errorf("shown: %s", secret)
		}
	}
	if n := strings.Count(string(text), config.Redacted); n < 6 {
		t.Errorf("%d redacted secrets are shown as such", n)
	}
}

// fill sets every field below v and appends the secrets to planted.
func fill(v reflect.Value, planted *[]string) {
	switch {
	case v.Type() == reflect.TypeFor[config.Secret]():
		secret := fmt.Sprintf("planted-secret-%d", len(*planted))
		*planted = append(*planted, secret)
		v.SetString(secret)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), planted)
		}
	case v.Kind() == reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			if c, is := v.Interface().(*config.Condenser); is {
				*c = catalogue.Default(catalogue.TypeLLM)
				return
			}
		}
		fill(v.Elem(), planted)
	case v.Kind() == reflect.Map && v.Type().Elem().Kind() == reflect.Struct:
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one, planted)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("name"), one)
	case v.Type() == reflect.TypeFor[map[string]config.Secret]():
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one, planted)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("name"), one)
	case v.Kind() == reflect.Slice && v.Type() != reflect.TypeFor[[]config.Condenser]():
		one := reflect.New(v.Type().Elem()).Elem()
		fill(one, planted)
		v.Set(reflect.Append(reflect.MakeSlice(v.Type(), 0, 1), one))
	}
}

// TestConfigInForce checks that a reload is visible, and that secrets are shown as redacted.
func TestConfigInForce(t *testing.T) {
	r := start(t, func(c *config.Config) {
		c.Admin.Token, c.Upstream.APIKey, c.Store.Secret = token, "sk-upstream-key", "a-secret-of-the-store"
	})
	a := r.call(http.MethodGet, "/api/v1/config")
	for _, secret := range []string{token, "sk-upstream-key", "a-secret-of-the-store"} {
		if strings.Contains(string(a.body), secret) {
			t.Errorf("shown: %s", secret)
		}
	}
	var shown struct {
		Admin     struct{ Token string }
		Condenser struct {
			MaxSize int `json:"max_size"`
		}
		Limits struct {
			MaxBody string `json:"max_body"`
		}
	}
	r.get("/api/v1/config", &shown)
	if shown.Admin.Token != config.Redacted || shown.Condenser.MaxSize != 10 || shown.Limits.MaxBody != "64MiB" {
		t.Errorf("%+v", shown)
	}
	now := *r.cfg
	now.Condenser.MaxSize, now.Limits.MaxBody = 99, 1<<20 // the second change needs a restart
	must(t, r.app.Reload(&now))
	if r.get("/api/v1/config", &shown); shown.Condenser.MaxSize != 99 || shown.Limits.MaxBody != "64MiB" {
		t.Errorf("after the reload: %+v", shown)
	}
}

// TestTenantsAreListedWithTheirLimits checks that tenants are listed with their own limits or the common ones.
func TestTenantsAreListedWithTheirLimits(t *testing.T) {
	r := start(t, func(c *config.Config) {
		sum := strings.Repeat("ab", 32)
		c.Limits.Tenant = limit.Tenant{Concurrent: 20, Budget: limit.Budget{Tokens: 9, Period: 30 * limit.Day}}
		c.Tenants = []config.Tenant{
			{Name: "a", APIKeys: []config.APIKey{{SHA256: sum}}, LogContent: true},
			{Name: "b", APIKeys: []config.APIKey{{SHA256: sum[1:] + "c"}}, Limits: &limit.Tenant{Body: 1 << 20, Tokens: 5}},
		}
	})
	type budget struct {
		Tokens       int
		Period, Then string
	}
	type limits struct {
		Concurrent int
		Body       int `json:"max_body"`
		Tokens     int `json:"tokens_per_minute"`
		Budget     budget
	}
	var list struct {
		Tenants []struct {
			Keys       int
			LogContent bool `json:"log_content"`
			Limits     limits
		}
	}
	r.get("/api/v1/tenants", &list)
	if len(list.Tenants) != 2 {
		t.Fatalf("%+v", list)
	}
	if a := list.Tenants[0]; !a.LogContent || a.Limits != (limits{Concurrent: 20, Budget: budget{9, "30d", limit.Refuse}}) || a.Keys != 1 {
		t.Errorf("%+v", a)
	}
	if b := list.Tenants[1]; b.LogContent || b.Limits != (limits{Body: 1 << 20, Tokens: 5, Budget: budget{Period: "0s"}}) {
		t.Errorf("%+v", b)
	}
}

// noSettings implements admin.Settings without tenants and overrides.
type noSettings struct{}

func (noSettings) Effective() ([]byte, error)  { return []byte("{}"), nil }
func (noSettings) Tenants() []admin.Tenant     { return nil }
func (noSettings) Overrides() []admin.Override { return nil }

func (noSettings) SetOverride(context.Context, admin.Override) error { return nil }
