package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	running "github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// agentVariable makes the test's own program behave as an agent that dewpoint run starts.
const agentVariable = "E2E_AGENT"

// playAgent does what its arguments say, one after another, and returns the exit code:
//
//	talk=N     sends N requests of a growing history to the server that it is pointed at, and prints the status of the last answer
//	say        prints the arguments and the base URL
//	read       waits for a line of the input
//	signal     waits for a signal, prints it, and ends with code 5
//	kill       kills itself by SIGTERM
//	exit=N     ends with a code
func playAgent(args []string) int {
	got := make(chan os.Signal, 1)
	signal.Notify(got, syscall.SIGINT, syscall.SIGTERM)
	input := bufio.NewReader(os.Stdin)
	base := os.Getenv("OPENAI_BASE_URL")
	var history []any
	for _, arg := range args {
		action, value, _ := strings.Cut(arg, "=")
		n, _ := strconv.Atoi(value)
		switch action {
		case "talk":
			var status string
			for range n {
				history, status = step(base, history)
			}
			fmt.Println("answered", status)
		case "say":
			fmt.Println(args, base)
		case "read":
			fmt.Println("reading")
			_, _ = input.ReadString('\n')
		case "signal":
			fmt.Println("waiting")
			fmt.Println("got", <-got)
			return 5
		case "kill":
			signal.Reset(syscall.SIGTERM)
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
			select {}
		case "exit":
			return n
		}
	}
	return 0
}

// step sends one more request of a history.
func step(base string, history []any) (longer []any, status string) {
	question := fmt.Sprintf("Question %d: %s", len(history), strings.Repeat("why and how? ", 40))
	history = append(history, map[string]any{"role": "user", "content": question})
	body, err := json.Marshal(map[string]any{"model": "gpt-4.1", "messages": history})
	if err != nil {
		return history, err.Error()
	}
	req, err := http.NewRequest(http.MethodPost, base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return history, err.Error()
	}
	req.Header.Set("Authorization", "Bearer sk-client")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return history, "nothing"
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return append(history, map[string]any{"role": "assistant", "content": fmt.Sprintf("Answer %d.", len(history))}), resp.Status
}

// agents is where dewpoint run is called: a state folder, a working directory and an upstream.
type agents struct {
	t           *testing.T
	up          *fakeupstream.Server
	state, work string
	flags       []string // of run
	env         []string
}

func newAgents(t *testing.T) *agents {
	t.Helper()
	s := newSetting(t, fakeupstream.Options{})
	a := &agents{t: t, up: s.Upstream, state: t.TempDir(), work: t.TempDir(), env: []string{agentVariable + "=1"}}
	a.flags = []string{"--config", writeFile(t, t.TempDir(), "dewpoint.yaml", fmt.Sprintf(
		"upstream: {base_url: %q}\ncondenser: {type: excerpts, max_size: 10, keep_first: 1, min_tokens: 0, trigger: limits}\n", s.url))}
	t.Cleanup(func() { a.wantNobody() })
	return a
}

// call is a running dewpoint run.
type call struct {
	t       *testing.T
	command *exec.Cmd
	input   io.WriteCloser
	lines   *bufio.Reader // of the output
	errs    bytes.Buffer
}

// start starts dewpoint run with an agent that does what args say.
func (a *agents) start(args ...string) *call {
	a.t.Helper()
	self, err := os.Executable()
	ok(a.t, err)
	return a.command(append(append(slices.Clone(a.flags), "--", self), args...)...)
}

func (a *agents) command(args ...string) *call {
	a.t.Helper()
	c := &call{t: a.t, command: exec.Command(built(a.t), append([]string{"run"}, args...)...)}
	c.command.Dir, c.command.Env = a.work, append(append(running.Environment(), "XDG_STATE_HOME="+a.state), a.env...)
	c.command.SysProcAttr = running.DieWithParent(syscall.SIGKILL)
	c.command.Stderr = &c.errs
	var err error
	c.input, err = c.command.StdinPipe()
	ok(a.t, err)
	out, err := c.command.StdoutPipe()
	ok(a.t, err)
	c.lines = bufio.NewReader(out)
	ok(a.t, c.command.Start())
	return c
}

