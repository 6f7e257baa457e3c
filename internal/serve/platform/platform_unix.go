//go:build unix

package platform

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
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

// Detached returns attributes of a process that no signal of this one's terminal reaches.
func Detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// Passed lists the signals that a process passes on to the one that it stands for. Hangups and quits from a terminal reach both.
func Passed() []os.Signal {
	return []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
}

// FromTerminal reports whether a signal may come from a terminal that has sent it to all processes in the foreground.
func FromTerminal(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false // there is none
	}
	defer terminal.Close() //nolint:errcheck // only read
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

// ExitCode returns the exit code by which a shell reports that a process has ended.
func ExitCode(p *os.ProcessState) int {
	if status, is := p.Sys().(syscall.WaitStatus); is && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return p.ExitCode()
}

// CanInherit reports whether a child process can be given open files.
const CanInherit = true
