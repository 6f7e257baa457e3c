package redisstore_test

import (
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
)

func TestOptions(t *testing.T) {
	addrs := []string{"127.0.0.1:6379"}
	two := append(addrs, "127.0.0.1:6380")
	for _, tt := range []struct {
		name string
		o    redisstore.Options
		want string // in the error, empty if it opens
	}{
		{"least", redisstore.Options{Addrs: addrs}, ""},
		{"sentinel", redisstore.Options{Addrs: two, MasterName: "m"}, ""},
		{"cluster", redisstore.Options{Addrs: two, Cluster: true}, ""},
		{"user", redisstore.Options{Addrs: addrs, Username: "u", Password: "p", DB: 3}, ""},
		{"no address", redisstore.Options{}, "addrs"},
		{"empty address", redisstore.Options{Addrs: []string{""}}, "addrs"},
		{"no port", redisstore.Options{Addrs: []string{"localhost"}}, "addrs"},
		{"two servers", redisstore.Options{Addrs: two}, "addrs"},
		{"both", redisstore.Options{Addrs: two, Cluster: true, MasterName: "m"}, "master_name"},
		{"cluster db", redisstore.Options{Addrs: two, Cluster: true, DB: 1}, "db"},
		{"negative db", redisstore.Options{Addrs: addrs, DB: -1}, "db"},
		{"user alone", redisstore.Options{Addrs: addrs, Username: "u"}, "username"},
		{"negative ttl", redisstore.Options{Addrs: addrs, TTL: -1}, "ttl"},
		{"tiny ttl", redisstore.Options{Addrs: addrs, TTL: time.Microsecond}, "ttl"},
		{"negative timeout", redisstore.Options{Addrs: addrs, Timeout: -1}, "timeout"},
		{"braces", redisstore.Options{Addrs: addrs, Prefix: "{x}"}, "prefix"},
		{"all at once", redisstore.Options{Prefix: "{", DB: -1, Password: "hush"}, "db"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := redisstore.Open(tt.o)
			if err == nil {
				defer s.Close()
			}
			if (err == nil) != (tt.want == "") || err != nil && (!strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hush")) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
