//go:build !linux

package process

import "syscall"

// DieWithParent can do nothing here.
func DieWithParent(syscall.Signal) *syscall.SysProcAttr { return nil }
