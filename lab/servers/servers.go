// Package servers starts what measurements run as processes of their own: Dewpoint, Redis, and what Dewpoint is compared with.
package servers

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/process"
)

// ErrNotInstalled says that a server is not there.
var ErrNotInstalled = errors.New("not installed")

// patience bounds every wait for something that should come at once. Only a defect uses it up.
const patience = 60 * time.Second

// Serve starts a program that logs where it serves, and waits for that.
func Serve(ctx context.Context, path string, args ...string) (*process.Process, process.Entry, error) {
	run, err := process.Start(path, args...)
	if err != nil {
		return nil, process.Entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at, err := run.Await(ctx, "serving")
	if err != nil {
		run.Kill()
		return nil, at, fmt.Errorf("start %s: %w", path, err)
	}
	return run, at, nil
}

// Ready waits until a process answers; where it does not, it is killed.
func Ready(ctx context.Context, run *process.Process, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-run.Ended:
			return fmt.Errorf("start %s: it ended:\n%s", run.Command.Path, run.Log)
		case <-ctx.Done():
			run.Kill()
			return fmt.Errorf("start %s: %w:\n%s", run.Command.Path, errors.Join(ctx.Err(), err), run.Log)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Stop asks a process to end, and waits for it.
func Stop(run *process.Process) error {
	_ = run.Command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-run.Ended:
		return nil
	case <-time.After(patience):
	}
	run.Kill()
	return fmt.Errorf("%s did not end when told to, and was killed:\n%s", run.Command.Path, run.Log)
}
