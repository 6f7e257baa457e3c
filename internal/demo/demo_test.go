package demo

import (
	"context"
	"errors"
	"regexp"
	"strings"
	"testing"
)

// TestPlay plays the whole sample in each protocol: some lines report a condensation, and the sum reports savings.
func TestPlay(t *testing.T) {
	condensed := regexp.MustCompile(`(?m)^ +\d+ +\d+ +\d+ +\d+ +\d+   [a-z]+: \d+ events fewer, \d+ tokens fewer$`)
	for protocol, yours := range map[string]string{"chat": "OPENAI_BASE_URL=", "messages": "ANTHROPIC_BASE_URL=", "responses": "OPENAI_BASE_URL="} {
		if testing.Short() && protocol != "chat" {
			continue
		}
		var out strings.Builder
		if err := Play(t.Context(), &out, protocol); err != nil {
			t.Fatalf("%s: %v\n%s", protocol, err, &out)
		}
		text := out.String()
		sum := regexp.MustCompile(`(\d+) steps, (\d+) condensations\. .* ([0-9.]+)% saved, net\.`).FindStringSubmatch(strings.ReplaceAll(text, "\n", " "))
		if sum == nil || sum[2] == "0" || sum[3] == "0.0" || !strings.Contains(text, yours) {
			t.Fatalf("%s: the sum is %v in\n%s", protocol, sum, text)
		}
		if n := len(condensed.FindAllString(text, -1)); n == 0 {
			t.Errorf("%s: no line reports a condensation:\n%s", protocol, text)
		}
	}
}

// TestPlayEnds: Play stops when its context is cancelled.
func TestPlayEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Play(ctx, &strings.Builder{}, "chat"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWhy(t *testing.T) {
	for condensed, want := range map[string]string{
		"":                          "",
		"events; 12; 3400; llm":     "events: 12 events fewer, 3400 tokens fewer",
		"something of another form": "",
	} {
		if got := describe(condensed); got != want {
			t.Errorf("%q: got %q, want %q", condensed, got, want)
		}
	}
}
