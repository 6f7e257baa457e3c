package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// forwardedBy plays a run straight to an upstream, and gives what reached it.
func forwardedBy(t *testing.T, run replay.Run) (sum string, bodies int) {
	t.Helper()
	up := fakeupstream.New(fakeupstream.Options{Keep: kept})
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	c := forwardedCell{run: run}
	if err := c.play(t.Context(), up.URL(), up); err != nil {
		t.Fatal(err)
	}
	return c.sum, c.bodies
}

func TestForwardedDigest(t *testing.T) {
	capture := t.TempDir()
	for name, text := range map[string]string{
		"headers.json": `{"requests": [{"method": "GET", "path": "/v1/models"}, {"method": "POST", "path": "/v1/chat/completions", "file": "1.json",
			"headers": {"Content-Type": "application/json", "Authorization": "Bearer hidden"}}]}`,
		"1.json": `{"model": "gpt-4o", "messages": [{"role": "user", "content": "Hello"}]}`,
	} {
		if err := os.WriteFile(filepath.Join(capture, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	samples := map[int]replay.Run{1: {Name: capture}}
	for steps, bodies := range map[int]int{10: 11, 3: 4} {
		run, err := replay.Load(written(t, steps))
		if err != nil {
			t.Fatal(err)
		}
		samples[bodies] = run
	}
	seen := map[string]bool{}
	for want, run := range samples {
		sum, bodies := forwardedBy(t, run)
		again, _ := forwardedBy(t, run)
		if sum != again || bodies != want || seen[sum] {
			t.Errorf("%s: %d bodies, want %d; %s, then %s", run.Name, bodies, want, sum, again)
		}
		seen[sum] = true
	}
}

// TestFixedSummary: what the stand-in answers depends on the form asked for, never on the prompt.
func TestFixedSummary(t *testing.T) {
	ask := func(prompt string) string {
		return summariseFixed(&fakeupstream.Request{Messages: []json.RawMessage{json.RawMessage(prompt)}}).Content
	}
	a, b := ask(`{"role": "user", "content": "one"}`), ask(`{"role": "user", "content": "two"}`)
	if a != b || !strings.Contains(a, "PENDING: the next steps.") {
		t.Errorf("%q, %q", a, b)
	}
}
