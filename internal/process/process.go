// Package process runs the binary, and other servers, as processes of their own that can be killed.
package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// Process is one run of a program.
type Process struct {
	Log     *Output // all that it wrote
	Command *exec.Cmd
	Ended   <-chan struct{} // closed when it has ended
}

// Environment is this process's own without what would configure the binary.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "DEWPOINT_") })
}

// Start runs a program. It ends with this process at the latest, where the system can do that.
func Start(path string, args ...string) (*Process, error) {
	command := exec.Command(path, args...)
	command.Env = Environment()
	return StartCommand(command)
}

// StartCommand is Start for a command with an environment and a folder of its own. Its output goes to the log.
func StartCommand(command *exec.Cmd) (*Process, error) {
	ended := make(chan struct{})
	p := &Process{Log: NewOutput(), Command: command, Ended: ended}
	if command.SysProcAttr == nil {
		command.SysProcAttr = DieWithParent(syscall.SIGKILL)
	}
	command.Stdout, command.Stderr = p.Log, p.Log
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command.Path, err)
	}
	go func() {
		defer close(ended)
		_ = command.Wait() // how it ended is in ProcessState
	}()
	return p, nil
}

// Await waits for a line of the log with that message. The error is the context's, or says that the process has ended.
func (p *Process) Await(ctx context.Context, message string) (Entry, error) {
	for {
		e, found, changed := p.Log.Find(message)
		if found {
			return e, nil
		}
		select {
		case <-changed:
		case <-p.Ended:
			return Entry{}, fmt.Errorf("it ended (%v) before it logged %q:\n%s", p.Command.ProcessState, message, p.Log)
		case <-ctx.Done():
			return Entry{}, fmt.Errorf("waited in vain for %q: %w:\n%s", message, ctx.Err(), p.Log)
		}
	}
}

// Kill ends the process as a crash would, and waits for it.
func (p *Process) Kill() {
	_ = p.Command.Process.Kill() // it may have ended by itself
	<-p.Ended
}
