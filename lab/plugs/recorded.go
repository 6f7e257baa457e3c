package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
)

// recorded is a recorded run.
type recorded struct {
	Messages []json.RawMessage `json:"messages"`
	Tools    json.RawMessage   `json:"tools"`
}

func readRun(file string) (r recorded, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// steps returns the indices of the messages that the model wrote.
func (r *recorded) steps() (at []int) {
	for i, m := range r.Messages {
		var said struct{ Role string }
		if json.Unmarshal(m, &said) == nil && said.Role == "assistant" && i > 0 {
			at = append(at, i)
		}
	}
	return at
}

// body returns the request for the model's message at index i.
func (r *recorded) body(i int) []byte {
	body := map[string]any{"model": modelName, "messages": r.Messages[:i]}
	if len(r.Tools) > 0 && string(r.Tools) != "null" {
		body["tools"] = r.Tools
	}
	text, _ := json.Marshal(body)
	return text
}

const modelName = "gpt-4.1"

// upstream answers each request with the message that was recorded, and keeps the history that reached it.
type upstream struct {
	*httptest.Server
	mu    sync.Mutex
	said  json.RawMessage
	saw   any
	blind bool // it does not read what it gets, for measurements of time
}

var plainAnswer = json.RawMessage(`{"role":"assistant","content":"ok"}`)

func startUpstream() *upstream {
	u := &upstream{said: plainAnswer}
	u.Server = httptest.NewServer(u)
	return u
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	var body struct{ Messages any }
	if !u.blind && r.Method == http.MethodPost && json.Unmarshal(text, &body) == nil && body.Messages != nil {
		u.saw = body.Messages
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,"message":%s,"finish_reason":"stop"}]}`, modelName, u.said)
}

// answer sets the message that upstream answers with.
func (u *upstream) answer(said json.RawMessage) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.said, u.saw = said, nil
}

// seen returns the history that reached upstream since answer.
func (u *upstream) seen() any {
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
