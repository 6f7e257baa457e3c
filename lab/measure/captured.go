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
)

// captured is one request of a client's.
type captured struct {
	Method, Path, File string
	Headers            map[string]string
}

// playCapture sends the requests of a folder, which headers.json lists, one after the other. Any answer will do: what is compared is what
// went upstream.
func playCapture(ctx context.Context, folder, url string, each func()) error {
	text, err := os.ReadFile(filepath.Join(folder, "headers.json"))
	if err != nil {
		return fmt.Errorf("read capture: %w", err)
	}
	var all struct{ Requests []captured }
	if err := json.Unmarshal(text, &all); err != nil {
		return fmt.Errorf("read capture: %w", err)
	}
	for i := range all.Requests {
		if err := all.Requests[i].send(ctx, folder, url); err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		each()
	}
	return nil
}

func (c *captured) send(ctx context.Context, folder, url string) error {
	if c.Method != http.MethodPost {
		return nil
	}
	body, err := os.ReadFile(filepath.Join(folder, c.File))
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, c.Method, url+c.Path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range c.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Del("Accept-Encoding")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
