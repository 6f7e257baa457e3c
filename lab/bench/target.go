package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"
)

// Target is one thing that is measured: a proxy, or the mock itself.
type Target struct {
	Name    string
	Addr    string
	path    string
	headers string // lines of its own
	proc    *process
	admin   string    // Dewpoint's admin port
	asking  Allocated // what being asked for it allocates
	redis   string    // address of the Redis behind it
	bare    bool
}

const chatPath = "/v1/chat/completions"

// stateful reports whether the target remembers sessions: it has to be shown the beginning of one.
func (t *Target) stateful() bool { return t.admin != "" }

// Close ends the target's process.
func (t *Target) Close() error {
	if t.proc == nil {
		return nil
	}
	return t.proc.close()
}

// cpu is the processor time that the target has used.
func (t *Target) cpu() time.Duration {
	if t.proc == nil {
		return 0
	}
	return cpuTime(t.proc.pids)
}

// memory is the target's resident memory in bytes, and its highest since forgetPeak.
func (t *Target) memory() (now, peak int64) {
	if t.proc == nil {
		return 0, 0
	}
	return memory(t.proc.pids)
}

func (t *Target) forgetPeak() {
	if t.proc != nil {
		forgetPeak(t.proc.pids)
	}
}

// metrics reads Dewpoint's metrics: those without labels by their name, the others summed up over their labels.
func (t *Target) metrics() (map[string]float64, error) {
	conn, err := net.DialTimeout("tcp", t.admin, startWait)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n"); err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	out := map[string]float64{}
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		name, value, found := cutLast(lines.Text(), ' ')
		if v, err := strconv.ParseFloat(value, 64); found && err == nil && !strings.HasPrefix(name, "#") {
			name, _, _ = strings.Cut(name, "{")
			out[name] += v
		}
	}
	return out, nil
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	if i := strings.LastIndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:], true
	}
	return s, "", false
}

// startBare starts the bare proxy, by a command of which it is a part.
func startBare(command []string, upstream string) (*Target, error) {
	p, err := start(program{Args: append(append([]string(nil), command...), upstream)})
	if err != nil {
		return nil, err
	}
	t := &Target{Name: nameBare, path: chatPath, proc: p, bare: true}
	err = p.await(func(line string) bool {
		addr, found := strings.CutPrefix(line, barePrefix)
		t.Addr = addr
		return found
	})
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return t, nil
}

// direct is the mock itself.
func direct(m *Mock) *Target { return &Target{Name: "direct", Addr: m.Addr(), path: chatPath} }

// closed ends a target whose use came to err.
func closed(err error, t *Target) error { return errors.Join(err, t.Close()) }

// closeAll ends targets, the last one first.
func closeAll(targets []*Target) error {
	var errs []error
	for i := len(targets) - 1; i >= 0; i-- {
		errs = append(errs, targets[i].Close())
	}
	return errors.Join(errs...)
}

// awaitServing waits for a target's port.
func (t *Target) awaitServing(ctx context.Context) (*Target, error) {
	if err := t.proc.awaitPort(ctx, t.Addr); err != nil {
		return nil, errors.Join(err, t.proc.close())
	}
	return t, nil
}