// wantLine waits for a line of the agent's output that contains a text.
func (c *call) wantLine(text string) {
	c.t.Helper()
	line, err := c.lines.ReadString('\n')
	if err != nil || !strings.Contains(line, text) {
		_ = c.command.Wait()
		c.t.Fatalf("the agent says %q, want %q; %s", line, text, &c.errs)
	}
}

// wantEnd waits for the end, and checks the exit code and that the errors contain the texts.
func (c *call) wantEnd(code int, errs ...string) {
	c.t.Helper()
	_, _ = io.Copy(io.Discard, c.lines)
	_ = c.command.Wait()
	if got := c.command.ProcessState.ExitCode(); got != code {
		c.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, text := range errs {
		if !strings.Contains(c.errs.String(), text) {
			c.t.Errorf("the errors are %q, want %q in them", &c.errs, text)
		}
	}
}

func (c *call) write(text string) {
	c.t.Helper()
	_, err := io.WriteString(c.input, text)
	ok(c.t, err)
}

// announced returns the fields that the process which uses the state file has announced.
func (a *agents) announced() []string {
	text, _ := os.ReadFile(filepath.Join(a.state, "dewpoint", "state.db.lock"))
	return append(strings.Fields(string(text)), "", "", "")
}

func (a *agents) host() int {
	pid, _ := strconv.Atoi(a.announced()[2])
	return pid
}

// wantNobody waits until no process serves runs any more.
func (a *agents) wantNobody() {
	a.t.Helper()
	pid := a.host()
	for deadline := time.Now().Add(patience); pid > 0 && syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			a.t.Errorf("process %d still serves", pid)
		}
	}
}

// TestRunOfAnAgent: an agent is pointed at the proxy, has input and output to itself, and its exit code is passed on. At the end there is one
// line, and nothing is left but the state.
func TestRunOfAnAgent(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	c := a.start("say", "read", "talk=14", "exit=7")
	c.wantLine("/run/")
	c.wantLine("reading")
	c.write("go on\n")
	c.wantLine("answered 200")
	c.wantEnd(7)
	if got := c.errs.String(); !strings.HasPrefix(got, "Dewpoint: 14 steps, ") || !strings.Contains(got, " USD") || strings.Count(got, "\n") != 1 {
		t.Errorf("it ends with %q", got)
	}
	if requests := a.up.Requests(); len(requests) != 14 || requests[13].Header.Get("Authorization") != "Bearer sk-client" || len(requests[13].Messages) >= 27 {
		t.Errorf("upstream got %d requests, the last one with %d messages", len(requests), len(requests[len(requests)-1].Messages))
	}
	a.wantNobody()
	var left []string
	for _, dir := range []string{a.work, a.state, filepath.Join(a.state, "dewpoint")} {
		entries, err := os.ReadDir(dir)
		ok(t, err)
		for _, e := range entries {
			left = append(left, e.Name())
		}
	}
	if want := []string{"dewpoint", "run.log", "state.db", "state.db.lock", "state.db.recovery"}; !slices.Equal(left, want) {
		t.Errorf("left: %q", left)
	}
}

func TestExitCodesOfRun(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.start("exit=0").wantEnd(0, "no request of the agent's conversations came through")
	a.start("kill").wantEnd(128 + int(syscall.SIGTERM))
	a.command("--", "dewpoint-no-such-agent").wantEnd(127, "dewpoint-no-such-agent: there is no such command")
	a.command("--", writeFile(t, t.TempDir(), "agent", "")).wantEnd(126, "it is not an executable file")
	a.command().wantEnd(2, "run takes the command of an agent")
	a.command("--config", "absent.yaml", "--", "true").wantEnd(2, "absent.yaml")
	a.command("--", "cline").wantEnd(127)
	t.Run("of an agent that cannot be pointed", func(t *testing.T) {
		dir := t.TempDir()
		ok(t, os.WriteFile(filepath.Join(dir, "cline"), []byte("#!/bin/sh\n"), 0o700))
		a.command("--", filepath.Join(dir, "cline")).wantEnd(2, "takes no address when it is started", "cline auth -b")
	})
}

