package process

import "syscall"

// DieWithParent returns attributes that send a process a signal when its parent ends, even if the parent is killed.
func DieWithParent(by syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: by}
}
