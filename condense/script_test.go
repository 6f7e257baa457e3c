package condense_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/condense/condensetest"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// TestScripts runs the scripts in testdata: events in; decision, condensation, view and summary out. Commands
// are
//
//	config [type=TYPE] KEY=VALUE...  a condenser, with - for _ in its keys; for a pipeline its stages follow, one per line: TYPE KEY=VALUE...
//	history, append                  set or add events
//	edit at=N, fork at=N             change the text of message N (from 1), or go back to it; events follow
//	condense [need=R] [soft] [cooling] [gone] [late] [recall]   the script of the summariser follows, one answer per line
//	view, shaped                     the view according to the log, and that of the last decision
//	summary, prompt, prompts         the newest summary; the summariser's last prompt; the shape of all its prompts
//
// Events are
//
//	system|user|agent TEXT [*N]      N words of filler after the text
//	call ID,ID... [tool=NAME] [url=URL] [answers=ID] [sealed] [*N]   an assistant message with tool calls
//	result ID TEXT [*N]
//	file ID FROM TO                  a result with these lines of a file
//	turns N [*N]                     N calls with their results
//
// Answers of the summariser are: ok TEXT [*N], json TEXT, call JSON, down, slow, limited, empty, refuse,
// filter, truncated, huge. The last one is repeated if "and so on" follows.
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
	spec     spec
	turn     int
	messages []session.Message
	log      []session.Condensation
	shaped   *session.View
	prompts  *prompts
}

func (s *script) run(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "config":
		s.spec = readSpec(t, d)
		return ""
	case "history":
		s.messages, s.log, s.turn = nil, nil, 0
		return s.grow(t, d)
	case "append":
		return s.grow(t, d)
	case "edit", "fork":
		return s.change(t, d)
	case "condense":
		return s.condense(t, d)
	}
	return s.tell(t, d)
}

func (s *script) grow(t *testing.T, d *datadriven.TestData) string {
	s.add(t, d.Input)
	return fmt.Sprintf("%d messages\n", len(s.messages))
}

// change edits a message, or forks the history at it.
func (s *script) change(t *testing.T, d *datadriven.TestData) string {
	var at int
	d.ScanArgs(t, "at", &at)
	if d.Cmd == "fork" {
		s.messages = append([]session.Message(nil), s.messages[:at]...)
		return s.grow(t, d)
	}
	c, err := condensetest.Codec{}.Read(s.messages[at-1].Raw)
	if err != nil {
		t.Fatal(err)
	}
	c.Text += " edited"
	s.messages = append([]session.Message(nil), s.messages...)
	s.messages[at-1] = condensetest.Message(c)
	return s.grow(t, d)
}

// tell shows the outcome.
func (s *script) tell(t *testing.T, d *datadriven.TestData) string {
	switch d.Cmd {
	case "view":
		v := s.view()
		return show(&v)
	case "shaped":
		return show(s.shaped)
	case "summary":
		v := s.view()
		return v.Summary().Summary + "\n"
	case "prompt":
		return s.prompts.all[len(s.prompts.all)-1].User + "\n"
	case "prompts":
		return s.prompts.brief()
	}
	t.Fatalf("unknown command %s", d.Cmd)
	return ""
}

func (s *script) view() session.View {
	return project(session.NewHistory(session.Hash{}, s.messages), s.log)
}

func (s *script) condense(t *testing.T, d *datadriven.TestData) string {
	s.prompts = newPrompts(t, d.Input)
	v := s.view()
	in := input(&v)
	in.Window, in.Reserved, in.Thread.Recall = s.spec.window, s.spec.reserved, d.HasArg("recall")
	if d.HasArg("need") {
		d.ScanArgs(t, "need", (*string)(&in.Need.Reason))
		in.Need.Hard = in.Need.Reason == session.ReasonOverflow && !d.HasArg("soft")
		in.Need.Try = in.Need.Reason == session.ReasonRequest
	}
	decision := s.spec.build(t, s.prompts, always(!d.HasArg("cooling"))).Condense(in)
	out := ""
	if s.shaped = &v; decision.View != nil {
		s.shaped = decision.View
		out = fmt.Sprintf("view: %d events, %d tokens\n", len(s.shaped.Items), fixed+sum(measure(s.shaped.Items)))
		if err := condensetest.Shaped(s.shaped); err != nil {
			t.Error(err)
		}
	}
	if decision.Job == nil && decision.View != nil {
		return out
	}
	if decision.Job == nil {
		return fmt.Sprintf("nothing to do: %d events, %d tokens\n", len(v.Items), in.Total)
	}
	ctx, cancel := deadline(d)
	defer cancel()
	return out + describe(decision.Job.Need()) + s.result(t, decision.Job, ctx, &v)
}

