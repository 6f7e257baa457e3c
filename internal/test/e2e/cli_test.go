package e2e

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/demo"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	running "github.com/dewpoint-proxy/dewpoint/internal/test/process"
)

// wants checks the exit code of a finished command, and texts in its output and its error output.
func (f finished) wants(t *testing.T, code int, out, errs []string) {
	t.Helper()
	if f.Code != code {
		t.Errorf("exit code %d, want %d", f.Code, code)
	}
	lacks := func(text string, parts []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(text, part) })
	}
	if lacks(f.Out, out) || lacks(f.Err, errs) || len(out) == 0 && f.Out != "" || len(errs) == 0 && f.Err != "" {
		t.Errorf("it wrote\n%s\nand as errors\n%s\nwant %q and %q", f.Out, f.Err, out, errs)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	none := []string(nil)
	for _, c := range []struct {
		args      []string
		code      int
		out, errs []string
	}{
		{[]string{"version"}, 0, []string{"dewpoint ", "go1."}, none},
		{[]string{"help"}, 0, []string{"Usage:", "check-config", "demo", "replay"}, none},
		{[]string{"--help"}, 0, []string{"Usage:"}, none},
		{[]string{"check-config", "--help"}, 0, []string{"--print", "--probe"}, none},
		{[]string{"condense"}, 2, none, []string{`unknown command "condense"`, "Usage:"}},
		{[]string{"--upstreem", "http://127.0.0.1"}, 2, none, []string{"-upstreem", "dewpoint help"}},
		{[]string{"serve", "now"}, 2, none, []string{`unexpected argument "now"`}},
		{[]string{"--listen", "127.0.0.1"}, 2, none, []string{"--listen"}},
		{[]string{"--config", "absent.yaml"}, 2, none, []string{"absent.yaml"}},
		{[]string{"check-config"}, 2, none, []string{"one file"}},
		{[]string{"check-config", "absent.yaml"}, 2, none, []string{"absent.yaml"}},
		{[]string{"demo", "again"}, 2, none, []string{"no arguments"}},
		{[]string{"replay"}, 2, none, []string{"files or folders"}},
		{[]string{"replay", "absent"}, 2, none, []string{"absent"}},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) { command(t, c.args...).wants(t, c.code, c.out, c.errs) })
	}
}

func TestCheckConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	good := writeFile(t, dir, "good.yaml", `
upstream: {base_url: "https://models.example/v1", api_key: sk-very-secret}
condenser: {type: llm, max_size: 80}
`)
	if f := command(t, "check-config", good); f.Code != 0 || !strings.HasPrefix(f.Out, good+": valid\n  condenser: ") || f.Err != "" {
		t.Errorf("exit code %d: %q, %q", f.Code, f.Out, f.Err)
	}
	f := command(t, "check-config", "--print", good)
	f.wants(t, 0, []string{"https://models.example/v1", "max_size: 80", good}, nil)
	if strings.Contains(f.Out, "sk-very-secret") {
		t.Error("it shows a secret")
	}
	bad := writeFile(t, dir, "bad.yaml", `
listen: nowhere
store: {type: paper}
condenser: {type: llm, max_size: 10, keep_first: 9, llm_config: nobody}
limitz: {}
`)
	command(t, "check-config", bad).wants(t, 2, nil, []string{"listen", "store.type", "keep_first", "llm_config", "limitz"})
	command(t, "--config", bad).wants(t, 2, nil, []string{"listen", "store.type", "keep_first", "llm_config", "limitz"})
}

// TestWarningsAreNoErrors: a configuration that cannot be meant is checked and served, and the log of a start has what check-config prints.
func TestWarningsAreNoErrors(t *testing.T) {
	t.Parallel()
	odd := writeFile(t, t.TempDir(), "odd.yaml", "listen: 127.0.0.1:0\nadmin: {listen: 127.0.0.1:0}\nstore: {path: "+newStore(t)+"}\ncondenser: {type: llm, max_tokens: 75}\n")
	const key, warning = "condenser.max_tokens", "is 75 tokens, which every request of an agent exceeds"
	command(t, "check-config", odd).wants(t, 0, []string{"valid, with 1 warning\n  " + key + ": " + warning, "(line 4)"}, nil)
	p := serve(t, "--config", odd)
	p.awaitLine(`"msg":"configuration warning","key":"` + key + `","warning":"` + warning)
}

func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	defer l.Close()
	taken := l.Addr().String()
	command(t, "--listen", taken, "--admin", "127.0.0.1:0").wants(t, 1, nil, []string{"dewpoint: ", taken, "address already in use: choose another address with --listen or DEWPOINT_LISTEN\n"})
	command(t, "--listen", "127.0.0.1:0", "--admin", taken).wants(t, 1, nil, []string{"dewpoint: ", "admin.listen: ", taken, "address already in use: choose another address with --admin or DEWPOINT_ADMIN_LISTEN\n"})
}

// TestSecondProcessOnOneFile: only one process may use the store's file. The second one reports that and exits, and the first
// continues.
func TestSecondProcessOnOneFile(t *testing.T) {
	t.Parallel()
	s := newSetting(t, fakeupstream.Options{})
	store := newStore(t)
	config := s.config(t, embedded(store))
	first := serve(t, "--config", config)
	command(t, "--config", config).wants(t, 1, nil,
		[]string{"Dewpoint already runs on " + first.Addr, fmt.Sprint("process ", first.command.Process.Pid), store, "--listen 127.0.0.1:0"})
	ok(t, send(t, first, body(demo.Sample().Messages[:2])).finish())
}