func TestSignalsReachTheAgent(t *testing.T) {
	t.Parallel()
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			c := newAgents(t).start("signal")
			c.wantLine("waiting")
			ok(t, c.command.Process.Signal(s))
			c.wantLine("got " + s.String())
			c.wantEnd(5)
		})
	}
}

// TestRunsShareAProxy: a second run uses the first one's proxy, which lasts until both have ended. Each has totals of its own, and only one of
// them observes.
func TestRunsShareAProxy(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	first := a.start("read", "talk=14", "read")
	first.wantLine("reading")
	host := a.host()
	a.flags = append(a.flags, "--observe")
	second := a.start("talk=13", "read", "talk=1")
	second.wantLine("answered 200")
	second.wantLine("reading")
	for _, r := range a.up.Requests() {
		if n := len(r.Messages); n != 1 && !strings.Contains(string(r.Messages[n-2]), fmt.Sprintf("Answer %d.", n-2)) {
			t.Errorf("an observed request went with %d messages", n)
		}
	}
	first.write("\n")
	first.wantLine("answered 200")
	first.wantLine("reading")
	first.write("\n")
	first.wantEnd(0, "Dewpoint: 14 steps, ", " USD")
	if a.host() != host || syscall.Kill(host, 0) != nil {
		t.Errorf("the proxy was process %d, and is %d", host, a.host())
	}
	second.write("\n")
	second.wantLine("answered 200")
	second.wantEnd(0, "Dewpoint: observed 14 steps, which were forwarded unchanged. With Dewpoint: ", " USD")
}

// TestKilledRuns: a run that is killed leaves its own agent and those of others their proxy. It ends with the last agent.
func TestKilledRuns(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	first := a.start("read", "talk=2", "read")
	first.wantLine("reading")
	second := a.start("read", "talk=2")
	second.wantLine("reading")
	ok(t, first.command.Process.Kill())
	_, _ = first.command.Process.Wait()
	second.write("\n")
	second.wantLine("answered 200")
	second.wantEnd(0, "Dewpoint: 2 steps")
	first.write("\n") // its agent still has this input
	first.wantLine("answered 200")
	first.wantLine("reading")
	ok(t, first.input.Close())
	a.wantNobody()
}

// TestNobodyTakesThePortOfAProxyThatWasKilled: an agent would send its key there. It keeps the port, even if run is killed as well.
func TestNobodyTakesThePortOfAProxyThatWasKilled(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	c := a.start("talk=1", "read", "talk=1", "read")
	c.wantLine("answered 200")
	c.wantLine("reading")
	at := a.announced()[0]
	ok(t, syscall.Kill(a.host(), syscall.SIGKILL))
	a.wantNobody()
	taken := func() error {
		l, err := net.Listen("tcp", at)
		if err == nil {
			_ = l.Close()
		}
		return err
	}
	if err := taken(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("another process listens on %s: %v", at, err)
	}
	c.write("\n")
	c.wantLine("answered nothing")
	c.wantLine("reading")
	ok(t, c.command.Process.Kill())
	_, _ = c.command.Process.Wait()
	if err := taken(); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("after the end of run, another process listens on %s: %v", at, err)
	}
	ok(t, c.input.Close())
}

