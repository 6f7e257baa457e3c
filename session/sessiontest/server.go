package sessiontest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/proto"

	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// noRedis names the environment variable that lets tests pass where no redis-server is installed.
const noRedis = "DEWPOINT_TEST_NO_REDIS"

// durable makes a server write and sync before it answers. With "everysec" it may delay even the write.
var durable = []string{"--appendonly", "yes", "--appendfsync", "always"}

// patience is how long Eventually waits. Only broken servers take that long.
const patience = time.Minute

// replication is the command that shows a server's role and its link to its master.
var replication = []string{"INFO", "replication"}

// host is the address of all servers.
const host = "127.0.0.1"

// Server is a real redis-server for one test, with its own port and directory.
type Server struct {
	Addr string

	t    testing.TB
	port string
	args []string
	dir  string
	bus  string           // its second port if it is a node of a Cluster
	run  *process.Process // nil if it was killed
}

// StartRedis starts a redis-server whose writes survive Kill, and stops it when the test ends. args are further options,
// such as "--requirepass", "secret". If redis-server is not installed, the test fails, or with DEWPOINT_TEST_NO_REDIS=1 is
// skipped.
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
	port := freePort(t)
	s := &Server{Addr: net.JoinHostPort(host, port), t: t, port: port, dir: t.TempDir()}
	s.args = append([]string{"--port", port, "--bind", host, "--dir", s.dir, "--save", "", "--loglevel", "warning", "--repl-diskless-sync-delay", "0"}, args...)
	t.Cleanup(s.Kill)
	return s
}

func needRedis(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	if os.Getenv(noRedis) == "1" {
		t.Skipf("NOT TESTED: redis-server is not installed, and %s=1 is set", noRedis)
	}
	t.Fatalf("redis-server is not installed: install it (apt-get install redis-server, brew install redis), or set %s=1 to skip these tests", noRedis)
}

func freePort(t testing.TB) string {
	t.Helper()
	return strings.TrimPrefix(must(process.FreeAddr())(t), host+":")
}

// File writes a file to the server's directory and returns its path.
func (s *Server) File(name string, content []byte) string {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	ok(s.t, os.WriteFile(path, content, 0o600))
	return path
}

// Start starts the server. After Kill, it starts with the same port and data. It returns when the server has read its data
// and answers.
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

// Launch starts the server with further options, once, and does not wait.
func (s *Server) Launch(args ...string) {
	s.t.Helper()
	s.run = must(process.Start("redis-server", slices.Concat(s.args, args)...))(s.t)
}

// Kill ends the server as a crash would.
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

// Eventually calls check until it returns nil.
func Eventually(t testing.TB, what string, check func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if err = check(); err == nil {
			return
		}
	}
	t.Fatalf("waited in vain until %s: %v", what, err)
}

// Do sends one command to the server and fails the test if it returns an error.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	reply, err := Command(s.Addr, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return reply
}

// await sends a command until the reply contains all of want.
func (s *Server) await(command []string, want ...string) {
	s.t.Helper()
	Eventually(s.t, fmt.Sprintf("%v has %q", command, want), func() error {
		reply, err := Command(s.Addr, command...)
		missing := slices.ContainsFunc(want, func(part string) bool { return !strings.Contains(reply, part) })
		if err == nil && missing {
			err = fmt.Errorf("the reply is %q", reply)
		}
		return err
	})
}

// Follow makes the server a replica of a master, and waits until it has caught up.
func (s *Server) Follow(master *Server) {
	s.t.Helper()
	s.Do("REPLICAOF", host, master.port)
	s.awaitLink()
}

func (s *Server) awaitLink() {
	s.t.Helper()
	s.await(replication, "master_link_status:up")
}

// Command sends one command to a Redis server over a new connection. It returns the reply as text, with the elements of an
// array as lines.
func Command(addr string, args ...string) (string, error) {
	conn, err := net.DialTimeout("tcp", addr, patience)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return "", err
	}
	raw, err := proto.NewClient(conn).Do(args...)
	if err != nil {
		return "", err
	}
	reply, err := proto.Parse(raw)
	if refused, is := reply.(error); is {
		return "", fmt.Errorf("redis: %w", refused)
	}
	return lines(reply), err
}

func lines(reply any) string {
	switch reply := reply.(type) {
	case []any:
		all := make([]string, len(reply))
		for i, element := range reply {
			all[i] = lines(element)
		}
		return strings.Join(all, "\n")
	case nil, error:
		return ""
	}
	return strings.TrimPrefix(fmt.Sprint(reply), "$-1\r\n") // a null string is given as this
}
