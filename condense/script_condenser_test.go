package condense_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/catalogue"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// spec describes a condenser in a script, and what it is given besides its settings.
type spec struct {
	settings         catalogue.Settings
	margin           int // tokens
	smallWindow      int // of the summariser's model
	output           int // maximum tokens of a summary
	window, reserved int // of the request
	health           condense.Health
	asked            condense.Summariser
}

func readSpec(t *testing.T, d *datadriven.TestData) spec {
	var fields []string
	for _, a := range d.CmdArgs {
		fields = append(fields, a.Key+"="+strings.Join(a.Vals, ""))
	}
	s := parseSpec(t, fields)
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		stage := parseSpec(t, append([]string{"type=" + fields[0]}, fields[1:]...))
		s.settings.Condensers = append(s.settings.Condensers, stage.settings)
	}
	return s
}

func parseSpec(t *testing.T, fields []string) spec {
	s := spec{settings: catalogue.Settings{Type: catalogue.TypeLLM, MinimumProgress: 0.1}}
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		if !s.set(key, value) {
			t.Fatalf("bad setting %s", field)
		}
	}
	return s
}

// set sets a key of the condenser, spelled with - for _, or what else the condenser is given.
func (s *spec) set(key, value string) bool {
	own := map[string]*int{"margin": &s.margin, "small-window": &s.smallWindow, "output": &s.output, "window": &s.window, "reserved": &s.reserved}
	n, err := strconv.ParseFloat(value, 64)
	switch place := own[key]; {
	case err != nil:
		return s.settings.Set(strings.ReplaceAll(key, "-", "_"), value)
	case place != nil:
		*place = int(n)
		return true
	}
	return s.settings.Set(strings.ReplaceAll(key, "-", "_"), n)
}

// Rolling implements catalogue.Dependencies.
func (s spec) Rolling(of catalogue.Settings, _ condense.Input) condense.Settings {
	rolling := of.Rolling()
	rolling.Margin = s.margin
	return rolling
}

// Asking implements catalogue.Dependencies.
func (s spec) Asking(_ string, of catalogue.Settings) (func(condense.Input) condense.LLMSettings, error) {
	return func(in condense.Input) condense.LLMSettings {
		return condense.LLMSettings{
			Settings: s.Rolling(of, in), Model: "small-model", Summariser: s.asked, Health: s.health,
			Window: s.smallWindow, MaxOutput: s.output, MaxEventLength: of.MaxEventLength,
		}
	}, nil
}

func (s spec) build(t *testing.T, p *prompts, health condense.Health) condense.Condenser {
	s.asked, s.health = p, health
	c, err := catalogue.Build("config", s.settings, s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// prompts is a summariser that follows a script and records its requests.
type prompts struct {
	t     *testing.T
	lines []string
	mu    sync.Mutex
	all   []condense.Request
}

func newPrompts(t *testing.T, input string) *prompts {
	return &prompts{t: t, lines: strings.Split(input, "\n")}
}

// Summarise implements condense.Summariser.
func (p *prompts) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := len(p.all)
	if last := len(p.lines) - 1; p.lines[last] == "and so on" {
		at = min(at, last-1)
	}
	if at >= len(p.lines) {
		p.t.Error("more calls than the script has")
		return condense.Reply{}, errors.New("no more")
	}
	line, n := filler(p.lines[at])
	p.all = append(p.all, r)
	if err := ctx.Err(); err != nil {
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureCanceled, Err: err}
	}
	return answer(p.t, line, n)
}

// brief describes the shape of all requests.
func (p *prompts) brief() string {
	var lines []string
	for _, r := range p.all {
		lines = append(lines, fmt.Sprintf("%d tokens, at most %d out, %d events in the last, function %v, form %v\n",
			count(r.System+r.User), r.MaxOutput,
			strings.Count(r.User, "<dewpoint_event "), r.Function != nil, r.Format != nil))
	}
	slices.Sort(lines[:len(lines)-1]) // parts are read concurrently
	return strings.Join(lines, "")
}

func answer(t *testing.T, line string, n int) (condense.Reply, error) {
	verb, rest, _ := strings.Cut(line, " ")
	usage := session.Usage{Input: 1000, Output: 100}
	switch verb {
	case "ok":
		return condense.Reply{Text: strings.ReplaceAll(rest, `\n`, "\n") + pad(n), Finish: "stop", Usage: usage}, nil
	case "json":
		return condense.Reply{Text: rest, Finish: "stop", Usage: usage}, nil
	case "call":
		return condense.Reply{Arguments: rest, Finish: "tool_calls", Usage: usage}, nil
	case "down":
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureUnreachable, Err: errors.New("connection refused")}
	case "slow":
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureTimeout, Err: context.DeadlineExceeded}
	case "limited":
		return condense.Reply{}, &condense.CallError{Kind: condense.FailureRateLimited, Status: 429}
	case "empty":
		return condense.Reply{Text: "```\n\n```", Finish: "stop", Usage: usage}, nil
	case "refuse":
		return condense.Reply{Text: "I'm sorry, but I can't help with that.", Finish: "stop", Usage: usage}, nil
	case "filter":
		return condense.Reply{Text: "half a", Finish: "content_filter", Usage: usage}, nil
	case "truncated":
		return condense.Reply{Text: "USER_CONTEXT: the user", Finish: "length", Usage: usage}, nil
	case "huge":
		return condense.Reply{Text: "USER_CONTEXT:" + pad(20000), Finish: "stop", Usage: usage}, nil
	}
	t.Fatalf("unknown answer %q", verb)
	return condense.Reply{}, nil
}
