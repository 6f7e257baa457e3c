package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	running "github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// process is one run of the binary as a proxy.
type process struct {
	Addr  string // of the data port
	Admin string

	t       testing.TB
	run     *running.Process
	command *exec.Cmd
	log     *running.Output
}

// serve starts the proxy with the flags and returns once it serves. The proxy ends with the test at the latest.
func serve(t testing.TB, flags ...string) *process {
	t.Helper()
	return serveUnder(t, nil, flags...)
}

// serveUnder is serve with further environment variables.
func serveUnder(t testing.TB, env []string, flags ...string) *process {
	t.Helper()
	command := exec.Command(built(t), flags...)
	command.Env = append(running.Environment(), "XDG_STATE_HOME="+t.TempDir(), "XDG_CONFIG_HOME="+t.TempDir())
	command.Env = append(command.Env, env...)
	return started(t, command)
}

// started starts a command that runs the proxy, and returns once it serves.
func started(t testing.TB, command *exec.Cmd) *process {
	t.Helper()
	run, err := running.StartCommand(command)
	ok(t, err)
	p := &process{t: t, run: run, command: run.Command, log: run.Log}
	t.Cleanup(p.cleanUp)
	serving := p.await("serving")
	p.Addr, p.Admin = serving.Listen, serving.Admin
	return p
}

func (p *process) cleanUp() {
	p.kill()
	if word := p.log.Defect(); word != "" {
		p.t.Errorf("%s in the proxy's output", word)
	}
	if p.t.Failed() {
		p.t.Logf("the proxy at %s wrote:\n%s", p.Addr, p.log)
	}
}

// await waits for a line in the log.
func (p *process) await(message string) running.Entry {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e, err := p.run.Await(ctx, message)
	ok(p.t, err)
	return e
}

// kill ends the process as a crash would, and waits for it.
func (p *process) kill() { p.run.Kill() }

// terminate asks the process to stop. It does not wait.
func (p *process) terminate() {
	p.t.Helper()
	ok(p.t, p.command.Process.Signal(syscall.SIGTERM))
}

// wait waits for the process to exit and returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.run.Ended:
	case <-time.After(patience):
		p.t.Fatalf("the proxy does not end:\n%s", p.log)
	}
	return p.command.ProcessState.ExitCode()
}

// url returns a base URL for agents.
func (p *process) url() string { return "http://" + p.Addr + "/v1" }

// metrics returns the lines of the admin port's metrics.
func (p *process) metrics() []string {
	p.t.Helper()
	resp, err := http.Get("http://" + p.Admin + "/metrics")
	ok(p.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(p.t, err)
	return strings.Split(string(text), "\n")
}

// finished is the result of a command.
type finished struct {
	Out, Err string
	Code     int
}

// command runs the binary to its end.
func command(t testing.TB, args ...string) finished {
	t.Helper()
	return commandIn(t, t.TempDir(), args...)
}

// commandIn runs the binary to its end, with a folder as the working directory and the directory for temporary files.
func commandIn(t testing.TB, dir string, args ...string) finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, built(t), args...)
	c.Dir, c.Env, c.SysProcAttr = dir, append(running.Environment(), "TMPDIR="+dir, "XDG_STATE_HOME="+dir, "XDG_CONFIG_HOME="+dir), running.DieWithParent(syscall.SIGKILL)
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("dewpoint %s: %v %v\n%s%s", strings.Join(args, " "), err, ctx.Err(), &out, &errs)
	}
	return finished{Out: out.String(), Err: errs.String(), Code: c.ProcessState.ExitCode()}
}
