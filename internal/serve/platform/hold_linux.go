package platform

import (
	"errors"
	"net/netip"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Holdable prepares a socket that is about to listen, so that Hold works for its port. It is for net.ListenConfig.
func Holdable(_, _ string, socket syscall.RawConn) error {
	var err error
	failed := socket.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
	return errors.Join(failed, os.NewSyscallError("setsockopt", err))
}

// Hold keeps other users from listening on an IPv4 port that a Holdable socket of this user listens on, until the file is closed in all processes
// that have it. Connections still go to the process that listens. Once that has ended, they are refused.
//
// Linux lets sockets share a port if all of them ask for it and belong to one user, and connects nobody to a socket that is bound but does not
// listen. The socket must not set SO_REUSEADDR as listeners do: then any user's could take the port.
func Hold(address string) (*os.File, error) {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	held := os.NewFile(uintptr(fd), address)
	err = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	if err == nil {
		err = unix.Bind(fd, &unix.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
	}
	if err != nil {
		return nil, errors.Join(os.NewSyscallError("bind", err), held.Close())
	}
	return held, nil
}

// CanHold reports whether Hold works.
const CanHold = true
