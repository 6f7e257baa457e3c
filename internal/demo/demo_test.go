package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
	"github.com/dewpoint-proxy/dewpoint/internal/test/quick"
)

// TestPlay plays the whole sample: some lines report a condensation, and the sum reports savings.
func TestPlay(t *testing.T) {
	condensed := regexp.MustCompile(`(?m)^ +\d+ +\d+ +\d+ +\d+ +\d+   it pays: \d+ events and \d+ tokens removed$`)
	var out strings.Builder
	if err := Play(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	text := out.String()
	sum := regexp.MustCompile(`All 55 steps .* (\d+) of them .* (\d+)% saved, with (\d+) condensations`).FindStringSubmatch(strings.ReplaceAll(text, "\n", " "))
	if sum == nil || sum[1] == "0" || sum[2] == "0" || !strings.Contains(text, "OPENAI_BASE_URL=") {
		t.Fatalf("the sum is %v in\n%s", sum, text)
	}
	if n := len(condensed.FindAllString(text, -1)); n == 0 || fmt.Sprint(n) != sum[3] {
		t.Errorf("%d lines report a condensation:\n%s", n, text)
	}
}

// TestRequestsAreValid has the judge check each request of the demo, against the strict upstream.
func TestRequestsAreValid(t *testing.T) {
	quick.Skip(t)
	stage, err := judge.NewStage(*settings(), fakeupstream.Options{Keep: 16}, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := judge.Play(t.Context(), Sample(), judge.Options{
		URL: func(int) string { return stage.URL() }, Upstream: stage.Upstream, Model: modelName,
	})
	for _, wrong := range append(report.Violations, err, stage.Close()) {
		if wrong != nil {
			t.Error(wrong)
		}
	}
	if report.Condensations == 0 {
		t.Error("nothing was condensed")
	}
}

// TestFigures checks that the demo prints the README's table, and that the examples of headers in the README and docs/headers.md have its figures.
func TestFigures(t *testing.T) {
	readme, headers := read(t, "../../README.md"), read(t, "../../docs/headers.md")
	var out strings.Builder
	if err := Play(t.Context(), &out); err != nil {
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
	m := regexp.MustCompile(`(\d+) +(\d+) +(\d+) +(\d+)   it pays: (\d+) events and (\d+)`).FindStringSubmatch(out.String())
	for _, want := range []string{m[1] + ";" + m[2], m[3] + ";" + m[4], "economics; " + m[5] + "; " + m[6] + "; excerpts"} {
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
	if err := Play(ctx, &strings.Builder{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
