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

func begins(t *testing.T, text string) string {
	t.Helper()
	cfg := load(t, ".yaml", text)
	all, err := Begins(cfg, cfg.Condenser, []string{"gpt-5.5", "my-own"})
	if err != nil {
		t.Fatal(err)
	}
	return all[0].String() + "; " + all[1].String()
}
