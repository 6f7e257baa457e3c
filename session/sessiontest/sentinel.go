package sessiontest

import (
	"fmt"
	"net"
	"testing"
)

// StartSentinel starts a Sentinel that watches master under the given name. As StartRedis, it needs redis-server.
func StartSentinel(t testing.TB, name string, master *Server) *Server {
	t.Helper()
	host, port, err := net.SplitHostPort(master.Addr)
	ok(t, err)
	s := newServer(t)
	_, own, err := net.SplitHostPort(s.Addr)
	ok(t, err)
	config := fmt.Sprintf("port %s\nbind 127.0.0.1\ndir %s\nsentinel monitor %s %s %s 1\n", own, s.dir, name, host, port)
	s.args = []string{s.File("sentinel.conf", []byte(config)), "--sentinel"}
	s.Start()
	return s
}
