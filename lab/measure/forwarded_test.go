package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// forwardedBy plays a run straight to an upstream, and gives what reached it.
func forwardedBy(t *testing.T, path, protocol string) (sum string, bodies int) {
	t.Helper()
	run, err := replay.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	up := fakeupstream.New(fakeupstream.Options{Keep: kept})
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	c := forwardedCell{run: run, protocol: protocol}
	if err := c.play(t.Context(), up.URL(), up); err != nil {
		t.Fatal(err)
	}
	return c.sum, c.bodies
}

func TestForwardedDigest(t *testing.T) {
	paths := []string{written(t, 10), written(t, 3)}
	seen := map[string]bool{}
	for _, protocol := range []string{"chat", "messages", "responses"} {
		for i, want := range []int{11, 4} {
			sum, bodies := forwardedBy(t, paths[i], protocol)
			again, _ := forwardedBy(t, paths[i], protocol)
			if sum != again || bodies != want || seen[sum] {
				t.Errorf("%s, run %d: %d bodies, want %d; %s, then %s", protocol, i, bodies, want, sum, again)
			}
			seen[sum] = true
		}
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
