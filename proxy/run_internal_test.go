package proxy

import (
	"net"
	"testing"
)

// A run's base URL works only for clients on this machine, and only while the run lasts.
func TestRunsAreForThisMachine(t *testing.T) {
	const id = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	s := &Server{o: Options{Runs: func(asked string) (Run, bool) { return Run{}, asked == id }}}
	at := func(ip string) net.Addr { return &net.TCPAddr{IP: net.ParseIP(ip), Port: 1} }
	for _, c := range []struct {
		id   string
		from net.Addr
		want bool
	}{
		{id, at("127.0.0.1"), true},
		{id, at("::1"), true},
		{id, at("192.0.2.1"), false},
		{id, at("10.0.0.1"), false},
		{id, nil, false},
		{"ABCDEFGHIJKLMNOPQRSTUVWXYA", at("127.0.0.1"), false},
	} {
		if _, known := s.run(c.id, c.from); known != c.want {
			t.Errorf("%s from %v: %t", c.id, c.from, known)
		}
	}
	if _, known := new(Server).run(id, at("127.0.0.1")); known {
		t.Error("a server without runs has one")
	}
}

func TestPathsOfRuns(t *testing.T) {
	for path, rest := range map[string]string{
		"/run/ABCDEFGHIJKLMNOPQRSTUVWXYZ/v1/messages": "/v1/messages",
		"/run/ABCDEFGHIJKLMNOPQRSTUVWXYZ/":            "/",
		"/run/ABCDEFGHIJKLMNOPQRSTUVWXYZ":             "",
		"/run/@cf/meta/llama":                         "-", // an upstream's own
		"/run/ABCDEFGHIJKLMNOPQRSTUVWXYZA/v1":         "-",
		"/v1/run/ABCDEFGHIJKLMNOPQRSTUVWXYZ":          "-",
		"/run":                                        "-",
	} {
		got := "-"
		if found := runPath.FindStringSubmatch(path); found != nil {
			got = found[2]
		}
		if got != rest {
			t.Errorf("%s is %q, want %q", path, got, rest)
		}
	}
}
