//go:build unix

package sessiontest

import "syscall"

// Freeze suspends the server. Connections stay open and new ones are accepted, but nothing is answered until Thaw.
func (s *Server) Freeze() {
	s.t.Helper()
	ok(s.t, s.run.Command.Process.Signal(syscall.SIGSTOP))
}

// Thaw resumes a frozen server.
func (s *Server) Thaw() {
	s.t.Helper()
	ok(s.t, s.run.Command.Process.Signal(syscall.SIGCONT))
}
