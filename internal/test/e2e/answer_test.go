package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"testing"

	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// answer is a response being read.
type answer struct {
	*http.Response
	t      testing.TB
	leave  context.CancelFunc
	client *http.Transport
}

// body returns the body of a chat completion request.
func body(messages []json.RawMessage) []byte {
	return encode(map[string]any{"model": judge.Model, "messages": messages})
}

// post prepares a chat completion on a new connection, and returns a function that abandons it.
func post(t testing.TB, p *process, body []byte) (*http.Request, *answer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url()+"/chat/completions", bytes.NewReader(body))
	ok(t, err)
	req.Header.Set("Content-Type", "application/json")
	a := &answer{t: t, leave: cancel, client: &http.Transport{}}
	t.Cleanup(func() { cancel(); a.client.CloseIdleConnections() })
	return req, a
}

// send sends a chat completion and returns once the header of the answer has arrived.
func send(t testing.TB, p *process, body []byte, headers ...http.Header) *answer {
	t.Helper()
	return sendTo(t, p, "/chat/completions", body, headers...)
}

// sendTo is send for another path below /v1.
func sendTo(t testing.TB, p *process, path string, body []byte, headers ...http.Header) *answer {
	t.Helper()
	req, a := post(t, p, body)
	req.URL.Path = "/v1" + path
	req.Header.Set("Anthropic-Version", "2023-06-01") // ignored in other protocols
	for _, h := range headers {
		maps.Copy(req.Header, h)
	}
	resp, err := a.client.RoundTrip(req)
	ok(t, err)
	a.Response = resp
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("answer: %s", resp.Status)
	}
	return a
}

// sendAside sends a chat completion in the background, and closes the channel once it has ended, in success or failure.
func sendAside(t testing.TB, p *process, body []byte) <-chan struct{} {
	t.Helper()
	req, a := post(t, p, body)
	left := make(chan struct{})
	go func() {
		defer close(left)
		resp, err := a.client.RoundTrip(req)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}()
	return left
}

// read reads n bytes.
func (a *answer) read(n int) {
	a.t.Helper()
	_, err := io.ReadFull(a.Body, make([]byte, n))
	ok(a.t, err)
}

// finish reads the answer to its end and returns how it ended.
func (a *answer) finish() error {
	_, err := a.rest()
	return err
}

// rest reads the answer to its end.
func (a *answer) rest() (string, error) {
	text, err := io.ReadAll(a.Body)
	_ = a.Body.Close()
	return string(text), err
}
