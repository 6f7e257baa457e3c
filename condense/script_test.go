package condense_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestScripts runs testdata: events in; decision, condensation, view and summary out. A line of events is
//
//	system|user|agent TEXT [*N]      N words of filler after the text
//	call ID,ID... [loop] [*N]        an assistant message with tool calls
//	result ID TEXT [*N]
//	turns N [*N]                     N times a call and its result
//
// A line of the summariser's script is: ok TEXT [*N], down, slow, limited, empty, refuse, filter, truncated, huge.
func TestScripts(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			s := &script{}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(t, d) })
		})
	}
}

type script struct {
	settings condense.LLMSettings
	window   int
	reserved int
	turn     int
	messages []session.Message
	log      []session.Condensation
	prompts  []condense.Request
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "config":
		s.config(t, d)
		return ""
	case "history":
		s.messages, s.log, s.turn = nil, nil, 0
		s.add(t, d.Input)
		return fmt.Sprintf("%d messages\n", len(s.messages))
	case "append":
		s.add(t, d.Input)
		return fmt.Sprintf("%d messages\n", len(s.messages))
	case "condense":
		return s.condense(t, d)
	case "recent":
		return s.recent(t, d)
	case "view":
		v := s.view()
		return show(&v)
	case "summary":
		return s.log[len(s.log)-1].Summary + "\n"
	case "prompt":
		return s.prompts[len(s.prompts)-1].User + "\n"
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return ""
}

func (s *script) config(t *testing.T, d *datadriven.TestData) {
	s.settings = condense.LLMSettings{Settings: condense.Settings{MinimumProgress: 0.1}, Model: "small-model"}
	s.window, s.reserved = 0, 0
	for _, a := range d.CmdArgs {
		f, err := strconv.ParseFloat(a.Vals[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		n := int(f)
		switch a.Key {
		case "max-size":
			s.settings.MaxSize = n
		case "max-tokens":
			s.settings.MaxTokens = f
		case "keep-first":
			s.settings.KeepFirst = n
		case "progress":
			s.settings.MinimumProgress = f
		case "margin":
			s.settings.Margin = n
		case "event-length":
			s.settings.MaxEventLength = n
		case "window":
			s.window = n
		case "reserved":
			s.reserved = n
		default:
			t.Fatalf("unknown setting %s", a.Key)
		}
	}
}

func (s *script) add(t *testing.T, text string) {
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line, n := filler(lines.Text())
		verb, rest, _ := strings.Cut(line, " ")
		switch verb {
		case "system", "user", "agent":
			role := strings.Replace(verb, "agent", "assistant", 1)
			s.message(session.Content{Role: role, Text: rest + pad(n)}, false)
		case "call":
			ids, loop := strings.CutSuffix(rest, " loop")
			s.calls(strings.Split(ids, ","), loop, n)
		case "result":
			id, result, _ := strings.Cut(rest, " ")
			s.message(session.Content{Role: "tool", Result: id, Text: result + pad(n)}, false)
		case "turns":
			s.turns(t, rest, n)
		default:
			t.Fatalf("unknown event %q", line)
		}
	}
}

func (s *script) turns(t *testing.T, times string, n int) {
	count, err := strconv.Atoi(times)
	if err != nil {
		t.Fatal(err)
	}
	for range count {
		s.turn++
		id := fmt.Sprintf("t%d", s.turn)
		s.calls([]string{id}, false, 0)
		s.message(session.Content{Role: "tool", Result: id, Text: fmt.Sprintf("output %d", s.turn) + pad(n)}, false)
	}
}

func (s *script) calls(ids []string, loop bool, n int) {
	c := session.Content{Role: "assistant"}
	for _, id := range ids {
		c.Calls = append(c.Calls, session.Call{ID: id, Name: "run", Arguments: `{"cmd":"` + id + pad(n) + `"}`})
	}
	s.message(c, loop)
}

func (s *script) message(c session.Content, loop bool) {
	m := condensetest.Message(c)
	m.Loop = loop
	s.messages = append(s.messages, m)
}

// filler takes *N off a line.
func filler(line string) (string, int) {
	at := strings.LastIndex(line, " *")
	if at < 0 {
		return line, 0
	}
	n, err := strconv.Atoi(line[at+2:])
	if err != nil {
		return line, 0
	}
	return line[:at], n
}

func pad(n int) string { return strings.Repeat(" word", n) }

func (s *script) view() session.View {
	return session.Project(session.NewHistory(session.Hash{}, s.messages), s.log)
}

func (s *script) condense(t *testing.T, d *datadriven.TestData) string {
	s.prompts = nil
	settings := s.settings
	settings.Summariser = s.summariser(t, d.Input)
	l := condense.NewLLM(settings)
	v := s.view()
	in := input(&v)
	in.Window, in.Reserved = s.window, s.reserved
	in.Cooling = d.HasArg("cooling")
	if d.HasArg("need") {
		d.ScanArgs(t, "need", (*string)(&in.Need.Reason))
		in.Need.Hard = !d.HasArg("soft")
	}
	job := l.Condense(in).Job
	if job == nil {
		return fmt.Sprintf("nothing to do: %d events, %d tokens\n", len(v.Items), in.Total)
	}
	ctx, cancel := deadline(d)
	defer cancel()
	return describe(job.Need()) + s.result(t, job, ctx, &v)
}

// deadline is the context of a client that has gone, or of a job that is late.
func deadline(d *datadriven.TestData) (context.Context, context.CancelFunc) {
	if d.HasArg("late") {
		return context.WithDeadline(context.Background(), time.Unix(0, 0))
	}
	ctx, cancel := context.WithCancel(context.Background())
	if d.HasArg("gone") {
		cancel()
	}
	return ctx, cancel
}

func describe(n condense.Need) string {
	if n.Hard {
		return fmt.Sprintf("%s, hard\n", n.Reason)
	}
	return fmt.Sprintf("%s, soft\n", n.Reason)
}

func (s *script) result(t *testing.T, job condense.Job, ctx context.Context, v *session.View) string {
	r, err := job.Run(ctx)
	var b strings.Builder
	fmt.Fprintf(&b, "summariser called %d times\n", len(s.prompts))
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
		return b.String()
	}
	if r.Fallback != nil {
		fmt.Fprintf(&b, "fallback: %v\n", r.Fallback)
	}
	c := r.Condensation
	fmt.Fprintf(&b, "forgotten %v, %d tokens; prefix %d, offset %d\n", c.Forgotten, c.ForgottenTokens, c.Prefix, c.Offset)
	fmt.Fprintf(&b, "events %d -> %d, tokens %d -> %d\n", c.Before.Events, c.After.Events, c.Before.Tokens, c.After.Tokens)
	fmt.Fprintf(&b, "model %q, usage %+v\n", c.Model, c.Usage)
	s.log = append(s.log, c)
	after := s.view()
	if err := errors.Join(condensetest.Condensation(v, c), condensetest.View(&after)); err != nil {
		t.Error(err)
	}
	return b.String()
}

