package config

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
)

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
