package demo

import (
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestPlay plays the whole sample in each protocol: some lines report a condensation, and the sum reports savings.
func TestPlay(t *testing.T) {
	condensed := regexp.MustCompile(`(?m)^ +\d+ +\d+ +\d+ +\d+ +\d+   limit on events: \d+ events and \d+ tokens removed$`)
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

// TestFigures checks that the demo prints the README's table, and that the examples of headers in the README and docs/headers.md have its figures.
func TestFigures(t *testing.T) {
	readme, headers := read(t, "../../README.md"), read(t, "../../docs/headers.md")
	var out strings.Builder
	if err := Play(t.Context(), &out, "chat"); err != nil {
		t.Fatal(err)
	}
	lines := strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\n' })
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	_, table, found := strings.Cut(readme, "```\n step ")
	table, _, closed := strings.Cut(table, "\n```")
	if !found || !closed {
		t.Fatal("README.md has no table of steps")
	}
	for line := range strings.SplitSeq(" step "+table, "\n") {
		if !slices.Contains(lines, line) {
			t.Errorf("README.md: the demo does not print %q", line)
		}
	}
	m := regexp.MustCompile(`(\d+) +(\d+) +(\d+) +(\d+)   limit on events: (\d+) events and (\d+)`).FindStringSubmatch(out.String())
	for _, want := range []string{m[1] + ";" + m[2], m[3] + ";" + m[4], "events; " + m[5] + "; " + m[6] + "; summary"} {
		for name, text := range map[string]string{"README.md": readme, "docs/headers.md": headers} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %q", name, want)
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
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
		"events; 12; 3400; llm":     "limit on events: 12 events and 3400 tokens removed",
		"something of another form": "",
	} {
		if got := describe(condensed); got != want {
			t.Errorf("%q: got %q, want %q", condensed, got, want)
		}
	}
}
