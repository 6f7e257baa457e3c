//go:build !linux

package process

import "syscall"

// DieWithParent returns nil: the system does not support it.
func DieWithParent(syscall.Signal) *syscall.SysProcAttr { return nil }
