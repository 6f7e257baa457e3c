package config

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
)

// A key is sent only to the server for which it was configured.
func TestUpstreamFor(t *testing.T) {
	cfg := Default()
	cfg.Upstream = Upstream{BaseURL: "https://a/v1/", APIKey: "key-a", Timeout: time.Minute}
	for name, c := range map[string]struct{ tenant, want Upstream }{
		"inherits":         {Upstream{}, Upstream{"https://a/v1", "key-a", time.Minute, false, ""}},
		"own key":          {Upstream{APIKey: "own"}, Upstream{"https://a/v1", "own", time.Minute, false, ""}},
		"own URL":          {Upstream{BaseURL: "https://b/v1/"}, Upstream{"https://b/v1", "", time.Minute, false, ""}},
		"same URL":         {Upstream{BaseURL: "https://a/v1"}, Upstream{"https://a/v1", "key-a", time.Minute, false, ""}},
		"own roles":        {Upstream{AlternateRoles: true}, Upstream{"https://a/v1", "key-a", time.Minute, true, ""}},
		"everything":       {Upstream{"https://b", "own", time.Hour, false, ""}, Upstream{"https://b", "own", time.Hour, false, ""}},
		"key without host": {Upstream{APIKey: "own", Timeout: 1}, Upstream{"https://a/v1", "own", 1, false, ""}},
		"own compaction":   {Upstream{Compaction: CompactionAnswer}, Upstream{"https://a/v1", "key-a", time.Minute, false, CompactionAnswer}},
	} {
		if got := cfg.UpstreamFor(Tenant{Upstream: c.tenant}); got != c.want {
			t.Errorf("%s: got %+v %q", name, got, got.APIKey.Reveal())
		}
	}
}

func TestLLMFor(t *testing.T) {
	cfg := Default()
	cfg.LLMs = map[string]LLM{
		"same":  {Model: "m"},
		"keyed": {Model: "m", APIKey: "own"},
		"other": {Model: "m", BaseURL: "http://local/v1/", Timeout: time.Second},
		"own":   {Model: "m", BaseURL: "http://local/v1", APIKey: "own"},
	}
	up := Upstream{BaseURL: "https://a/v1", APIKey: "key-a"}
	for name, want := range map[string]LLM{
		"":      {BaseURL: "https://a/v1", APIKey: "key-a", Timeout: 30 * time.Second},
		"same":  {Model: "m", BaseURL: "https://a/v1", APIKey: "key-a", Timeout: 30 * time.Second},
		"other": {Model: "m", BaseURL: "http://local/v1", Timeout: time.Second},
		"own":   {Model: "m", BaseURL: "http://local/v1", APIKey: "own", Timeout: 30 * time.Second},
		"keyed": {Model: "m", BaseURL: "https://a/v1", APIKey: "key-a", Timeout: 30 * time.Second},
	} {
		if got, known := cfg.LLMFor(name, up); got != want || !known {
			t.Errorf("%q is %+v %q, %v", name, got, got.APIKey.Reveal(), known)
		}
	}
	cfg.Upstream.BaseURL = "https://a/v1/"
	if got, _ := cfg.LLMFor("keyed", up); got.APIKey != "own" {
		t.Errorf("at the configuration's upstream it has the key %q", got.APIKey.Reveal())
	}
	if got, known := cfg.LLMFor("none", up); known {
		t.Errorf("an unknown name gave %+v", got)
	}
}

func TestCondenserFor(t *testing.T) {
	cfg, own := Default(), catalogue.Default(catalogue.TypeNoop)
	if got := cfg.CondenserFor(Tenant{Condenser: &own}); got.Type != catalogue.TypeNoop {
		t.Errorf("the tenant's own is %+v", got)
	}
	if got := cfg.CondenserFor(Tenant{}); got.Type != catalogue.TypeExcerpts {
		t.Errorf("the default is %+v", got)
	}
}

func TestDigest(t *testing.T) {
	sum := sha256.Sum256([]byte("key"))
	for _, key := range []APIKey{{SHA256: hex.EncodeToString(sum[:])}, {Env: "K", Value: "key"}} {
		if got, ok := key.Digest(); got != sum || !ok {
			t.Errorf("%+v has %x, %v", key, got, ok)
		}
	}
	for _, key := range []APIKey{{}, {Env: "K"}, {SHA256: "00"}, {SHA256: "key"}} {
		if _, ok := key.Digest(); ok {
			t.Errorf("%+v has a digest", key)
		}
	}
}
