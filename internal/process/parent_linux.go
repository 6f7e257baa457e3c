package process

import "syscall"

// DieWithParent ends a process even if the one that started it is killed.
func DieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
