package app

import (
	"strings"
	"testing"
)

func TestBegins(t *testing.T) {
	for text, want := range map[string]string{
		"condenser: {type: noop}":                         "gpt-5.5 is never condensed; my-own is never condensed",
		"condenser: {type: excerpts, trigger: limits}":    "gpt-5.5 is condensed above 787,500 tokens or 240 events; my-own is condensed above 96,000 tokens or 240 events",
		"condenser: {type: amortized, max_tokens: 15000}": "gpt-5.5 is condensed above 15,000 tokens or 240 events; my-own is condensed above 15,000 tokens or 240 events",
	} {
		if got := begins(t, text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	for _, text := range []string{"", "condenser: {type: llm, max_size: 80}", "condenser: {type: pipeline, condensers: [{type: tool_output_trim}, {type: llm}]}"} {
		for said := range strings.SplitSeq(begins(t, text), "; my") {
			if !strings.Contains(said, "is condensed when that pays, usually from ") || !strings.Contains(said, " tokens; at the latest above ") {
				t.Errorf("%s: %s", text, said)
			}
		}
	}
}

// TestLimitsThatLeaveNoMemory: an agent with many tools nearly fills a low limit by its system prompt and tools alone.
func TestLimitsThatLeaveNoMemory(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"condenser: {max_tokens: 45000}": "",
		"condenser: {max_tokens: 24500}": "",
		"condenser: {max_tokens: 22000}": "gpt-5.5: a limit of 22,000 tokens leaves 1,000 tokens of the history to an agent",
		"condenser: {max_tokens: 15000}": "gpt-5.5: a limit of 15,000 tokens leaves 0 tokens of the history to an agent",
		"condenser: {type: noop}":        "",
		"condenser: {max_tokens: 75}":    "",
	} {
		cfg := load(t, ".yaml", text)
		all, err := Begins(cfg, cfg.Condenser, []string{"gpt-5.5"})
		if err != nil {
			t.Fatal(err)
		}
		if got := all[0].Cramped(); (got == "") != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func begins(t *testing.T, text string) string {
	t.Helper()
	cfg := load(t, ".yaml", text)
	all, err := Begins(cfg, cfg.Condenser, []string{"gpt-5.5", "my-own"})
	if err != nil {
		t.Fatal(err)
	}
	return all[0].String() + "; " + all[1].String()
}
