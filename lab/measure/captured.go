package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/internal/fakeupstream"
)

// captureFolders gives the captures in a folder: itself, or those below it.
func captureFolders(path string) ([]string, error) {
	const list = "headers.json"
	if _, err := os.Stat(filepath.Join(path, list)); err == nil {
		return []string{path}, nil
	}
	found, err := filepath.Glob(filepath.Join(path, "*", list))
	if err != nil {
		return nil, fmt.Errorf("find captures: %w", err)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, nil
}

// capture is a folder with the requests that a client made: headers.json, and the bodies that it names.
type capture string

// captured is one request and its answer.
type captured struct {
	Method, Path, File string
	Headers            map[string]string
	Answer             struct {
		Status    int
		Text      string
		ToolCalls []fakeupstream.ToolCall `json:"tool_calls"`
	}
}

func (folder capture) play(ctx context.Context, url string, up *fakeupstream.Server, each func()) error {
	text, err := os.ReadFile(filepath.Join(string(folder), "headers.json"))
	if err != nil {
		return fmt.Errorf("read capture: %w", err)
	}
	var all struct{ Requests []captured }
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("read capture: %w", err)
	}
	for i, c := range all.Requests {
		if c.Method != http.MethodPost {
			continue
		}
		body, err := os.ReadFile(filepath.Join(string(folder), c.File))
		if err != nil {
			return fmt.Errorf("read capture: %w", err)
		}
		if strings.HasSuffix(c.Path, "/chat/completions") {
			up.Script(c.answer(i))
		}
		if err := c.send(ctx, url, body); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		each()
	}
	return nil
}

// send sends the request. Any answer will do: what is compared is what went upstream.
func (c *captured) send(ctx context.Context, url string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, c.Method, url+c.Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range c.Headers {
		switch strings.ToLower(name) {
		case "host", "content-length", "connection", "accept-encoding":
		case "authorization":
			req.Header.Set(name, "Bearer one-key")
		default:
			req.Header.Set(name, value)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// answer is what upstream gives to the i-th request.
func (c *captured) answer(i int) fakeupstream.Answer {
	if c.Answer.Status >= 400 {
		return fakeupstream.Answer{Error: &fakeupstream.APIError{Status: c.Answer.Status, Message: "scripted"}}
	}
	a := fakeupstream.Answer{Content: c.Answer.Text, ToolCalls: c.Answer.ToolCalls}
	for k := range a.ToolCalls {
		if a.ToolCalls[k].ID == "" {
			a.ToolCalls[k].ID = fmt.Sprintf("call_%d_%d", i, k)
		}
	}
	return a
}
