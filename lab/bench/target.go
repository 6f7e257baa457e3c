package bench

import (
	"context"
	"errors"
	"time"
)

// Target is one thing that is measured: a proxy, or the mock itself.
type Target struct {
	Name  string
	Addr  string
	path  string
	proc  *process
	admin string // Dewpoint's admin port
	bare  bool
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

// startBare starts the bare proxy, by a command of which it is a part.
func startBare(command []string, upstream string) (*Target, error) {
	p, err := start(program{Args: append(append([]string(nil), command...), upstream)})
	if err != nil {
		return nil, err
	}
	at, err := p.serving()
	if err != nil {
		return nil, errors.Join(err, p.close())
	}
	return &Target{Name: nameBare, Addr: at.Listen, path: chatPath, proc: p, bare: true}, nil
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
