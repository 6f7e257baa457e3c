//go:build unix

package platform

import "syscall"

// Peek returns the state of a socket without waiting and without consuming bytes.
func Peek(socket uintptr) State {
	var b [1]byte
	n, _, err := syscall.Recvfrom(int(socket), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	switch {
	case err == syscall.EAGAIN, err == syscall.EINTR:
		return Silent
	case err != nil, n == 0:
		return Closed
	}
	return Readable
}
