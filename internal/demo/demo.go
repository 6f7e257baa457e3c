package demo

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// maxSize is the number of events above which the demo condenses. It is low enough that the demo condenses several times.
const maxSize = 40

// Play plays the sample. It writes a line after each step, and finally the savings.
func Play(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "A sample agent run through the real proxy and its 'llm' condenser (max_size: %d), against built-in stand-ins for\n"+
		"the provider and for the summarising model. No network, no key.\n\n", maxSize)
	fmt.Fprintf(out, "%5s %8s %11s %11s %11s   %s\n", "step", "events", "forwarded", "tokens in", "forwarded", "condensed")
	r, err := replay.Play(ctx, settings(), Sample(), replay.Options{Each: func(s replay.Step) {
		var condensed []string
		for _, c := range s.Condensations {
			condensed = append(condensed, describe(c))
		}
		fmt.Fprintf(out, "%5d %8d %11d %11d %11d   %s\n", s.Number, s.Events, s.EventsForwarded, s.Tokens, s.TokensForwarded, strings.Join(condensed, "; "))
	}})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	own := r.Own.Input + r.Own.Output
	fmt.Fprintf(out, "\n%d steps, %d condensations. Tokens: %d sent by the agent, %d forwarded (%d of them from the prompt cache),\n"+
		"%d used by the summariser: %.1f%% saved, net.\n\n", r.Steps, r.Condensations, r.Without.Input, r.With.Input, r.With.Cached, own,
		100*float64(r.Without.Input-r.With.Input-own)/float64(r.Without.Input))
	fmt.Fprintln(out, "Now yours:  dewpoint & OPENAI_BASE_URL=http://127.0.0.1:8080/v1 your-agent")
	return nil
}

// settings returns the configuration of the demo.
func settings() *config.Config {
	cfg := config.Default()
	cfg.LLMs["cheap"] = config.LLM{Model: "gpt-4o-mini"}
	cfg.Condenser.LLMConfig = "cheap"
	cfg.Condenser.MaxSize = maxSize
	cfg.Condenser.MinTokens = 0
	return cfg
}

// describe returns a condensation as a sentence.
func describe(c replay.Condensation) string {
	return fmt.Sprintf("limit on %s: %d events and %d tokens removed", c.Reason, c.Events, c.TokensBefore-c.TokensAfter)
}
