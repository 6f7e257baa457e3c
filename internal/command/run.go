package command

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/launch"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/platform"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/runs"
)

// Exit codes of run if it cannot start the agent, as shells use them.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
)

// exitError ends the program with the exit code of an agent, or with one that says why it was not started. Without a text nothing is printed.
type exitError struct {
	code int
	text string
}

func (e exitError) Error() string { return e.text }

// agentRun is a command line of run.
type agentRun struct {
	from    configSource
	named   string // the configuration file that the user has named; empty: none
	observe bool
	command []string // the agent and its arguments
	errs    io.Writer
}

// runAgent runs an agent whose requests go through a proxy, and prints what that has saved. The agent has the terminal to itself, and its exit
// code becomes that of this program.
func runAgent(ctx context.Context, args []string, out, errs io.Writer) error {
	r, list, err := parseRun(args, out, errs)
	if err != nil {
		return err
	}
	if list {
		return listAgents(out)
	}
	program, err := launch.Find(r.command[0])
	if err != nil {
		return r.notStarted(err)
	}
	pointed := agents.LaunchOf(r.command[0])
	switch {
	case pointed.Never:
		return usageError{fmt.Errorf("dewpoint run: %s cannot be pointed at a proxy: %s", pointed.Name, pointed.Note)}
	case pointed.Instead != "":
		return usageError{fmt.Errorf("dewpoint run: %s takes no address when it is started. Start 'dewpoint', and point it once by hand: %s",
			pointed.Name, pointed.Instead)}
	}
	passed := make(chan os.Signal, 16)
	signal.Notify(passed, platform.Passed()...) // from here on, so that what was begun is always ended
	defer signal.Stop(passed)
	lease, err := r.join(ctx, pointed)
	if err != nil {
		return err
	}
	defer lease.End()
	r.greet(lease)
	file, err := r.furnish(pointed.File)
	if err != nil {
		return err
	}
	code, err := r.agent(program, pointed.At(lease.Base(), file), lease, passed)
	if err != nil {
		return err
	}
	r.report(lease)
	return exitError{code: code}
}

func parseRun(args []string, out, errs io.Writer) (r agentRun, list bool, err error) {
	set := flags("run", errs)
	file := set.String("config", "", "configuration file, YAML or TOML")
	set.BoolVar(&r.observe, "observe", false, "forward the agent's requests unchanged, and print what would have been saved")
	set.BoolVar(&list, "list", false, "list the known agents, and how they are pointed at the proxy")
	r.from.flags, r.errs = map[string]string{}, errs
	for name, usage := range map[string]string{
		"upstream": "where all requests go, with the agent's own key (default: to the provider that the agent means)",
		"store":    "state of the embedded store (default state.db in the user's state folder)",
	} {
		set.Func(name, usage, func(value string) error {
			r.from.flags[name] = value
			return nil
		})
	}
	switch err := set.Parse(args); { // the agent's flags are its own
	case errors.Is(err, flag.ErrHelp):
		printHelp(set, out)
		return r, false, err
	case err != nil:
		return r, false, usageError{errors.New("dewpoint: see 'dewpoint run --help'")}
	}
	r.command = set.Args()
	if len(r.command) == 0 && !list {
		return r, false, usageError{errors.New("dewpoint: run takes the command of an agent, such as: dewpoint run -- claude")}
	}
	r.named = cmp.Or(*file, os.Getenv("DEWPOINT_CONFIG"))
	r.from.file = cmp.Or(r.named, defaultFile(os.Getenv))
	return r, list, nil
}

// listAgents prints how the known agents are pointed at a proxy: a line for each, and one for what its user has to know.
func listAgents(out io.Writer) error {
	for _, l := range agents.Launches() {
		by := strings.Join(pointedBy(l), ", ")
		switch {
		case l.Never:
			by = "cannot be pointed"
		case l.Instead != "":
			by = "by hand: " + l.Instead
		}
		fmt.Fprintln(out, strings.TrimSuffix(l.Name+" ("+strings.Join(l.Commands, ", ")+")", " ()"))
		for _, line := range []string{by, l.Note} {
			if line != "" {
				fmt.Fprintln(out, "    "+line)
			}
		}
	}
	return nil
}

