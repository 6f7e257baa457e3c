package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/process"
	"github.com/dewpoint-proxy/dewpoint/lab/servers"
)

// working bounds the time of a client's task. Only a client that hangs uses it up.
const working = 3 * time.Minute

// trial runs clients through a program.
type trial struct {
	binary    string
	installer *installer
	out       io.Writer
	byRun     bool // 'dewpoint run' starts the clients
	verbose   bool
	traffic   string // folder for what each client sent and got; empty: nothing is kept
}

// run installs a client, runs it, and judges what it was sent and what reached upstream.
func (t trial) run(ctx context.Context, c client) report {
	r := report{client: c}
	folder, programs, err := t.installer.install(ctx, c)
	if absent, ok := errors.AsType[missing](err); ok {
		r.missing = absent.Error()
		return r
	}
	switch {
	case err != nil:
	case t.byRun:
		err = t.runFor(ctx, &r, folder, programs)
	default:
		err = t.drive(ctx, &r, folder, programs)
	}
	if err != nil {
		r.problems = append(r.problems, err.Error())
	}
	if t.verbose && len(r.problems) > 0 {
		fmt.Fprintf(t.out, "%.3000s\n", r.said)
	}
	return r
}

// provider is a client's upstream, behind a tap.
type provider struct {
	model    *model
	upstream *fakeupstream.Server
	far      *tap
}

// provide starts the upstream of a client.
func (c client) provide() (*provider, error) {
	m, err := newModel(c)
	if err != nil {
		return nil, err
	}
	p := &provider{model: m, upstream: fakeupstream.New(fakeupstream.Options{Reply: m.reply, IsSummary: isSummary, Seals: c.seals(), APIKeys: []string{key}})}
	if p.far, err = startTap(before(p.upstream)); err != nil {
		p.upstream.Close()
		return nil, err
	}
	return p, nil
}

// evidence is what has passed on both sides.
func (p *provider) evidence(near []*exchange) evidence {
	return evidence{near, p.far.seen(), p.upstream.Requests(), p.model.parts}
}

func (p *provider) close() {
	p.far.close()
	p.upstream.Close()
}

// drive runs the client between a tap on its side and one on upstream's.
func (t trial) drive(ctx context.Context, r *report, folder, programs string) error {
	work, err := os.MkdirTemp("", "dewpoint-clients-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	p, err := r.client.provide()
	if err != nil {
		return err
	}
	defer p.close()
	proxy, at, err := t.serve(ctx, work, p.far.URL)
	if err != nil {
		return err
	}
	defer proxy.Kill()
	seen, err := t.attend(ctx, r, place{work: work, install: folder, programs: programs, url: at})
	if stopped := servers.Stop(proxy); stopped != nil {
		err = errors.Join(err, stopped)
	}
	r.judge(p.evidence(seen))
	if word := proxy.Log.Defect(); word != "" {
		r.problems = append(r.problems, "Dewpoint's log has "+word)
	}
	return err
}

// attend runs the client before Dewpoint, whose address is that of the place. It returns what has passed between them.
func (t trial) attend(ctx context.Context, r *report, at place) ([]*exchange, error) {
	near, err := startTap(between(&url.URL{Scheme: "http", Host: at.url}))
	if err != nil {
		return nil, err
	}
	at.url = near.URL
	r.said, err = r.client.work(ctx, at)
	near.close()
	if t.traffic != "" {
		err = errors.Join(err, keep(filepath.Join(t.traffic, anchor(r.client.Name)), near.seen()))
	}
	return near.seen(), err
}

// serve starts Dewpoint.
func (t trial) serve(ctx context.Context, work, upstream string) (*process.Process, string, error) {
	config, err := configure(work, upstream)
	if err != nil {
		return nil, "", err
	}
	proxy, at, err := servers.Serve(ctx, t.binary, "--config", config)
	return proxy, at.Listen, err
}

// configure writes a configuration with limits that a short task exceeds several times. Requests wait for their summaries, so that each run is
// alike.
func configure(work, upstream string) (path string, err error) {
	path = filepath.Join(work, "dewpoint.yaml")
	return path, os.WriteFile(path, fmt.Appendf(nil, `
listen: 127.0.0.1:0
admin: {listen: "127.0.0.1:0"}
upstream: {base_url: "%s/v1"}
store: {path: %q}
condenser: {type: llm, max_size: 24, keep_first: 2, min_tokens: 0, background_at: 0, wait: deadline, deadline: 1m}
shutdown: {delay: 0s, timeout: 1m}
`, upstream, filepath.Join(work, "state.db")), 0o600)
}

// key is the client's own, which reaches upstream.
const key = "sk-client"

func (c client) seals() fakeupstream.Seal {
	if !c.Seals {
		return ""
	}
	return map[string]fakeupstream.Seal{
		"messages": fakeupstream.SealThinkingBlocks, "responses": fakeupstream.SealResponsesDetails, "gemini": fakeupstream.SealThoughtSignature,
	}[c.Protocol]
}

// place is where a client works.
type place struct{ work, install, programs, url string }

func (p place) home() string    { return filepath.Join(p.work, "home") }
func (p place) project() string { return filepath.Join(p.work, "project") }

// fill puts the run's own values into a text of the table.
func (p place) fill(text string) string {
	return strings.NewReplacer(address, p.url, "{install}", p.install, "{platform}", platform(), "{prompt}", task,
		"{home}", p.home(), "{project}", p.project()).Replace(text)
}

// work runs the client until its task is done, and returns what it printed.
func (c client) work(ctx context.Context, p place) (string, error) {
	if err := c.furnish(p); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, working)
	defer cancel()
	var args []string
	for _, a := range c.arguments() {
		args = append(args, p.fill(a))
	}
	run := exec.CommandContext(ctx, args[0], args[1:]...)
	var said bytes.Buffer
	run.Dir, run.Env, run.Stdout, run.Stderr = p.project(), c.variables(p), &said, &said
	run.Stdin = strings.NewReader(c.typed())
	run.SysProcAttr = process.DieWithParent(syscall.SIGKILL)
	run.WaitDelay = 10 * time.Second // a client may leave programs behind that hold its output open
	err := run.Run()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	switch text := said.String(); {
	case err != nil:
		return text, fmt.Errorf("it ended with %w: %s", err, last(text))
	case c.Turns == 0 && !strings.Contains(text, finished):
		return text, fmt.Errorf("it did not finish its task: %s", last(text))
	default:
		return text, nil
	}
}

