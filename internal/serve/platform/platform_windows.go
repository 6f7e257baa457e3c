package platform

import (
	"math"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// pollDescriptor is a WSAPOLLFD.
type pollDescriptor struct {
	socket          uintptr
	events, returns int16
}

const (
	pollReadNormal = 0x100 // POLLRDNORM
	messagePeek    = 0x2   // MSG_PEEK
)

// wsaPoll returns how many of the sockets can be read without waiting, or are closed.
var wsaPoll = syscall.NewLazyDLL("ws2_32.dll").NewProc("WSAPoll")

// Peek returns the state of a socket without waiting and without consuming bytes. Sockets are in blocking mode on Windows, so it polls first.
func Peek(socket uintptr) State {
	poll := pollDescriptor{socket: socket, events: pollReadNormal}
	if ready, _, _ := wsaPoll.Call(uintptr(unsafe.Pointer(&poll)), 1, 0); ready == 0 {
		return Silent
	}
	var b [1]byte
	buffer := syscall.WSABuf{Len: 1, Buf: &b[0]}
	var n, flags uint32 = 0, messagePeek
	if err := syscall.WSARecv(syscall.Handle(socket), &buffer, 1, &n, &flags, nil, nil); err != nil || n == 0 {
		return Closed
	}
	return Readable
}

// TryLock locks a file until it is closed. It does not wait: it returns false if another process, or another open file of this process, has
// locked it.
func TryLock(f *os.File) (bool, error) {
	last := windows.Overlapped{Offset: math.MaxUint32, OffsetHigh: math.MaxUint32} // a byte that nothing reads or writes
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &last)
	if err == windows.ERROR_LOCK_VIOLATION {
		return false, nil
	}
	return err == nil, os.NewSyscallError("LockFileEx", err)
}

// SyncFolder does nothing: Windows syncs no folders, and NTFS logs changes of names.
func SyncFolder(string) error { return nil }

// EnableEscapes makes a console understand escape sequences, and reports whether it does: those before Windows 10 do not.
func EnableEscapes(f *os.File) bool {
	var mode uint32
	console := windows.Handle(f.Fd())
	if windows.GetConsoleMode(console, &mode) != nil {
		return false
	}
	return windows.SetConsoleMode(console, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// Detached returns attributes of a process that no signal of this one's console reaches.
func Detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS, HideWindow: true}
}

// Passed lists the signals that a process passes on to the one that it stands for. The console sends them to both.
func Passed() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }

// FromTerminal reports whether a signal may come from a console that has sent it to all processes.
func FromTerminal(os.Signal) bool { return true }

// ExitCode returns the exit code by which a shell reports that a process has ended.
func ExitCode(p *os.ProcessState) int { return p.ExitCode() }

// CanInherit reports whether a child process can be given open files.
const CanInherit = false
