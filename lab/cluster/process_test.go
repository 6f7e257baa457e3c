package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	patience = 2 * time.Minute // bounds every wait for something that should come; only a defect uses it up
	farewell = 15 * time.Second
)

// run starts one of the programs and ends it with the test. It gives a channel that is closed when it has ended.
func run(t *testing.T, program, log string, args ...string) <-chan struct{} {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, args...)
	command.Stdout, command.Stderr, command.SysProcAttr = out, out, dieWithParent()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer out.Close()
		_ = command.Wait()
	}()
	t.Cleanup(func() { end(t, command.Process, ended, log) })
	return ended
}

// end asks a process to end, and makes it after a while. A test that failed shows what the process wrote last.
func end(t *testing.T, p *os.Process, ended <-chan struct{}, log string) {
	_ = p.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(farewell):
		_ = p.Kill()
		<-ended
	}
	if t.Failed() {
		t.Logf("%s ends with:\n%s", filepath.Base(log), tail(log, 30))
	}
}

func tail(file string, lines int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// freePort is a port that is free just now.
func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// await asks until there is no error, or patience is over.
func await(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	every := time.NewTicker(100 * time.Millisecond)
	defer every.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("%s: %w", what, err))
		}
	}
}
