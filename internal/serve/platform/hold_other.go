//go:build !linux

package platform

import (
	"errors"
	"os"
	"syscall"
)

// Holdable does nothing: see CanHold.
func Holdable(_, _ string, _ syscall.RawConn) error { return nil }

// Hold is not supported: other systems may connect clients to a socket that is bound but does not listen.
func Hold(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// CanHold reports whether Hold works.
const CanHold = false
