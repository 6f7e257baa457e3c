package proxy

import (
	"errors"
	"net"
	"syscall"
)

// refuseHandshakes has the kernel ignore whoever begins to connect from now on; handshakes under way are finished. A
// listener can then be emptied before it is closed. A client that is ignored asks again after a second and is told then
// that nobody listens.
func refuseHandshakes(l *net.TCPListener) error {
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	const (
		flags    = 13          // their offset in a TCP header
		synOrAck = 0x02 | 0x10 // of them, RFC 9293 section 3.1
		syn      = 0x02
		nothing  = 0
		whole    = 0xffffffff
	)
	program := []syscall.SockFilter{ // classic BPF, see socket(7), SO_ATTACH_FILTER
		{Code: syscall.BPF_LD | syscall.BPF_B | syscall.BPF_ABS, K: flags},
		{Code: syscall.BPF_ALU | syscall.BPF_AND | syscall.BPF_K, K: synOrAck},
		{Code: syscall.BPF_JMP | syscall.BPF_JEQ | syscall.BPF_K, K: syn, Jf: 1},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: nothing},
		{Code: syscall.BPF_RET | syscall.BPF_K, K: whole},
	}
	var attached error
	err = raw.Control(func(fd uintptr) {
		attached = syscall.AttachLsf(int(fd), program) //nolint:staticcheck // deprecated for a package that does the same
	})
	return errors.Join(err, attached)
}
