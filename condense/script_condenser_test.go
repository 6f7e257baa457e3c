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
	"github.com/dewpoint-proxy/dewpoint/session"
)

// spec describes a condenser in a script.
type spec struct {
	kind                         string
	settings                     condense.LLMSettings
	attention, stride, maxEvents int
	batched                      int // 1: it is
	window, reserved             int // of the request
	stages                       []spec
}

func readSpec(t *testing.T, d *datadriven.TestData) spec {
	var fields []string
	for _, a := range d.CmdArgs {
		fields = append(fields, a.Key+"="+strings.Join(a.Vals, ""))
	}
	s := parseSpec(t, fields)
	for line := range strings.Lines(d.Input) {
		fields := strings.Fields(line)
		s.stages = append(s.stages, parseSpec(t, append([]string{"type=" + fields[0]}, fields[1:]...)))
	}
	return s
}

func parseSpec(t *testing.T, fields []string) spec {
	s := spec{kind: "llm", settings: condense.LLMSettings{Settings: condense.Settings{MinimumProgress: 0.1}, Model: "small-model"}}
	for _, field := range fields {
		key, value, _ := strings.Cut(field, "=")
		if key == "type" {
			s.kind = value
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !s.set(key, n) {
			t.Fatalf("bad setting %s: %v", field, err)
		}
	}
	return s
}

func (s *spec) set(key string, f float64) bool {
	n := int(f)
	places := map[string]*int{
		"max-size": &s.settings.MaxSize, "keep-first": &s.settings.KeepFirst, "margin": &s.settings.Margin,
		"event-length": &s.settings.MaxEventLength, "small-window": &s.settings.Window, "output": &s.settings.MaxOutput,
		"window": &s.window, "reserved": &s.reserved, "attention": &s.attention, "stride": &s.stride, "max-events": &s.maxEvents, "batched": &s.batched,
	}
	switch place := places[key]; {
	case place != nil:
		*place = n
	case key == "max-tokens":
		s.settings.MaxTokens = f
	case key == "progress":
		s.settings.MinimumProgress = f
	default:
		return false
	}
	return true
}

func (s *spec) build(t *testing.T, p *prompts) condense.Condenser {
	s.settings.Summariser = p
	switch s.kind {
	case "noop":
		return condense.Noop{}
	case "observation_masking":
		return condense.ObservationMasking{AttentionWindow: s.attention, Stride: s.stride, Batched: s.batched > 0}
	case "browser_output":
		return condense.BrowserOutput{AttentionWindow: s.attention, Batched: s.batched > 0}
	case "recent_events":
		return condense.RecentEvents{KeepFirst: s.settings.KeepFirst, MaxEvents: s.maxEvents}
	case "amortized_forgetting":
		return condense.AmortizedForgetting{Settings: s.settings.Settings}
	case "excerpts":
		return condense.Excerpts{Settings: s.settings.Settings}
	case "conversation_window":
		return condense.ConversationWindow{}
	case "llm":
		return condense.NewLLM(s.settings)
	case "structured_summary":
		return condense.NewStructured(s.settings)
	case "llm_attention":
		return condense.NewAttention(s.settings)
	case "tool_output_trim":
		return condense.ToolOutputTrim{MaxEventLength: s.settings.MaxEventLength}
	case "lossless_trim":
		return condense.LosslessTrim{}
	case "pipeline":
		var p2 condense.Pipeline
		for i := range s.stages {
			p2.Stages = append(p2.Stages, s.stages[i].build(t, p))
		}
		return p2
	}
	t.Fatalf("unknown type %s", s.kind)
	return nil
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
