package schema

import (
	"reflect"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
)

// Agreed lists the keys that the chart is made for and that a Config may not have yet, with their types, by path. It
// has no effect on keys that a Config has.
func Agreed() map[string]reflect.Type {
	text, secret := reflect.TypeFor[string](), reflect.TypeFor[config.Secret]()
	duration, count := reflect.TypeFor[time.Duration](), reflect.TypeFor[int]()
	agreed := map[string]reflect.Type{
		"shutdown.delay":                       duration,
		"shutdown.timeout":                     duration,
		"admin.hosts":                          reflect.TypeFor[[]string](),
		"store.redis.url":                      secret,
		"store.redis.sentinel_username":        text,
		"store.redis.sentinel_password":        secret,
		"store.redis.tls_ca":                   text,
		"store.redis.tls_cert":                 text,
		"store.redis.tls_key":                  text,
		"store.redis.tls_server_name":          text,
		"store.encryption.active":              text,
		"store.encryption.keys":                reflect.TypeFor[map[string]config.Secret](),
		"tenants[].log_content":                reflect.TypeFor[bool](),
		"tenants[].limits.concurrent":          count,
		"tenants[].limits.max_body":            reflect.TypeFor[config.Bytes](),
		"tenants[].limits.requests_per_minute": count,
		"tenants[].limits.tokens_per_minute":   count,
	}
	for path := range agreed {
		if Has(path) {
			delete(agreed, path)
		}
	}
	return agreed
}

// Has says whether a Config has a key of that path.
func Has(path string) bool {
	t := reflect.TypeFor[config.Config]()
	for name := range strings.SplitSeq(path, ".") {
		name, element := strings.CutSuffix(name, "[]")
		field, ok := fieldOf(t, name)
		if !ok {
			return false
		}
		if t = field; element {
			t = t.Elem()
		}
	}
	return true
}

func fieldOf(t reflect.Type, name string) (reflect.Type, bool) {
	if t.Kind() != reflect.Struct {
		return nil, false
	}
	for _, key := range keys(t) {
		if key.name == name {
			return key.field, true
		}
	}
	return nil, false
}

// addAgreed adds what is agreed directly below a section.
func (w walker) addAgreed(properties schema, section string) {
	for path, t := range Agreed() {
		below, inside := strings.CutPrefix("."+path, strings.TrimSuffix("."+section, ".")+".")
		if !inside {
			continue
		}
		name, rest, deeper := strings.Cut(below, ".")
		switch {
		case strings.HasSuffix(name, "[]"):
		case !deeper:
			properties[name] = w.of(t, path)
		case properties[name] == nil:
			fresh := schema{}
			w.addAgreed(fresh, strings.TrimSuffix(path, "."+rest))
			properties[name] = closed(fresh)
		}
	}
}
