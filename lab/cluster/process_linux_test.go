package cluster

import "syscall"

// dieWithParent ends a process even if the test is killed.
func dieWithParent() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
