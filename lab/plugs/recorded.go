package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/internal/test/judge"
)

// readRun reads a recorded run as an agent would have had it in a protocol.
func readRun(file string, p protocol) (replay.Run, error) {
	run, err := replay.Load(file)
	if err != nil {
		return run, err
	}
	return judge.Translate(run, p.of)
}

const modelName = "gpt-4.1"

// upstream answers each request with the message that was recorded, and keeps the body that reached it.
type upstream struct {
	*httptest.Server
	mu     sync.Mutex
	answer string
	saw    map[string]any
	blind  bool // it does not read what it gets, for measurements of time
}

func startUpstream() *upstream {
	u := &upstream{answer: "{}"}
	u.Server = httptest.NewServer(u)
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	var body map[string]any
	if !u.blind && r.Method == http.MethodPost && json.Unmarshal(text, &body) == nil && body["model"] != nil {
		u.saw = body
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, u.answer)
}

// expect sets what upstream answers, and forgets what reached it.
func (u *upstream) expect(answer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer, u.saw = answer, nil
}

// seen returns the body that reached upstream since expect.
func (u *upstream) seen() map[string]any {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.saw
}

// post sends a body as an agent would.
func post(url string, body []byte, header http.Header) (string, error) {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body)) //nolint:noctx // a run ends with its process
	if err != nil {
		return "", err
	}
	req.Header = header.Clone()
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+clientKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %.300s", resp.StatusCode, text)
	}
	return string(text), err
}

const clientKey = "sk-client"
