package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// forwardedBy plays a sample straight to an upstream and gives what reached it.
func forwardedBy(t *testing.T, s sample) (sum string, bodies int) {
	t.Helper()
	up := fakeupstream.New(fakeupstream.Options{Keep: kept})
	if err := up.Start(); err != nil {
		t.Fatal(err)
	}
	defer up.Close()
	digest := forwardedDigest{up: up, hash: sha256.New()}
	if err := s.play(context.Background(), up.URL(), up, digest.look); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", digest.hash.Sum(nil)), digest.bodies
}

// captureOf writes a capture of one request with that text.
func captureOf(t *testing.T, text string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "client")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"headers.json": `{"requests": [{"method": "GET", "path": "/v1/models"}, {"method": "POST", "path": "/v1/chat/completions", "file": "1.json",
			"headers": {"Content-Type": "application/json"}, "answer": {"status": 200, "tool_calls": [{"name": "f", "arguments": "{}"}]}}]}`,
		"1.json": fmt.Sprintf(`{"model": "m", "messages": [{"role": "user", "content": %q}]}`, text),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Dir(folder)
}

func TestForwardedDigest(t *testing.T) {
	one, err := readSamples([]string{written(t, 10), captureOf(t, "a"), captureOf(t, "b")})
	if err != nil || len(one) != 3 {
		t.Fatalf("%d samples, %v", len(one), err)
	}
	seen := map[string]bool{}
	for i, want := range []int{11, 1, 1} {
		sum, bodies := forwardedBy(t, one[i])
		again, _ := forwardedBy(t, one[i])
		if sum != again || bodies != want || seen[sum] {
			t.Errorf("%s: %d bodies, want %d; %s, then %s", one[i].name, bodies, want, sum, again)
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
