// Package process runs the binary and other servers as child processes that can be killed.
package process

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// Process is one run of a program.
type Process struct {
	Log     *Output // everything it wrote
	Command *exec.Cmd
	Ended   <-chan struct{} // closed when it has ended
}

// Start runs a program without the environment variables that configure the binary. The program ends with this process at the
// latest, if the system supports that.
func Start(path string, args ...string) (*Process, error) {
	command := exec.Command(path, args...)
	command.Env = Environment()
	return StartCommand(command)
}

// Environment returns the environment of this process without the variables that configure the binary.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "DEWPOINT_") })
}

// StartCommand is like Start for a command with its own environment and directory. Its output goes to the log.
func StartCommand(command *exec.Cmd) (*Process, error) {
	ended := make(chan struct{})
	p := &Process{Log: &Output{changed: make(chan struct{})}, Command: command, Ended: ended}
	if command.SysProcAttr == nil {
		command.SysProcAttr = DieWithParent(syscall.SIGKILL)
	}
	command.Stdout, command.Stderr = p.Log, p.Log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	go func() {
		defer close(ended)
		_ = command.Wait() // ProcessState has the result
	}()
	return p, nil
}

// Await waits for a log line with that message. It fails if the context is done or the process has ended.
func (p *Process) Await(ctx context.Context, message string) (Entry, error) {
	for {
		e, found, changed := p.Log.find(message)
		if found {
			return e, nil
		}
		select {
		case <-changed:
		case <-p.Ended:
			return Entry{}, fmt.Errorf("process ended (%v) before it logged %q:\n%s", p.Command.ProcessState, message, p.Log)
		case <-ctx.Done():
			return Entry{}, fmt.Errorf("wait for log message %q: %w:\n%s", message, ctx.Err(), p.Log)
		}
	}
}

// Kill kills the process and waits until it has ended.
func (p *Process) Kill() {
	_ = p.Command.Process.Kill() // it may have ended already
	<-p.Ended
}

// Systems do not assign these ports by default: connections and listeners on port 0 get higher ones.
const firstPort, lastPort = 20_000, 32_767

// reserved are the UDP sockets by which this process keeps ports from other processes until it ends.
var reserved struct {
	sync.Mutex
	sockets []net.PacketConn
}

// FreeAddr returns a free loopback address for a server that needs a fixed port. Systems do not assign the port to others, and FreeAddr returns
// it neither again nor in another process while this one runs, so a server can be killed and started there again.
func FreeAddr() (string, error) {
	var taken error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) // not a secret
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err := reserve(addr); err != nil {
			taken = err
			continue
		}
		return addr, nil
	}
	return "", fmt.Errorf("find a free port: %w", taken)
}

// reserve takes an address that no server has and no other process has reserved.
func reserve(addr string) error {
	socket, err := net.ListenPacket("udp", addr) // TCP's port of the same number stays free
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return errors.Join(err, socket.Close())
	}
	reserved.Lock()
	reserved.sockets = append(reserved.sockets, socket)
	reserved.Unlock()
	return l.Close()
}
