//go:build unix

package platform

import (
	"errors"
	"os"
	"syscall"
)

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

// TryLock locks a file until it is closed. It does not wait: it returns false if another process, or another open file of this process, has
// locked it.
func TryLock(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == syscall.EWOULDBLOCK || err == syscall.EINTR {
		return false, nil
	}
	return err == nil, os.NewSyscallError("flock", err)
}

// SyncFolder makes the names of the files in a folder durable, so that a file that was renamed keeps its new name after a crash of the machine.
func SyncFolder(path string) error {
	folder, err := os.Open(path) //nolint:gosec // of a file that the operator names
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// EnableEscapes makes a terminal understand escape sequences, and reports whether it does.
func EnableEscapes(*os.File) bool { return true }