// pointedBy names the variables and arguments by which an agent is pointed.
func pointedBy(l agents.Launch) (names []string) {
	at := l.At("URL", l.File.Name)
	for _, v := range at.Env {
		names = append(names, v.Name)
	}
	if len(at.Args) > 0 {
		names = append(names, strings.Join(at.Args, " "))
	}
	return names
}

// greet says where the proxy is, before the agent has the terminal.
func (r agentRun) greet(l *runs.Lease) {
	file, is := r.errs.(*os.File)
	if !is {
		return
	}
	if info, err := file.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 {
		fmt.Fprintf(r.errs, "Dewpoint %s on http://%s\n", l.Version, l.Listen)
	}
}

// agent runs the agent and returns its exit code. The agent keeps the run even if this process is killed, and the proxy's port even if the proxy
// is: what listens there next would be sent the agent's key. Where a port cannot be held, the agent is stopped when the proxy ends.
func (r agentRun) agent(program string, l agents.Launch, lease *runs.Lease, passed <-chan os.Signal) (code int, err error) {
	a := launch.Agent{Command: r.command, Launch: l, Signals: passed, Stop: lease.Lost()}
	held, err := lease.File()
	if err != nil {
		return 0, fmt.Errorf("run: %w", err)
	}
	defer held.Close() //nolint:errcheck // a copy
	a.Held = append(a.Held, held)
	if lease.Holdable {
		port, err := platform.Hold(lease.Listen)
		if err != nil {
			return 0, fmt.Errorf("run: the port of the proxy cannot be held: %w", err)
		}
		defer port.Close() //nolint:errcheck // nothing was written
		a.Held, a.Stop = append(a.Held, port), nil
	}
	code, err = a.Run(program)
	return code, r.notStarted(err)
}

// notStarted gives the error of an agent that could not be started its exit code.
func (r agentRun) notStarted(err error) error {
	code := exitNotExecutable
	switch {
	case err == nil:
		return nil
	case errors.Is(err, launch.ErrNotFound):
		code = exitNotFound
	}
	return exitError{code, fmt.Sprintf("dewpoint run: %s: %v", r.command[0], err)}
}

// report prints the totals of the run.
func (r agentRun) report(l *runs.Lease) {
	totals, err := l.Totals(context.Background())
	if err != nil {
		what := " Its log is " + r.logName()
		if !l.Holdable { // by a process that serves
			what = " So that no other program on its port was sent the agent's key, the agent was stopped."
		}
		fmt.Fprintln(r.errs, "Dewpoint: the proxy ended before the agent."+what)
		return
	}
	fmt.Fprintln(r.errs, "Dewpoint:", totals.Line())
}

func (r agentRun) logName() string {
	path, err := r.logPath()
	if err != nil {
		return "in the state folder"
	}
	return path
}

func (r agentRun) logPath() (string, error) {
	cfg, err := load(r.from, nil)
	if err != nil {
		return "", err
	}
	return app.RunLog(cfg)
}

// furnish writes a file that the agent reads into the state folder, and returns its path. It stays there: each run of the agent reads it.
func (r agentRun) furnish(f agents.File) (path string, err error) {
	if f.Name == "" {
		return "", nil
	}
	log, err := r.logPath()
	if err != nil {
		return "", fmt.Errorf("run: %w", err)
	}
	path = filepath.Join(filepath.Dir(log), f.Name)
	if is, err := os.ReadFile(path); err == nil && string(is) == f.Text { //nolint:gosec // in the state folder
		return path, nil
	}
	if err := os.WriteFile(path, []byte(f.Text), 0o600); err != nil { //nolint:gosec // in the state folder
		return "", fmt.Errorf("run: %w", err)
	}
	return path, nil
}

// sameFile reports whether two paths of configuration files are the same. The first one is absolute or empty.
func sameFile(absolute, file string) bool {
	if file == "" {
		return true
	}
	path, err := filepath.Abs(file)
	return err == nil && path == absolute
}
