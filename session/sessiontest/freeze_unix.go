//go:build unix

package sessiontest

import "syscall"

// Freeze stops the server as it is: its connections stay open, new ones are taken, and nothing is answered until Thaw.
func (s *Server) Freeze() {
	s.t.Helper()
	ok(s.t, s.run.Command.Process.Signal(syscall.SIGSTOP))
}

// Thaw lets a frozen server go on.
func (s *Server) Thaw() {
	s.t.Helper()
	ok(s.t, s.run.Command.Process.Signal(syscall.SIGCONT))
}
