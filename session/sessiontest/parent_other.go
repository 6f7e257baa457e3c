//go:build !linux

package sessiontest

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
