package demo

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/config"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// The demo's model: its name, whose price is in the table, and its window, which is small enough to be exceeded.
const (
	modelName = "gpt-5.5"
	window    = 40_000
)

// Play plays the sample. It writes a line after each step, and finally the bill.
func Play(ctx context.Context, out io.Writer) error {
	fmt.Fprintf(out, "A sample agent run through the real proxy with its default settings, against a built-in stand-in for the provider.\n"+
		"No network, no key. The model costs what %s does, and has a window of %d tokens.\n\n", modelName, window)
	fmt.Fprintf(out, "%5s %8s %11s %11s %11s   %s\n", "step", "events", "forwarded", "tokens in", "forwarded", "condensed")
	lost := 0 // steps that would not have fitted
	r, err := replay.Play(ctx, settings(), Sample(), replay.Options{Model: modelName, Each: func(s replay.Step) {
		var condensed []string
		for _, c := range s.Condensations {
			condensed = append(condensed, describe(c))
		}
		if s.Tokens > window {
			lost++
		}
		fmt.Fprintf(out, "%5d %8d %11d %11d %11d   %s\n", s.Number, s.Events, s.EventsForwarded, s.Tokens, s.TokensForwarded, strings.Join(condensed, "; "))
	}})
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	with := r.With.Cost.USD + r.Own.Cost.USD
	fmt.Fprintf(out, "\nAll %d steps were answered. Without Dewpoint, %d of them would not have fitted the window.\n", r.Steps, lost)
	fmt.Fprintf(out, "They cost $%.2f instead of $%.2f: %.0f%% saved, with %d condensations and no call of a model but the agent's own.\n\n",
		with, r.Without.Cost.USD, 100*(1-with/r.Without.Cost.USD), r.Condensations)
	fmt.Fprintln(out, "Now yours:  dewpoint run -- your-agent    or    dewpoint & OPENAI_BASE_URL=http://127.0.0.1:8080/v1 your-agent")
	return nil
}

// settings returns the configuration of the demo: the default, and a model with a small window.
func settings() *config.Config {
	cfg := config.Default()
	info, _ := cfg.ModelFor(modelName)
	info.ContextWindow, info.MaxOutput = window, window/10
	cfg.Models[modelName] = info
	return cfg
}

// describe returns a condensation as a sentence.
func describe(c replay.Condensation) string {
	why := "limit on " + c.Reason
	if c.Reason == "economics" {
		why = "it pays"
	}
	return fmt.Sprintf("%s: %d events and %d tokens removed", why, c.Events, c.TokensBefore-c.TokensAfter)
}
