package sessiontest

import (
	"fmt"
	"strings"
	"testing"
)

// StartReplica starts a server that follows a master, and waits until it has caught up.
func StartReplica(t testing.TB, master *Server, args ...string) *Server {
	t.Helper()
	s := StartRedis(t, args...)
	s.Follow(master)
	return s
}

// Follow makes the server a replica, and waits until it has caught up.
func (s *Server) Follow(master *Server) {
	s.t.Helper()
	host, port := master.hostPort()
	s.Do("REPLICAOF", host, port)
	s.awaitLink()
}

func (s *Server) awaitLink() {
	s.t.Helper()
	Eventually(s.t, "the replica follows its master", func() error { return s.reports("replication", "master_link_status:up") })
}

// reports is an error unless a section of INFO holds the line.
func (s *Server) reports(section, line string) error {
	info, err := Command(s.Addr, "INFO", section)
	if err == nil && !strings.Contains(info, line) {
		err = fmt.Errorf("no %s in %s", line, info)
	}
	return err
}

// Do sends one command to the server and fails the test for an error.
func (s *Server) Do(args ...string) string {
	s.t.Helper()
	answer, err := Command(s.Addr, args...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return answer
}

// CatchUp waits until the replica has all that its master had been told before the call.
func (s *Server) CatchUp(master *Server) {
	s.t.Helper()
	want := master.offset("master_repl_offset:")
	Eventually(s.t, "the replica has caught up", func() error {
		if got := s.offset("slave_repl_offset:"); got < want {
			return fmt.Errorf("it is at %d of %d", got, want)
		}
		return nil
	})
}

func (s *Server) offset(field string) (n int64) {
	s.t.Helper()
	_, rest, _ := strings.Cut(s.Do("INFO", "replication"), field)
	ok(s.t, second(fmt.Sscan(rest, &n)))
	return n
}