// last is the end of what a client printed.
func last(text string) string {
	const most = 300
	text = strings.Join(strings.Fields(text), " ")
	return text[max(0, len(text)-most):]
}

// furnish writes the files of the project and the client's own.
func (c client) furnish(p place) error {
	all := map[string]string{"notes.txt": "alpha one\nbeta two\n"}
	for name, text := range c.Files {
		all[name] = text
	}
	if c.Script != "" {
		text, err := files.ReadFile("scripts/" + c.Script)
		if err != nil {
			return err
		}
		all[c.Script] = string(text)
	}
	for name, text := range all {
		path := filepath.Join(p.project(), name)
		if inHome, ok := strings.CutPrefix(name, "~/"); ok {
			path = filepath.Join(p.home(), inHome)
		}
		if name == c.Script {
			path = filepath.Join(p.install, name) // where the interpreter finds the packages
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(p.fill(text)), 0o600)); err != nil {
			return err
		}
	}
	return os.MkdirAll(p.home(), 0o700)
}

// arguments are the program and its arguments.
func (c client) arguments() []string {
	switch {
	case c.Script == "":
		return c.Program
	case strings.HasSuffix(c.Script, ".py"):
		return []string{"{install}/bin/python", "{install}/" + c.Script, "{prompt}"}
	}
	return []string{"node", "{install}/" + c.Script, "{prompt}"}
}

// typed is what a client is given that reads prompts from its input.
func (c client) typed() string {
	var out strings.Builder
	for n := range c.Turns {
		fmt.Fprintf(&out, "Count part %d of notes.txt.\n", n+1)
	}
	return out.String()
}

// variables are the client's environment: this machine's PATH, a home of its own, and what the table says.
func (c client) variables(p place) []string {
	out := []string{
		"PATH=" + p.programs + string(os.PathListSeparator) + os.Getenv("PATH"), "HOME=" + p.home(), "PWD=" + p.project(), "LANG=C.UTF-8",
		"TMPDIR=" + p.work, "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1", "OPENAI_API_KEY=" + key, "ANTHROPIC_API_KEY=" + key, "CI=1",
	}
	for _, variables := range []map[string]string{c.Environment, c.Quiet} {
		for name, value := range variables {
			out = append(out, name+"="+p.fill(value))
		}
	}
	return out
}
