//go:build !linux

package proxy

import (
	"errors"
	"net"
)

// refuseHandshakes is there on Linux only.
func refuseHandshakes(*net.TCPListener) error { return errors.ErrUnsupported }
