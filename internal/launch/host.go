package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
)

// Host is a process to start that outlives this one. It says that it serves by a line on its output.
type Host struct {
	Program string
	Args    []string
	Env     []string // in addition to that of this process
	Log     *os.File
}

// EndedError reports that a host has ended before it served.
type EndedError struct{ Code int }

func (e *EndedError) Error() string { return fmt.Sprintf("it ended with exit code %d", e.Code) }

// Start starts the host and returns the line that it writes. If ctx ends before, the host is killed.
func (h Host) Start(ctx context.Context) (line []byte, err error) {
	output, its, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer output.Close()                          //nolint:errcheck // only read
	command := exec.Command(h.Program, h.Args...) //nolint:gosec // this program
	command.Stdout, command.Stderr, command.SysProcAttr = its, h.Log, platform.Detached()
	command.Env = append(os.Environ(), h.Env...)
	if err := errors.Join(command.Start(), its.Close()); err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	line, err = bufio.NewReader(output).ReadBytes('\n')
	if err == nil && stop() {
		go func() { _ = command.Wait() }() // it may end before this process
		return line, nil
	}
	_ = command.Wait()
	return nil, &EndedError{command.ProcessState.ExitCode()}
}
