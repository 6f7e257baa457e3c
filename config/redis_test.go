package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestRedisEndpoint(t *testing.T) {
	f := func(text string, want Redis) {
		t.Helper()
		got, err := Redis{URL: Secret(text), MasterName: "main", TLSCA: "ca.pem"}.Endpoint()
		want.MasterName, want.TLSCA = "main", "ca.pem"
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
	f("", Redis{})
	f("redis://host", Redis{Addrs: []string{"host:6379"}})
	f("redis://host:1/", Redis{Addrs: []string{"host:1"}})
	f("rediss://host/7", Redis{Addrs: []string{"host:6379"}, DB: 7, TLS: true})
	f("redis://:p%40ss@host", Redis{Addrs: []string{"host:6379"}, Password: "p@ss"})
	f("redis://user:pass@[::1]:2/0", Redis{Addrs: []string{"[::1]:2"}, Username: "user", Password: "pass"})
}

// TestRedisEndpointRefuses: an error says what is wrong without any part of the URL, which may contain a password anywhere.
func TestRedisEndpointRefuses(t *testing.T) {
	for _, text := range []string{
		"MARKER", "http://MARKER@host", "redis://", "redis://user:MARKER@", "redis://:MARKER@host:port", "redis://:MARKER@host:0",
		"redis://host:99999/MARKER", "redis://host/MARKER", "redis://host/-1", "redis://host/0/MARKER", "redis://host/4294967296",
		"redis://host/0?password=MARKER", "redis://host/0#MARKER", "redis://:MARKER%zz@host", "unix:///MARKER.sock", "redis://host?",
	} {
		if got, err := (Redis{URL: Secret(text)}).Endpoint(); err == nil || strings.Contains(err.Error(), "MARKER") {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
	}
}
