package process

import "syscall"

// DieWithParent ends a process, by a signal, even if the one that started it is killed.
func DieWithParent(by syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: by}
}
