//go:build !linux

package cluster

import "syscall"

// dieWithParent can do nothing here.
func dieWithParent() *syscall.SysProcAttr { return nil }
