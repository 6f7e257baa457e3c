// Package launch starts programs: the agents of "dewpoint run", and the proxy that they share. No other package of the program does.
package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
)

// Errors of commands that cannot be started.
var (
	ErrNotFound      = errors.New("there is no such command: install it, or correct its name or PATH")
	ErrNotExecutable = errors.New("it is not an executable file")
)

// Agent is an agent to run.
type Agent struct {
	Command []string // with its arguments
	Launch  agents.Launch
	Held    []*os.File // kept open by the agent
	Signals <-chan os.Signal
	Stop    <-chan struct{} // closed to end the agent; nil: never
}

// stopTime is how long an agent that is told to end may take.
const stopTime = 10 * time.Second

// Find finds the program of a command.
func Find(command string) (path string, err error) {
	path, err = exec.LookPath(command)
	switch {
	case err == nil:
		return path, nil
	case errors.Is(err, fs.ErrPermission):
		return "", ErrNotExecutable
	}
	return "", ErrNotFound
}

// Run runs the agent to its end with this process's input and output. It passes signals on, and returns the exit code by which a shell would
// report the end.
func (a Agent) Run(program string) (code int, err error) {
	command := exec.Command(program, append(slices.Clone(a.Launch.Args), a.Command[1:]...)...) //nolint:gosec // the user's own command
	command.Args[0] = a.Command[0]
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.Env = environment(os.Environ(), a.Launch)
	if platform.CanInherit {
		command.ExtraFiles = a.Held
	}
	if err := command.Start(); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrNotExecutable, err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = command.Wait() // the state says how it ended
	}()
	stop := a.Stop
	for {
		select {
		case <-stop:
			stop = nil
			end(command.Process)
		case s := <-a.Signals:
			if !platform.FromTerminal(s) {
				_ = command.Process.Signal(s) // it may have ended already
			}
		case <-ended:
			return platform.ExitCode(command.ProcessState), nil
		}
	}
}

// end tells a process to end, and kills it if it does not in time, or if it cannot be told.
func end(p *os.Process) {
	wait := stopTime
	if p.Signal(syscall.SIGTERM) != nil {
		wait = 0
	}
	time.AfterFunc(wait, func() { _ = p.Kill() })
}

// environment adds the variables of a launch to an environment, and exempts this machine from the environment's own proxies.
func environment(env []string, l agents.Launch) []string {
	env = slices.Clone(env)
	for _, v := range l.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		env = append(env, name+"="+strings.TrimPrefix(os.Getenv(name)+",127.0.0.1", ","))
	}
	return env
}
