package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/known/provider"
	"github.com/dewpoint-proxy/dewpoint/internal/launch"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/runs"
	"github.com/dewpoint-proxy/dewpoint/internal/setup"
)

// Bounds of the time that run waits: for a proxy to start, and for one that is ending to give its state file free.
const (
	startTimeout = time.Minute
	rejoinPause  = 100 * time.Millisecond
)

// join begins a run in the proxy that uses the state file, or in one that it starts.
func (r agentRun) join(ctx context.Context, l agents.Launch) (*runs.Lease, error) {
	cfg, err := load(r.from, app.Check)
	if err != nil {
		return nil, usageError{err}
	}
	if err := r.mayReplaceUpstream(); err != nil {
		return nil, err
	}
	own, err := r.ownServers(cfg, l)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	wish := runs.Wish{Observe: r.observe}
	for {
		if at, pid := app.Announced(cfg); at.Listen != "" {
			lease, err := runs.Join(ctx, at, wish)
			if err == nil {
				return r.suitable(lease, pid, cfg, own)
			}
		}
		at, err := r.startHost(ctx, cfg, own)
		if err == nil {
			return runs.Join(ctx, at, wish)
		}
		if !errors.Is(err, errBusy) {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("run: another process uses the state file, but serves no runs: restart it with this version, or name another " +
				"file with --store")
		case <-time.After(rejoinPause): // it is starting or ending
		}
	}
}

// mayReplaceUpstream returns an error if --upstream would send a key of the configuration to another server than it is for.
func (r agentRun) mayReplaceUpstream() error {
	to := strings.TrimRight(r.from.flags["upstream"], "/")
	if to == "" {
		return nil
	}
	flags := maps.Clone(r.from.flags)
	delete(flags, "upstream")
	cfg, err := load(configSource{file: r.from.file, flags: flags}, nil)
	if err != nil || cfg.Upstream.APIKey == "" || cfg.UpstreamFor(config.Tenant{}, config.General).BaseURL == to {
		return nil //nolint:nilerr // what is wrong with the configuration was reported
	}
	return usageError{fmt.Errorf("dewpoint run: upstream.api_key of the configuration is not for %s: write this address into upstream.base_url, "+
		"or remove the key", to)}
}

// ownServers returns the servers that the user's variables and the agent's files name, by provider, such as https://openrouter.ai/api/v1 in
// OPENAI_BASE_URL. What names them is about to be replaced. The keys of these servers must not be sent to others, so they are an error where a
// configuration names other servers.
func (r agentRun) ownServers(cfg *config.Config, l agents.Launch) (map[string]string, error) {
	found, err := setup.OwnServers(l, os.Getenv("HOME"), os.Getenv)
	if err != nil {
		return nil, usageError{fmt.Errorf("dewpoint run: %w", err)}
	}
	for _, v := range l.Env {
		value := os.Getenv(v.Name)
		if value == "" || value == v.Value {
			continue
		}
		if v.Provider == "" {
			return nil, usageError{fmt.Errorf("dewpoint run: %s is set to %s, and has to be replaced: unset it", v.Name, value)}
		}
		found = append(found, setup.OwnServer{Setting: v.Name, Provider: v.Provider, URL: v.Upstream(value)})
	}
	own := map[string]string{}
	for _, s := range found {
		p := provider.Name(s.Provider)
		up := cfg.UpstreamFor(config.Tenant{}, p)
		switch {
		case up.BaseURL == s.URL:
		case up.BaseURL != p.BaseURL(), up.APIKey != "": // a key of the configuration is for its own address
			return nil, usageError{conflict(s.String(), s.URL, up.BaseURL)}
		case own[s.Provider] != "" && own[s.Provider] != s.URL:
			return nil, usageError{fmt.Errorf("dewpoint run: %s names %s, but something else of %s's names %s: remove one of them", s, s.URL, l.Name, own[s.Provider])}
		default:
			own[s.Provider] = s.URL
		}
	}
	return own, nil
}

func conflict(variable, url, upstream string) error {
	return fmt.Errorf("dewpoint run: %s names %s, but the proxy sends these requests to %s, and must not send them the key of another server: "+
		"remove it, or run with --upstream %s", variable, url, upstream, url)
}

// suitable returns a run in a proxy that somebody else has started, unless that is configured in another way than this run asks for.
func (r agentRun) suitable(l *runs.Lease, pid int, cfg *config.Config, own map[string]string) (*runs.Lease, error) {
	problem := ""
	switch to := r.from.flags["upstream"]; {
	case !sameFile(l.Config, r.named):
		problem = "under another configuration"
	case to != "" && slices.ContainsFunc(provider.Names(), func(p provider.Name) bool { return l.Upstreams[string(p)] != strings.TrimRight(to, "/") }):
		problem = "with another upstream"
	}
	for _, p := range provider.Names() {
		url := cmp.Or(own[string(p)], cfg.UpstreamFor(config.Tenant{}, p).BaseURL)
		chosen := own[string(p)] == "" && l.Config != "" && (r.from.file == "" || !sameFile(l.Config, r.from.file)) // by the proxy's own file
		if to := l.Upstreams[string(p)]; to != url && !chosen && !l.Serves(url) {
			problem = fmt.Sprintf("and sends requests to %s, not to %s", to, url)
		}
	}
	if problem == "" {
		return l, nil
	}
	l.End()
	return nil, usageError{fmt.Errorf("dewpoint run: a proxy already runs on the state file (process %d) %s: wait until it has ended, or name another "+
		"file with --store", pid, problem)}
}

// errBusy is returned by startHost if another process uses the state file.
var errBusy = errors.New("the state file is in use")

// startHost starts a proxy for runs as a process of its own, which outlives this one if others use it, and returns where it serves runs. own are
// the upstreams of providers.
func (r agentRun) startHost(ctx context.Context, cfg *config.Config, own map[string]string) (at runs.Address, err error) {
	self, err := os.Executable()
	if err != nil {
		return at, fmt.Errorf("run: %w", err)
	}
	logPath, err := app.RunLog(cfg)
	if err != nil {
		return at, fmt.Errorf("run: %w", err)
	}
	log, err := openLog(logPath)
	if err != nil {
		return at, fmt.Errorf("run: %w", err)
	}
	defer log.Close() //nolint:errcheck // the proxy has its own
	host := launch.Host{Program: self, Args: append([]string{hostName}, r.hostArgs()...), Log: log}
	for p, url := range own {
		host.Env = append(host.Env, "DEWPOINT_UPSTREAM_"+strings.ToUpper(p)+"_BASE_URL="+url)
	}
	line, err := host.Start(ctx)
	if err == nil {
		err = json.Unmarshal(line, &at)
	}
	ended, is := errors.AsType[*launch.EndedError](err)
	switch {
	case err == nil:
		return at, nil
	case is && ended.Code == exitBusy:
		return at, errBusy
	}
	return at, fmt.Errorf("run: the proxy did not start: %w: see the end of its log, %s", err, logPath)
}

func (r agentRun) hostArgs() (args []string) {
	if r.from.file != "" {
		args = append(args, "--config", r.from.file)
	}
	for name, value := range r.from.flags {
		args = append(args, "--"+name, value)
	}
	return args
}

// maxLog is the size above which the log of the proxy that runs share is begun anew, in bytes.
const maxLog = 16 << 20

func openLog(path string) (*os.File, error) {
	mode := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		mode |= os.O_TRUNC
	}
	return os.OpenFile(path, mode, 0o600) //nolint:gosec // in the state folder
}