func (s *script) summariser(t *testing.T, input string) condense.Summariser {
	lines := strings.Split(input, "\n")
	return summariserFunc(func(ctx context.Context, r condense.Request) (condense.Reply, error) {
		if len(s.prompts) >= len(lines) {
			t.Fatal("more calls than the script has")
		}
		line, n := filler(lines[len(s.prompts)])
		s.prompts = append(s.prompts, r)
		if err := ctx.Err(); err != nil {
			return condense.Reply{}, &condense.CallError{Kind: condense.FailureCanceled, Err: err}
		}
		return answer(t, line, n)
	})
}

func answer(t *testing.T, line string, n int) (condense.Reply, error) {
	verb, rest, _ := strings.Cut(line, " ")
	usage := session.Usage{Input: 1000, Output: 100}
	switch verb {
	case "ok":
		return condense.Reply{Text: strings.ReplaceAll(rest, `\n`, "\n") + pad(n), Finish: "stop", Usage: usage}, nil
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

func (s *script) recent(t *testing.T, d *datadriven.TestData) string {
	var r condense.RecentEvents
	d.ScanArgs(t, "max", &r.MaxEvents)
	d.ScanArgs(t, "keep-first", &r.KeepFirst)
	v := s.view()
	after := r.Condense(condense.Input{View: &v}).View
	if after == nil {
		return "identity\n"
	}
	if err := condensetest.View(after); err != nil {
		t.Error(err)
	}
	return show(after)
}

// show writes a view, a message a line, by position.
func show(v *session.View) string {
	var b strings.Builder
	for _, item := range v.Items {
		if item.Index < 0 {
			fmt.Fprintf(&b, "  . summary, %d tokens\n", count(item.Summary))
			continue
		}
		c, _ := condensetest.Codec{}.Read(item.Raw)
		text, _, _ := strings.Cut(c.Text, " word")
		for _, call := range c.Calls {
			text += " " + call.ID
		}
		fmt.Fprintf(&b, "%3d %s %s\n", v.History.Pos(item.Index), item.Kind, strings.TrimSpace(c.Result+" "+strings.TrimSpace(text)))
	}
	return b.String()
}
