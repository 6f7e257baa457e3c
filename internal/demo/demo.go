package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/judge"
)

// maxSize is the number of events above which the demo condenses: low enough for several condensations.
const maxSize = 40

// Play plays the sample in a wire protocol, named as in replay. It writes a line after each step, and finally the savings.
func Play(ctx context.Context, out io.Writer, protocol string) (err error) {
	cfg := config.Default()
	cfg.Condenser.LLMConfig = "cheap"
	cfg.Condenser.MaxSize = maxSize
	cfg.Condenser.MinTokens = 0
	stage, err := judge.NewStage(*cfg, fakeupstream.Options{Keep: 16}, nil)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, stage.Close()) }()

	fmt.Fprintf(out, "A sample agent run through the real proxy and its 'llm' condenser (max_size: %d), against a built-in fake\n"+
		"upstream with a stand-in for the summarising model. No network, no key.\n\n", maxSize)
	fmt.Fprintf(out, "%5s %8s %11s %11s %11s   %s\n", "step", "events", "forwarded", "tokens in", "forwarded", "condensed")
	report, err := judge.Play(ctx, Sample(), judge.Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: judge.Model, Stream: true, Protocol: protocol,
		Expect: judge.Expectations{MaxSize: maxSize, Summarisers: []string{judge.Summariser}},
		Each: func(s judge.Step) {
			before, after, _ := strings.Cut(s.Tokens, ";")
			fmt.Fprintf(out, "%5d %8d %11d %11s %11s   %s\n", s.Number+1, s.Events, s.Forwarded, before, after, describe(s.Condensed))
		},
	})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if len(report.Violations) > 0 {
		return fmt.Errorf("demo: %w", errors.Join(report.Violations...))
	}
	fmt.Fprintf(out, "\n%d steps, %d condensations. Tokens by upstream's count: %d sent by the agent, %d forwarded (%d of them from\n"+
		"the prompt cache), %d used by the summariser: %.1f%% saved, net.\n\n", report.Steps, report.Condensed, report.Sent,
		report.Forwarded, report.Cached, report.Own, report.Saved())
	yours := "dewpoint & OPENAI_BASE_URL=http://127.0.0.1:8080/v1 your-agent"
	if protocol == "messages" {
		yours = "dewpoint --upstream https://api.anthropic.com/v1 & ANTHROPIC_BASE_URL=http://127.0.0.1:8080 your-agent"
	}
	fmt.Fprintln(out, "Now yours:  "+yours)
	return nil
}

// describe puts the proxy's header about condensations into words. It returns an empty string if the header has another form.
func describe(condensed string) string {
	parts := strings.Split(condensed, "; ")
	if len(parts) != 4 {
		return ""
	}
	return fmt.Sprintf("limit on %s: %s events and %s tokens removed", parts[0], parts[1], parts[2])
}
