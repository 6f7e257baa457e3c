package source

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"go.uber.org/zap/zapcore"
	"pgregory.net/rapid"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/test/property"
)

// fillSecrets sets every Secret in v, and returns how many there were.
func fillSecrets(v reflect.Value, secret config.Secret) (count int) {
	switch {
	case v.Type() == reflect.TypeFor[config.Secret]():
		v.Set(reflect.ValueOf(secret))
		return 1
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return fillSecrets(v.Elem(), secret)
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			count += fillSecrets(v.Field(i), secret)
		}
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			count += fillSecrets(v.Index(i), secret)
		}
	case v.Kind() == reflect.Map:
		for _, name := range v.MapKeys() {
			entry := reflect.New(v.Type().Elem()).Elem()
			entry.Set(v.MapIndex(name))
			count += fillSecrets(entry, secret)
			v.SetMapIndex(name, entry)
		}
	}
	return count
}

func secretConfig(t *testing.T, marker config.Secret) *config.Config {
	cfg := mustLoad(t, Input{File: "testdata/good.reference.yaml", Env: fixtureEnv()})
	cfg.Store.Encryption = config.Encryption{Active: "k", Keys: map[string]config.Secret{"k": "a"}}
	cfg.Condenser.APIKey = new(config.Secret)
	cfg.Tenants[0].Condenser = &config.Condenser{APIKey: new(config.Secret)}
	if filled := fillSecrets(reflect.ValueOf(cfg), marker); filled != 27 {
		t.Fatalf("%d secrets were filled", filled)
	}
	return cfg
}

func TestSecretsNeverShow(t *testing.T) {
	const marker = "sk-MARKER-0123456789"
	cfg := secretConfig(t, marker)
	forms := map[string]string{"Effective": string(effective(t, cfg))}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%08b"} {
		forms[verb] = fmt.Sprintf(verb, cfg) + fmt.Sprintf(verb, *cfg) + fmt.Sprintf(verb, cfg.LLMs) + fmt.Sprintf(verb, cfg.Tenants)
	}
	encoders := map[string]func(any) ([]byte, error){
		"json": json.Marshal, "yaml": yaml.Marshal, "xml": xml.Marshal, "zap": marshalZap, "slog": marshalSlog,
	}
	for name, encode := range encoders {
		for _, value := range []any{cfg.Upstream, &cfg.Tenants[0].Upstream, cfg.LLMs["cheap"], cfg.Store, cfg.Store.Redis} {
			if _, maps := value.(config.Store); maps && name == "xml" {
				continue // it writes no maps
			}
			text, err := encode(value)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			forms[fmt.Sprintf("%s %T", name, value)] = string(text)
		}
	}
	for form, text := range forms {
		if strings.Contains(text, marker) || strings.Contains(strings.ToLower(text), fmt.Sprintf("%x", marker)) {
			t.Errorf("%s shows the secret: %s", form, text)
		}
		if !strings.Contains(text, "redacted") {
			t.Errorf("%s shows no secret at all: %s", form, text)
		}
	}
}

func marshalZap(value any) ([]byte, error) {
	encoder := zapcore.NewJSONEncoder(zapcore.EncoderConfig{})
	if err := encoder.AddReflected("value", value); err != nil {
		return nil, err
	}
	out, err := encoder.EncodeEntry(zapcore.Entry{}, nil)
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func marshalSlog(value any) ([]byte, error) {
	var out bytes.Buffer
	slog.New(slog.NewJSONHandler(&out, nil)).Info("value", "value", value)
	slog.New(slog.NewTextHandler(&out, nil)).Info("value", "value", value)
	return out.Bytes(), nil
}

// Whatever else is wrong with a configuration, no problem shows a secret.
func TestValidationNeverShowsSecrets(t *testing.T) {
	property.Check(t, func(rt *rapid.T) {
		marker := "MARKER" + rapid.StringN(0, 12, -1).Draw(rt, "tail")
		cfg := secretConfig(t, config.Secret(marker))
		cfg.Upstream.BaseURL = "https://user:" + marker + "@example.com/?" + marker
		cfg.Store.Redis.Addrs = []string{marker, ":" + marker}
		cfg.Store.Type = config.StoreRedis
		cfg.Tenants[0].APIKeys[0].SHA256 = marker
		cfg.Tenants[0].Upstream.BaseURL = marker
		cfg.Listen, cfg.Admin.Listen = "MARKER", "MARKER:MARKER"
		err := cfg.Validate()
		if err == nil || strings.Contains(err.Error(), "MARKER") {
			rt.Fatalf("the error is %v", err)
		}
	})
}

// Errors of a file that is cut off or has lost a character, in either format, show no secrets.
func TestDamagedFilesNeverShowSecrets(t *testing.T) {
	const marker = "MARKER-0123"
	for extension, text := range map[string]string{
		".yaml": "admin: {listen: \":1\", token: MARKER-0123}\nupstream:\n  api_key: \"MARKER-0123\"\n  timeout: 1s\n" +
			"store:\n  secret: 'MARKER-0123-long'\n  redis: {password: MARKER-0123, db: 1}\n" +
			"llms:\n  a: {model: m, api_key: \"MARKER-0123\"}\n",
		".toml": "[admin]\nlisten = \":1\"\ntoken = \"MARKER-0123\"\n[upstream]\napi_key = 'MARKER-0123'\n" +
			"[store]\nredis = {password = \"MARKER-0123\", db = 1}\n[llms.a]\nmodel = \"m\"\napi_key = \"MARKER-0123\"\n",
	} {
		mustBuild(t, extension, text)
		for i := range text {
			for _, damaged := range []string{text[:i], text[:i] + text[i+1:]} {
				if _, err := buildText(extension, damaged); err != nil && strings.Contains(err.Error(), marker) {
					t.Errorf("%s damaged at %d (%q): %v", extension, i, text[max(0, i-20):i], err)
				}
			}
		}
	}
}
