package sessiontest

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/process"
)

// noRedis names the environment variable that lets tests pass where no redis-server is installed.
const noRedis = "DEWPOINT_TEST_NO_REDIS"

// durable makes a server write and sync before it answers. With "everysec" it may put off even the write.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

const patience = time.Minute // for a server to start, or several to agree; only broken ones take it

// Server is a real redis-server of the test's own, on a free port and in a directory of its own.
type Server struct {
	Addr string

	t    testing.TB
	args []string
	dir  string
	run  *process.Process // nil: it was killed
}

// StartRedis starts a redis-server whose writes outlive its being killed, and stops it with the test. args are further
// options, such as "--requirepass", "secret". It fails the test where redis-server is missing, unless
// DEWPOINT_TEST_NO_REDIS=1 allows to skip it.
func StartRedis(t testing.TB, args ...string) *Server {
	t.Helper()
	s := newServer(t, slices.Concat(durable, args)...)
	s.Start()
	return s
}

// newServer prepares a server on a free port.
func newServer(t testing.TB, args ...string) *Server {
	t.Helper()
	needRedis(t)
	s := &Server{Addr: freeAddr(t), t: t, dir: t.TempDir()}
	_, port := s.hostPort()
	s.args = append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", s.dir, "--save", "", "--loglevel", "warning", "--repl-diskless-sync-delay", "0"}, args...)
	t.Cleanup(s.Kill)
	return s
}

func needRedis(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	if os.Getenv(noRedis) == "1" {
		t.Skipf("NOT TESTED: redis-server is not installed, and %s=1 allows to go on without it", noRedis)
	}
	t.Fatalf("redis-server is not installed: install it (apt-get install redis-server, brew install redis), or set %s=1 to skip what needs it", noRedis)
}

// freeAddr is a free address on the loopback.
func freeAddr(t testing.TB) string {
	t.Helper()
	return must(process.FreeAddr())(t)
}

// hostPort is the address in two parts.
func (s *Server) hostPort() (host, port string) { return hostPort(s.t, s.Addr) }

func hostPort(t testing.TB, addr string) (host, port string) {
	t.Helper()
	host, port, err := net.SplitHostPort(addr)
	ok(t, err)
	return host, port
}

// File writes a file into the server's directory and gives its path.
func (s *Server) File(name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	ok(s.t, os.WriteFile(path, content, 0o600))
	return path
}

// Start starts the server, again if it was killed: on the same port and with what it had written. It returns when the
// server listens and has read its data.
func (s *Server) Start() {
	s.t.Helper()
	s.Launch()
	Eventually(s.t, "redis-server answers", func() error {
		_, err := Command(s.Addr, "PING")
		if err != nil && strings.Contains(err.Error(), "NOAUTH") {
			return nil
		}
		return err
	})
}

// Launch is Start without waiting, with further options for this once.
func (s *Server) Launch(args ...string) {
	s.t.Helper()
	s.run = must(process.Start("redis-server", slices.Concat(s.args, args)...))(s.t)
}

// Kill ends the server at once, as a crash would.
func (s *Server) Kill() {
	if s.run == nil {
		return
	}
	s.run.Kill()
	if text := s.run.Log.String(); s.t.Failed() && text != "" {
		s.t.Logf("redis-server at %s wrote:\n%s", s.Addr, text)
	}
	s.run = nil
}

// Eventually asks again until the answer is good.
func Eventually(t testing.TB, what string, ask func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = ask(); err == nil {
			return
		}
	}
	t.Fatalf("waited in vain until %s: %v", what, err)
}