// deadline returns the context of a client that is gone, or of a job that is late.
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
	// How many of the concurrent parts begin before one fails depends on timing.
	if bad, _ := errors.AsType[*condense.SummaryError](r.Fallback); bad == nil || bad.Kind != condense.FaultTooLarge {
		fmt.Fprintf(&b, "summariser called %d times\n", len(s.prompts.all))
	}
	if err != nil {
		fmt.Fprintf(&b, "error: %v\n", err)
		return b.String()
	}
	if r.Fallback != nil {
		fmt.Fprintf(&b, "fallback: %v\n", r.Fallback)
	}
	b.WriteString(tellCondensation(r.Condensation))
	c := r.Condensation
	c.ID.Seq = uint64(len(s.log) + 1)
	if n := len(v.Applied); n > 0 {
		c.Base = v.Applied[n-1].ID
	}
	s.log = append(s.log, c)
	after := s.view()
	if err := errors.Join(condensetest.Condensation(v, c), condensetest.Shaped(&after)); err != nil {
		t.Error(err)
	}
	return b.String()
}

func tellCondensation(c session.Condensation) string {
	var b strings.Builder
	if len(c.Trims) > 0 {
		fmt.Fprintf(&b, "trims %v\n", tellTrims(c.Trims))
	}
	fmt.Fprintf(&b, "forgotten %v, %d tokens; prefix %d, offset %d\n", c.Forgotten, c.ForgottenTokens, c.Prefix, c.Offset)
	fmt.Fprintf(&b, "events %d -> %d, tokens %d -> %d\n", c.Before.Events, c.After.Events, c.Before.Tokens, c.After.Tokens)
	fmt.Fprintf(&b, "%s, model %q\n", c.Made(), c.Model)
	return b.String()
}

func tellTrims(trims []session.Trim) (out []string) {
	for _, t := range trims {
		text := fmt.Sprintf("{%d %d %d}", t.Pos, t.Head, t.Tail)
		if !t.Cut() {
			text = fmt.Sprintf("{%d tidy: %v, copies: %v}", t.Pos, t.Tidy, t.Copies)
		}
		out = append(out, text)
	}
	return out
}

// show lists the messages of a view by position.
func show(v *session.View) string {
	var b strings.Builder
	for _, item := range v.Items {
		if item.Index < 0 {
			fmt.Fprintf(&b, "  . summary, %d tokens\n", count(item.Summary))
			continue
		}
		c, _ := condensetest.Codec{}.Read(item.Raw)
		text := strings.ReplaceAll(c.Text, "\n", " / ")
		for strings.Contains(text, " word word") {
			text = strings.ReplaceAll(text, " word word", " word")
		}
		text = strings.TrimSuffix(text, " word")
		for _, call := range c.Calls {
			text += " " + call.ID
		}
		fmt.Fprintf(&b, "%3d %s %s\n", v.History.Pos(item.Index), item.Kind, strings.TrimSpace(c.Result+" "+strings.TrimSpace(text)))
	}
	return b.String()
}

// always is a Health that never changes.
type always bool

func (a always) Ready(condense.Attempt) bool     { return bool(a) }
func (a always) Begin(condense.Attempt) bool     { return bool(a) }
func (always) Missing(condense.Attempt) bool     { return false }
func (always) End(condense.Attempt, error)       {}
func (always) Window(condense.Attempt) int       { return 0 }
func (always) LearnWindow(condense.Attempt, int) {}
