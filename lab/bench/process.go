package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"syscall"
	"time"

	running "github.com/dewpoint-proxy/dewpoint/internal/process"
)

// process is a program that the benchmark runs.
type process struct {
	*running.Process
	stop syscall.Signal // that ends it in good order
	pids []int          // its own and its children's
}

// program is what to start.
type program struct {
	Args []string
	Dir  string
	Stop syscall.Signal // 0: SIGTERM
}

const (
	startWait = 30 * time.Second
	stopWait  = 10 * time.Second
)

func start(p program) (*process, error) {
	if p.Stop == 0 {
		p.Stop = syscall.SIGTERM
	}
	c := exec.Command(p.Args[0], p.Args[1:]...)
	c.Dir, c.SysProcAttr = p.Dir, running.DieWithParent(p.Stop)
	run, err := running.StartCommand(c)
	if err != nil {
		return nil, err
	}
	return &process{Process: run, stop: p.Stop, pids: []int{c.Process.Pid}}, nil
}

// serving waits until the process logs that it serves, and gives where.
func (p *process) serving() (running.Entry, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startWait)
	defer cancel()
	return p.Await(ctx, "serving")
}

// awaitPort waits until it listens, and until then there are its children.
func (p *process) awaitPort(ctx context.Context, addr string) error {
	for end := time.Now().Add(startWait); time.Now().Before(end); {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		if err == nil {
			conn.Close()
			p.pids = append(p.pids[:1], children(p.pids[0])...)
			return nil
		}
		select {
		case <-p.Ended:
			return fmt.Errorf("%s ended:\n%s", p.Command.Path, p.Log)
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w", p.Command.Path, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen on %s:\n%s", p.Command.Path, addr, p.Log)
}

// close ends the process and waits for it.
func (p *process) close() error {
	_ = p.Command.Process.Signal(p.stop) // it may have ended
	select {
	case <-p.Ended:
		return nil
	case <-time.After(stopWait):
	}
	p.Kill()
	return errors.New(p.Command.Path + " did not end when told to, and was killed")
}
