package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// maxSize is when the demo condenses, in events: early enough to see it happen a few times.
const maxSize = 40

// Play runs the sample in a wire protocol, as replay names it, and writes a line a step as it goes, then what was saved.
func Play(ctx context.Context, out io.Writer, protocol string) (err error) {
	cfg := config.Default()
	cfg.Condenser.LLMConfig, cfg.Condenser.MaxSize, cfg.Condenser.MinTokens = "cheap", maxSize, 0
	stage, err := replay.NewStage(*cfg, fakeupstream.Options{Keep: 16})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	defer func() { err = errors.Join(err, stage.Close()) }()

	fmt.Fprintf(out, "A sample agent run through the real proxy and its 'llm' condenser (max_size: %d), against a built-in fake\n"+
		"upstream with a stand-in for the summarising model. No network, no key.\n\n", maxSize)
	fmt.Fprintf(out, "%5s %8s %11s %11s %11s   %s\n", "step", "events", "forwarded", "tokens in", "forwarded", "condensed")
	report, err := replay.Play(ctx, Sample(), replay.Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: replay.Model, Stream: true, Protocol: protocol,
		Expect: replay.Expectations{MaxSize: maxSize, Summariser: replay.Summariser},
		Each:   func(s replay.Step) { line(out, s) },
	})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	if len(report.Violations) > 0 {
		return fmt.Errorf("demo: %w", errors.Join(report.Violations...))
	}
	sum(out, report)
	yours := "dewpoint & OPENAI_BASE_URL=http://127.0.0.1:8080/v1 your-agent"
	if protocol == "messages" {
		yours = "dewpoint --upstream https://api.anthropic.com/v1 & ANTHROPIC_BASE_URL=http://127.0.0.1:8080 your-agent"
	}
	fmt.Fprintln(out, "Now yours:  "+yours)
	return nil
}

func line(out io.Writer, s replay.Step) {
	before, after, _ := strings.Cut(s.Tokens, ";")
	fmt.Fprintf(out, "%5d %8d %11d %11s %11s   %s\n", s.Number+1, s.Events, s.Forwarded, before, after, why(s.Condensed))
}

// why puts the proxy's header into words.
func why(condensed string) string {
	parts := strings.Split(condensed, "; ")
	if len(parts) != 4 {
		return ""
	}
	return fmt.Sprintf("%s: %s events fewer, %s tokens fewer", parts[0], parts[1], parts[2])
}

func sum(out io.Writer, r replay.Report) {
	fmt.Fprintf(out, "\n%d steps, %d condensations. Tokens by upstream's count: %d sent by the agent, %d forwarded (%d of them from\n"+
		"the prompt cache), %d used by the summariser: %.1f%% saved, net.\n\n", r.Steps, r.Condensed, r.Sent, r.Forwarded, r.Cached,
		r.Own, r.Saved())
}
