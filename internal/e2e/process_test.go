package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is one run of the binary as a proxy.
type process struct {
	Addr  string // of the data port
	Admin string

	t       testing.TB
	command *exec.Cmd
	log     *output
	ended   chan struct{} // closed when it has ended
}

// cleanEnvironment is the test's own without what would configure the binary.
func cleanEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(pair string) bool { return strings.HasPrefix(pair, "DEWPOINT_") })
}

// serve starts the proxy with the flags and returns when it serves. It ends with the test at the latest.
func serve(t testing.TB, flags ...string) *process {
	t.Helper()
	p := &process{t: t, log: newOutput(), ended: make(chan struct{})}
	p.command = exec.Command(binary, flags...)
	p.command.Env, p.command.SysProcAttr = cleanEnvironment(), dieWithParent()
	p.command.Stdout, p.command.Stderr = p.log, p.log
	ok(t, p.command.Start())
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(p.cleanUp)
	serving := p.await("serving")
	p.Addr, p.Admin = serving.Listen, serving.Admin
	return p
}

func (p *process) cleanUp() {
	p.kill()
	for _, word := range []string{`"msg":"panic"`, "panic: ", "fatal error: ", "DATA RACE"} {
		if strings.Contains(p.log.String(), word) {
			p.t.Errorf("%s in the proxy's output", word)
		}
	}
	if p.t.Failed() {
		p.t.Logf("the proxy at %s wrote:\n%s", p.Addr, p.log)
	}
}

// await waits for a line of the log.
func (p *process) await(message string) entry {
	p.t.Helper()
	limit := time.After(patience)
	for {
		e, found, changed := p.log.find(message)
		if found {
			return e
		}
		select {
		case <-changed:
		case <-p.ended:
			p.t.Fatalf("the proxy ended (%v) before it logged %q:\n%s", p.command.ProcessState, message, p.log)
		case <-limit:
			p.t.Fatalf("waited in vain for %q:\n%s", message, p.log)
		}
	}
}

// kill ends the process as a crash would, and waits for it.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended by itself
	<-p.ended
}

// terminate asks the process to end. It does not wait.
func (p *process) terminate() {
	p.t.Helper()
	ok(p.t, p.command.Process.Signal(syscall.SIGTERM))
}

// wait waits for the end and gives the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(patience):
		p.t.Fatalf("the proxy does not end:\n%s", p.log)
	}
	return p.command.ProcessState.ExitCode()
}

// url is a base URL for agents.
func (p *process) url() string { return "http://" + p.Addr + "/v1" }

// metrics reads the admin port's metrics: a line each.
func (p *process) metrics() []string {
	p.t.Helper()
	resp, err := http.Get("http://" + p.Admin + "/metrics")
	ok(p.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	ok(p.t, err)
	return strings.Split(string(text), "\n")
}

// finished is how a command ended.
type finished struct {
	Out, Err string
	Code     int
}

// command runs the binary to its end.
func command(t testing.TB, args ...string) finished {
	t.Helper()
	return commandIn(t, t.TempDir(), args...)
}

// commandIn runs the binary to its end, with a folder that is both the working directory and where temporary files go.
func commandIn(t testing.TB, dir string, args ...string) finished {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errs bytes.Buffer
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir, c.Env, c.SysProcAttr = dir, append(cleanEnvironment(), "TMPDIR="+dir), dieWithParent()
	c.Stdout, c.Stderr = &out, &errs
	err := c.Run()
	if c.ProcessState == nil || ctx.Err() != nil {
		t.Fatalf("dewpoint %s: %v %v\n%s%s", strings.Join(args, " "), err, ctx.Err(), &out, &errs)
	}
	return finished{Out: out.String(), Err: errs.String(), Code: c.ProcessState.ExitCode()}
}
