// Package servers starts what measurements run as processes of their own: Dewpoint, Redis, and what Dewpoint is compared with.
package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
	"github.com/dewpoint-proxy/dewpoint/session/redisstore"
)

// ErrNotInstalled says that a server is not there.
var ErrNotInstalled = errors.New("not installed")

// Patience bounds every wait for something that should come at once. Only a defect uses it up.
const Patience = 60 * time.Second

// Serve starts a program that logs where it serves, and waits for that.
func Serve(ctx context.Context, path string, args ...string) (*process.Process, process.Entry, error) {
	run, err := process.Start(path, args...)
	if err != nil {
		return nil, process.Entry{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	at, err := run.Await(ctx, "serving")
	if err != nil {
		run.Kill()
		return nil, at, fmt.Errorf("start %s: %w", path, err)
	}
	return run, at, nil
}

// Ready waits until a process answers, at most for patience; where it does not, it is killed.
func Ready(ctx context.Context, run *process.Process, patience time.Duration, ask func(context.Context) error) error {
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
	case <-time.After(Patience):
	}
	run.Kill()
	return fmt.Errorf("%s did not end when told to, and was killed:\n%s", run.Command.Path, run.Log)
}

// redisServer is the program.
const redisServer = "redis-server"

// Redis is a real server in a directory of its own.
type Redis struct {
	Addr string
	args []string
	run  *process.Process
}

// FindRedis is an error where the server is not installed.
func FindRedis() error {
	if _, err := exec.LookPath(redisServer); err != nil {
		return fmt.Errorf("%s: %w", redisServer, ErrNotInstalled)
	}
	return nil
}

// StartRedis starts a server. The arguments say how it keeps what it is given.
func StartRedis(ctx context.Context, dir string, args ...string) (*Redis, error) {
	if err := FindRedis(); err != nil {
		return nil, err
	}
	addr, err := process.FreeAddr()
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	r := &Redis{Addr: addr, args: append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--loglevel", "warning"}, args...)}
	if err := r.Start(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

// Start starts the server, again if it was killed: on the same port and with what it had written. It returns when the
// server listens and has read its data.
func (r *Redis) Start(ctx context.Context) error {
	run, err := process.Start(redisServer, r.args...)
	if err != nil {
		return fmt.Errorf("start redis: %w", err)
	}
	r.run = run
	return Ready(ctx, run, Patience, r.ping)
}

func (r *Redis) ping(ctx context.Context) error {
	store := redisstore.Open(redisstore.Options{Addrs: []string{r.Addr}, Timeout: time.Second})
	return errors.Join(store.Ping(ctx), store.Close())
}

// Kill ends the server as a crash would.
func (r *Redis) Kill() { r.run.Kill() }

// Signal may make the server hang, or go on.
func (r *Redis) Signal(s os.Signal) error {
	if err := r.run.Command.Process.Signal(s); err != nil {
		return fmt.Errorf("signal redis: %w", err)
	}
	return nil
}
