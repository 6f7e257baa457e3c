package sessiontest

import "syscall"

// dieWithParent ends the server even if the test's process is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