// TestStateOfAUser: without a configured file, state is in the user's state folder, which nobody else can read, and nothing is left in the
// current folder. A file from there is named, and stays as it is.
func TestStateOfAUser(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: the folder is another one on this system; TestStateFolder names it")
	}
	home, here := t.TempDir(), t.TempDir()
	start := func() *process {
		t.Helper()
		program := exec.Command(built(t), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
		program.Dir, program.Env = here, append(running.Environment(), "HOME="+home, "XDG_STATE_HOME=", "XDG_CONFIG_HOME=")
		return started(t, program)
	}
	first := start()
	folder := filepath.Join(home, ".local", "state", "dewpoint")
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "state.db")); err != nil {
		t.Error(err)
	}
	left, err := os.ReadDir(here)
	ok(t, err)
	if len(left) > 0 || strings.Contains(first.log.String(), "no longer kept") {
		t.Errorf("the current folder has %v", left)
	}
	first.terminate()
	first.wait()
	writeFile(t, here, "dewpoint.db", "from an earlier version")
	second := start()
	if !strings.Contains(second.log.String(), `"found":"dewpoint.db"`) {
		t.Error("the file in the current folder is not named")
	}
	if b, err := os.ReadFile(filepath.Join(here, "dewpoint.db")); err != nil || string(b) != "from an earlier version" {
		t.Errorf("it was changed: %q, %v", b, err)
	}
}

// TestFileOfAnotherProgramIsRefused: a file of another program is refused, and neither changed nor renamed.
func TestFileOfAnotherProgramIsRefused(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("not a store ", 4096)
	store := writeFile(t, t.TempDir(), "dewpoint.db", content)
	command(t, "--store", store, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0").wants(t, 1, nil, []string{"store.path", store, "not a session store"})
	if b, err := os.ReadFile(store); err != nil || string(b) != content {
		t.Errorf("the file was changed (%v)", err)
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := commandIn(t, dir, "demo")
	f.wants(t, 0, []string{"condensed", "it pays: ", "tokens removed", "of them would not have fitted the window", "% saved, with "}, nil)
	lines := strings.Split(strings.TrimSpace(f.Out), "\n")
	if last := lines[len(lines)-1]; !strings.Contains(last, "OPENAI_BASE_URL=http://127.0.0.1:8080/v1") {
		t.Errorf("the last line is %q", last)
	}
	left, err := os.ReadDir(dir)
	ok(t, err)
	if len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

func TestReplay(t *testing.T) {
	t.Parallel()
	runs := t.TempDir()
	for _, run := range []replay.Run{demo.Sample(), longRun()} {
		writeFile(t, runs, run.Name+".json", string(encode(run)))
	}
	flags := []string{"replay", "--max-size", fmt.Sprint(maxSize)}
	dir := t.TempDir()
	commandIn(t, dir, append(flags, runs)...).wants(t, 0, []string{"2 sessions", "without Dewpoint", "saved", "default            $"}, nil)
	left, err := os.ReadDir(dir)
	ok(t, err)
	if len(left) > 0 {
		t.Errorf("it left %v", left)
	}
	file := filepath.Join(runs, "long.json")
	command(t, append(flags, file, "--json")...).wants(t, 0, []string{`"run": "long"`, `"saved_usd": `}, nil)
	broken := writeFile(t, runs, "broken.json", `{"messages": [`)
	command(t, append(flags, runs)...).wants(t, 1, []string{"2 sessions"}, []string{"dewpoint: ", filepath.Base(broken)}) // the others are replayed
	empty := writeFile(t, t.TempDir(), "empty.json", `{}`)
	command(t, append(flags, empty)...).wants(t, 1, nil, []string{"empty.json", "messages"})
}

// TestReplayComparesConfigurationsOnLogsOfAgents: logs of Claude Code and Codex, in folders, under two configurations. A file that is no log is
// named, and is no failure.
func TestReplayComparesConfigurationsOnLogsOfAgents(t *testing.T) {
	t.Parallel()
	logs, err := filepath.Abs("../../replay/logs/testdata")
	ok(t, err)
	dir := t.TempDir()
	writeFile(t, dir, "package.json", `{"name": "shop"}`)
	masking := writeFile(t, t.TempDir(), "masking.yaml", "condenser: {type: observation_masking, attention_window: 1, stride: 1}\n")
	args := []string{"replay", logs, dir, "--config", "default", "--config", masking}
	skipped := []string{"left out: package.json: it has no messages"}
	command(t, args...).wants(t, 0, []string{
		"9 sessions\n", "without Dewpoint   $0.", "default            $0.", "masking.yaml       $0.", "claude-opus-4-8", "gpt-5.5", "lack the system prompt",
	}, skipped)
	command(t, append(args, "--csv")...).wants(t, 0, []string{"config,session,", "default,claude.jsonl,claude-opus-4-8,3,5,true,", "masking.yaml,codex.jsonl#3,"}, skipped)
	command(t, append(args, "--json")...).wants(t, 0, []string{`"sessions": 9`, `"run": "agent.jsonl (sub-agent)"`}, skipped)
	command(t, append(args, "--losers")...).wants(t, 0, []string{"default: no session would have cost more."}, skipped)
	command(t, append(args, "--csv", "--json")...).wants(t, 2, nil, []string{"--json or --csv"})
	command(t, append(args, "--config", "absent.yaml")...).wants(t, 2, nil, []string{"absent.yaml"})
}
