package doctor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/serve/app"
	"github.com/dewpoint-proxy/dewpoint/internal/setup"
)

// Patient is what is examined.
type Patient struct {
	File     string         // the configuration file; empty: none
	Config   *config.Config // as far as it could be read; nil: not at all
	Problems error          // of the configuration; nil: none
	Getenv   func(string) string
	Home     string            // the user's home folder; empty: not known
	Ask      http.RoundTripper // for upstreams
}

// Examine checks everything and passes on each finding as soon as it is there. What needs a valid configuration is left out if there is none.
func Examine(ctx context.Context, p Patient, found func(Finding)) {
	p.checkConfig(found)
	if p.Config == nil {
		return
	}
	running := p.checkStore(ctx, found)
	p.checkPorts(running, found)
	if p.Problems == nil {
		p.checkUpstreams(ctx, found)
		p.checkModels(ctx, found)
	}
	p.checkAgents(running, found)
}

func (p Patient) checkConfig(found func(Finding)) {
	name := p.File
	if name == "" {
		name = "no file: everything has its default"
	}
	if p.Problems == nil {
		found(Finding{OK, "config", name, ""})
	} else {
		for _, problem := range problems(p.Problems) {
			says, advice := split(problem)
			found(Finding{Fail, "config", says, advice})
		}
	}
	if p.Config == nil {
		return
	}
	for _, w := range p.Config.Warnings {
		says, advice := split(w)
		found(Finding{Warn, "config", says, advice})
	}
}

func problems(err error) config.Problems {
	if all, ok := errors.AsType[config.Problems](err); ok {
		return all
	}
	return config.Problems{{Key: "configuration", Message: err.Error()}}
}

// split returns what is wrong and, after its colon, what to do.
func split(p config.Problem) (says, advice string) {
	says, advice = p.Message, "see docs/configuration.md"
	if at := strings.LastIndex(p.Message, ": "); at >= 0 {
		says, advice = p.Message[:at], p.Message[at+2:]
	}
	if p.Origin != "" {
		says += " (" + p.Origin + ")"
	}
	return p.Key + ": " + says, advice
}

// checkPorts checks that the ports are free, or belong to the proxy that runs with this configuration.
func (p Patient) checkPorts(running *app.RunningError, found func(Finding)) {
	ports := []struct{ key, flag, addr, served string }{{"listen", "--listen", p.Config.Listen, ""}, {"admin.listen", "--admin", p.Config.Admin.Listen, ""}}
	if running != nil {
		ports[0].served, ports[1].served = running.Listen, running.Admin
	}
	for _, port := range ports {
		if port.addr == "" {
			continue
		}
		l, err := net.Listen("tcp", port.addr)
		switch {
		case err == nil:
			_ = l.Close()
			found(Finding{OK, "port", port.addr + " is free", ""})
		case samePort(port.addr, port.served):
			found(Finding{OK, "port", fmt.Sprintf("%s is served by Dewpoint (process %d)", port.addr, running.PID), ""})
		default:
			found(Finding{Fail, "port", fmt.Sprintf("%s cannot be opened: %s", port.addr, cause(err)),
				fmt.Sprintf("stop the program that uses it, or choose another with %s or %s", port.flag, port.key)})
		}
	}
}

// samePort reports whether two addresses have the same port, which is not 0.
func samePort(a, b string) bool {
	_, one, err := net.SplitHostPort(a)
	_, other, err2 := net.SplitHostPort(b)
	return err == nil && err2 == nil && one == other
}

// cause returns the innermost error, which names no address that was named before.
func cause(err error) string {
	for inner := errors.Unwrap(err); inner != nil; inner = errors.Unwrap(err) {
		err = inner
	}
	return err.Error()
}

// checkAgents says where the settings of agents send their requests.
func (p Patient) checkAgents(running *app.RunningError, found func(Finding)) {
	at := p.Config.Listen
	if running != nil && running.Listen != "" {
		at = running.Listen
	}
	pointers := setup.Pointers(p.Home, p.Getenv)
	for _, to := range pointers {
		says := fmt.Sprintf("%s is %s in %s", to.Setting, to.URL, to.Where)
		if samePort(to.Host(), at) {
			found(Finding{OK, "agents", says, ""})
			continue
		}
		found(Finding{Warn, "agents", says + ", not this proxy", fmt.Sprintf("if its agent should be condensed, make it %s", base(to.Setting, at))})
	}
	if len(pointers) == 0 {
		found(Finding{OK, "agents", "no setting of an agent names a server. To point one here: dewpoint run -- AGENT, or export OPENAI_BASE_URL=" + base("OPENAI", at) +
			" or ANTHROPIC_BASE_URL=" + base("ANTHROPIC", at), ""})
	}
}

// base returns the address that a setting should have for a proxy at an address.
func base(setting, at string) string {
	if strings.HasPrefix(setting, "ANTHROPIC") {
		return "http://" + at
	}
	return "http://" + at + "/v1"
}