// TestAgentIsStoppedWithAProxyThatServes: the port of such a proxy cannot be kept.
func TestAgentIsStoppedWithAProxyThatServes(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	command := exec.Command(built(t), "--config", a.flags[1], "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	command.Env = append(running.Environment(), "XDG_STATE_HOME="+a.state)
	p := started(t, command)
	c := a.start("signal")
	c.wantLine("waiting")
	p.kill()
	c.wantLine("got terminated")
	c.wantEnd(5, "the proxy ended before the agent", "the agent was stopped")
}

// TestServersInTheFilesOfAnAgent: a server that an agent's own file names is the upstream, as if a variable named it.
func TestServersInTheFilesOfAnAgent(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	config := a.flags
	a.flags = nil
	ok(t, a.up.Start())
	ok(t, os.WriteFile(filepath.Join(a.work, ".env"), []byte("OPENAI_BASE_URL="+a.up.URL()+"/v1\n"), 0o600))
	c := a.start("talk=2")
	c.wantLine("answered 200")
	c.wantEnd(0, "Dewpoint: 2 steps")
	a.wantNobody()
	a.flags = config
	a.start("say").wantEnd(2, "OPENAI_BASE_URL in .env names "+a.up.URL(), "must not send them the key of another server")
}

// TestRunUsesAProxyThatServes: a proxy that already serves on the state file is used, and goes on after the run.
func TestRunUsesAProxyThatServes(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	command := exec.Command(built(t), "--config", a.flags[1], "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	command.Env = append(running.Environment(), "XDG_STATE_HOME="+a.state)
	p := started(t, command)
	c := a.start("say", "talk=2")
	c.wantLine(p.Addr + "/run/")
	c.wantLine("answered 200")
	c.wantEnd(0, "Dewpoint: 2 steps")
	for _, base := range []string{"http://" + p.Addr + "/v1", "http://" + p.Addr + "/run/AAAAAAAAAAAAAAAAAAAAAAAAAA/v1"} {
		_, status := step(base, nil)
		if want := strings.Contains(base, "/run/"); strings.HasPrefix(status, "404") != want {
			t.Errorf("%s answers %s", base, status)
		}
	}
	a.command("--config", writeFile(t, t.TempDir(), "other.yaml", "observe: true\n"), "--", "true").
		wantEnd(2, "already runs on the state file", "under another configuration")
	a.command("--upstream", "http://127.0.0.1:9/v1", "--", "true").wantEnd(2, "with another upstream")
	p.terminate()
	p.wait()
}

// TestServersOfTheUsersOwn: a server that a user's variable names is the upstream, since the key beside it is for that server.
func TestServersOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	config := a.flags
	a.flags = nil
	ok(t, a.up.Start())
	a.env = append(a.env, "OPENAI_BASE_URL="+a.up.URL()+"/v1/")
	c := a.start("say", "talk=2")
	c.wantLine("/run/")
	c.wantLine("answered 200")
	c.wantEnd(0, "Dewpoint: 2 steps")
	a.wantNobody()
	a.flags = config
	a.start("say").wantEnd(2, "OPENAI_BASE_URL names "+a.up.URL(), "must not send them the key of another server", "--upstream "+a.up.URL())
}

// TestKeysGoToTheServerThatTheyAreFor: a run does not use the proxy of a run with another server, and no key of a configuration goes to a server
// that a variable or a flag names.
func TestKeysGoToTheServerThatTheyAreFor(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.flags = nil
	ok(t, a.up.Start())
	usual := a.env
	a.env = append(slices.Clone(usual), "OPENAI_BASE_URL="+a.up.URL()+"/v1")
	first := a.start("read")
	first.wantLine("reading")
	a.env = usual
	a.start("say").wantEnd(2, "already runs on the state file", "sends requests to "+a.up.URL()+"/v1, not to https://api.openai.com/v1")
	first.write("\n")
	first.wantEnd(0)
	a.wantNobody()
	a.flags = []string{"--config", writeFile(t, t.TempDir(), "dewpoint.yaml", "upstream: {api_key: sk-proj-operator}\n")}
	a.env = append(slices.Clone(usual), "OPENAI_BASE_URL="+a.up.URL()+"/v1")
	a.start("say").wantEnd(2, "OPENAI_BASE_URL names "+a.up.URL(), "must not send them the key of another server")
	a.env, a.flags = usual, append(a.flags, "--upstream", a.up.URL()+"/v1")
	a.start("say").wantEnd(2, "upstream.api_key of the configuration is not for "+a.up.URL())
}

func TestRunWithoutItsUpstream(t *testing.T) {
	t.Parallel()
	a := newAgents(t)
	a.flags = []string{"--upstream", "http://127.0.0.1:9/v1"}
	c := a.start("talk=2", "exit=3")
	c.wantLine("answered 502")
	c.wantEnd(3, "no step was answered, 2 requests failed")
}

func TestAgentsAreListed(t *testing.T) {
	t.Parallel()
	command(t, "run", "--list").wants(t, 0, []string{"Claude Code", "codex", "openai_base_url", "any other client", "OPENAI_BASE_URL"}, nil)
	command(t, "run", "--help").wants(t, 0, []string{"--observe", "--list", "--upstream"}, nil)
}
