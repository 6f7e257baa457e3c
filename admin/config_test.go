package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/admin"
	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/limit"
	"github.com/dewpoint-proxy/dewpoint/internal/model"
	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/boltstore"
)

// TestConfigShowsNoSecret plants one in every place of a configuration that can hold one, and something in every other.
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

// fill sets every field below v, and lists the secrets.
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
				*c = config.NewCondenser(config.TypeLLM)
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

// TestConfigInForce: a reload shows, and so does a secret's presence.
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
	now.Condenser.MaxSize, now.Limits.MaxBody = 99, 1<<20 // the second needs a restart
	must(t, r.app.Reload(&now))
	if r.get("/api/v1/config", &shown); shown.Condenser.MaxSize != 99 || shown.Limits.MaxBody != "64MiB" {
		t.Errorf("after the reload: %+v", shown)
	}
}

// TestTenantsAreTold: with limits of their own, or those of all.
func TestTenantsAreTold(t *testing.T) {
	r := start(t, func(c *config.Config) {
		sum := strings.Repeat("ab", 32)
		c.Limits.Tenant = limit.Tenant{Concurrent: 20}
		c.Tenants = []config.Tenant{
			{Name: "a", APIKeys: []config.APIKey{{SHA256: sum}}, LogContent: true},
			{Name: "b", APIKeys: []config.APIKey{{SHA256: sum[1:] + "c"}}, Limits: &limit.Tenant{Body: 1 << 20, Tokens: 5}},
		}
	})
	var list struct{ Tenants []admin.Tenant }
	r.get("/api/v1/tenants", &list)
	if len(list.Tenants) != 2 {
		t.Fatalf("%+v", list)
	}
	if a := list.Tenants[0]; !a.LogContent || a.Limits != (limit.Tenant{Concurrent: 20}) || a.Keys != 1 {
		t.Errorf("%+v", a)
	}
	if b := list.Tenants[1]; b.LogContent || b.Limits != (limit.Tenant{Body: 1 << 20, Tokens: 5}) {
		t.Errorf("%+v", b)
	}
}

// prices is a Settings with some.
type prices map[string]model.Price

func (prices) Effective() ([]byte, error) { return []byte("{}"), nil }
func (prices) Tenants() []admin.Tenant    { return nil }
func (prices) Levers() []admin.Lever      { return nil }

func (prices) SetLever(context.Context, admin.Lever) error { return nil }

func (p prices) Price(name string) (model.Price, bool) {
	price, known := p[name]
	return price, known
}

// TestSavingsByHand holds the reckoning against figures worked out by hand.
func TestSavingsByHand(t *testing.T) {
	store, err := boltstore.Open(boltstore.Options{Path: t.TempDir() + "/store.db"})
	must(t, err)
	defer store.Close()
	clock := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	at := 0
	request := func(messages int) { // each message has 100 tokens
		clock = clock.Add(time.Minute)
		b := session.Batch{At: at, Thread: session.Thread{ID: "t", Session: "s", Purpose: session.PurposeMain, Len: at + messages, Seen: clock}}
		for range messages {
			at++
			b.Events = append(b.Events, session.Event{Pos: at, Kind: session.User, Chain: session.Hash{byte(at)}, Tokens: 100, Time: clock})
		}
		must(t, store.Append(t.Context(), b))
	}
	request(10)
	_, err = store.Condense(t.Context(), "t", session.Condensation{
		Prefix: 8, Forgotten: []session.Range{{From: 3, To: 9}}, Offset: 3, Summary: "x", SummaryTokens: 50, Reason: session.ReasonEvents,
		Condenser: "llm", Model: "cheap", Making: session.Making{Request: "dear"}, Before: session.Size{Events: 10, Tokens: 1000}, After: session.Size{Events: 5, Tokens: 450},
		Usage: session.Usage{Input: 2000, Cached: 500, Output: 50}, Time: clock,
	})
	must(t, err)
	request(2)
	request(2)
	p := prices{"dear": {Input: 2, CachedInput: 0.5, CacheWrite: 2.5, Output: 8}, "cheap": {Input: 1, CachedInput: 0.1, CacheWrite: 1, Output: 4}}
	f := func(p prices) savingsShown { return readSavings(t, store, p) }
	got := f(p)
	// Three requests were 550 tokens smaller; 250 of 450 tokens follow what stays the same and were written anew.
	want := moneyShown{NotSent: 3 * 550 * 0.5 / 1e6, Rewrites: -250 * 2.0 / 1e6, Own: -(1500*1 + 500*0.1 + 50*4.0) / 1e6}
	want.Net = want.NotSent + want.Rewrites + want.Own
	if got.Tokens != 1650 || got.USD == nil || !near(*got.USD, want) || want.Net >= 0 {
		t.Errorf("got %+v %+v, want %+v", got, got.USD, want)
	}
	delete(p, "cheap")
	if got := f(p); got.USD != nil || len(got.Unpriced) != 1 || got.Unpriced[0] != "cheap" || got.Tokens != 1650 {
		t.Errorf("with an unknown price: %+v", got)
	}
}
