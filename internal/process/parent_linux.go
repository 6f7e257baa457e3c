package e2e

import "syscall"

// dieWithParent ends a process even if the test's own is killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
