package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	running "github.com/dewpoint-proxy/dewpoint/internal/process"
)

// process is a program that the benchmark runs.
type process struct {
	command *exec.Cmd
	stop    syscall.Signal // that ends it in good order
	in      io.WriteCloser
	lines   chan string // of its output, until they are not taken any more
	ended   chan struct{}
	mu      sync.Mutex
	tail    []string // the last lines of its output
	pids    []int    // its own and its children's
}

// program is what to start.
type program struct {
	Args []string
	Env  []string // added to the benchmark's own
	Dir  string
	Stop syscall.Signal // 0: SIGTERM
}

const (
	startWait = 30 * time.Second
	stopWait  = 10 * time.Second
	tailLines = 20
)

func start(p program) (*process, error) {
	if p.Stop == 0 {
		p.Stop = syscall.SIGTERM
	}
	c := exec.Command(p.Args[0], p.Args[1:]...)
	c.Env, c.Dir, c.SysProcAttr = append(os.Environ(), p.Env...), p.Dir, running.DieWithParent(p.Stop)
	in, err := c.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	c.Stdout, c.Stderr = w, w
	err = errors.Join(c.Start(), w.Close())
	if err != nil {
		_ = out.Close() // nothing was read from it
		return nil, fmt.Errorf("start %s: %w", p.Args[0], err)
	}
	run := &process{command: c, stop: p.Stop, in: in, lines: make(chan string, 64), ended: make(chan struct{}), pids: []int{c.Process.Pid}}
	go run.read(out)
	return run, nil
}

// read takes the output until its end, and then the process's.
func (p *process) read(out io.ReadCloser) {
	defer close(p.ended)
	defer out.Close()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		p.mu.Lock()
		p.tail = append(p.tail[max(0, len(p.tail)-tailLines+1):], lines.Text())
		p.mu.Unlock()
		select {
		case p.lines <- lines.Text():
		default: // it was waited for, and came
		}
	}
	_ = p.command.Wait() // how it ended does not matter: it was told to, or its output says why
}

// output is the end of what it wrote.
func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.tail, "\n")
}

// await waits for a line of the output that found takes.
func (p *process) await(found func(line string) bool) error {
	limit := time.NewTimer(startWait)
	defer limit.Stop()
	for {
		select {
		case line := <-p.lines:
			if found(line) {
				return nil
			}
		case <-p.ended:
			return fmt.Errorf("%s ended:\n%s", p.command.Args[0], p.output())
		case <-limit.C:
			return fmt.Errorf("waited in vain for %s:\n%s", p.command.Args[0], p.output())
		}
	}
}

// awaitPort waits until it listens, and until then there are its children.
func (p *process) awaitPort(ctx context.Context, addr string) error {
	for end := time.Now().Add(startWait); time.Now().Before(end); {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		if err == nil {
			conn.Close()
			p.pids = append([]int{p.command.Process.Pid}, children(p.command.Process.Pid)...)
			return nil
		}
		select {
		case <-p.ended:
			return fmt.Errorf("%s ended:\n%s", p.command.Args[0], p.output())
		case <-ctx.Done():
			return fmt.Errorf("start %s: %w", p.command.Args[0], ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s does not listen on %s:\n%s", p.command.Args[0], addr, p.output())
}

// close ends the process and waits for it.
func (p *process) close() error {
	_ = p.command.Process.Signal(p.stop) // it may have ended
	p.in.Close()
	select {
	case <-p.ended:
		return nil
	case <-time.After(stopWait):
	}
	_ = p.command.Process.Kill()
	<-p.ended
	return errors.New(p.command.Args[0] + " did not end when told to, and was killed")
}
