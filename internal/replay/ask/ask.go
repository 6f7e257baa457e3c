// Package ask asks a model for an agent's next action, with the whole history and with what a condenser shows of it, and compares the answers.
package ask

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Model is a model on a server that speaks Chat Completions.
type Model struct {
	Name    string
	BaseURL string // with the /v1
	Key     string // empty: none is sent
	Client  *http.Client
}

// maxAnswer bounds an answer, in tokens; maxReasoned bounds it with the reasoning before it. A longer edit is cut off, and compared as what cannot be
// read.
const (
	maxAnswer   = 1024
	maxReasoned = 8192
)

// Asker asks at sampled steps of runs. It may be used by one replay at a time.
type Asker struct {
	Model Model
	Every int // each how many steps that are condensed are asked about
	Most  int // questions for each setting: steps; 0: no limit

	mu     sync.Mutex
	whole  map[string][2]Action // by run and step
	seen   map[place]int        // condensed steps
	tally  []tally              // by setting
	used   Usage
	failed error
}

// Usage is what the questions took.
type Usage struct{ Input, Output int }

// Look is called after each step of a replay.
func (a *Asker) Look(ctx context.Context, setting int, s replay.Seen) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed != nil || !s.Condensed || !a.samples(place{setting, s.Run.Name}) {
		return a.failed
	}
	key := fmt.Sprintf("%s\x00%d", s.Run.Name, s.Step)
	whole, known := a.whole[key]
	var err error
	if !known {
		if whole, err = a.twice(ctx, s.Sent(), s.Run); err == nil {
			a.whole[key] = whole
		}
	}
	var view [2]Action
	if err == nil {
		view, err = a.twice(ctx, s.Shown(), s.Run)
	}
	if err != nil {
		a.failed = fmt.Errorf("ask %s about step %d of %s: %w", a.Model.Name, s.Step, s.Run.Name, err)
		return a.failed
	}
	a.tally[setting].add(s.Run.Name, whole, view)
	return nil
}

// place is a run under a setting.
type place struct {
	setting int
	run     string
}

// samples reports whether to ask about the next condensed step of a run, which it counts.
func (a *Asker) samples(at place) bool {
	if a.whole == nil {
		a.whole, a.seen = map[string][2]Action{}, map[place]int{}
	}
	for len(a.tally) <= at.setting {
		a.tally = append(a.tally, tally{})
	}
	n := a.seen[at]
	a.seen[at]++
	return n%max(a.Every, 1) == 0 && (a.Most == 0 || len(a.tally[at.setting].steps) < a.Most)
}

// twice asks the same question two times: how often the answers agree shows what the model's own chance does.
func (a *Asker) twice(ctx context.Context, history []session.Content, run *replay.Run) (answers [2]Action, err error) {
	body := request(a.Model.Name, history, run.Tools)
	for i := range answers {
		if answers[i], err = a.once(ctx, body); err != nil {
			return answers, err
		}
	}
	return answers, nil
}

// longest is how long an answer may take. A small model on a processor reads some tokens a second.
const longest = 30 * time.Minute

// maxBody bounds an answer's body, in bytes.
const maxBody = 16 << 20

func (a *Asker) once(ctx context.Context, body []byte) (Action, error) {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	url := strings.TrimSuffix(a.Model.BaseURL, "/") + "/chat/completions"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return Action{}, fmt.Errorf("new request: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if a.Model.Key != "" {
		req.Header.Set("Authorization", "Bearer "+a.Model.Key)
	}
	resp, err := cmp.Or(a.Model.Client, http.DefaultClient).Do(req)
	if err != nil {
		return Action{}, fmt.Errorf("send: %w", err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return Action{}, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return Action{}, fmt.Errorf("the server answered %s: %.300s", resp.Status, text)
	}
	return a.read(text)
}

// read reads an answer and adds its usage.
func (a *Asker) read(text []byte) (Action, error) {
	var answer struct {
		Choices []struct {
			Message struct {
				ToolCalls []struct {
					Function struct{ Name, Arguments string }
				} `json:"tool_calls"`
			}
		}
		Usage struct {
			Input  int `json:"prompt_tokens"`
			Output int `json:"completion_tokens"`
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Choices) == 0 {
		return Action{}, errors.New("the server's answer is not a chat completion")
	}
	a.used.Input += answer.Usage.Input
	a.used.Output += answer.Usage.Output
	var c session.Content
	for _, call := range answer.Choices[0].Message.ToolCalls {
		c.Calls = append(c.Calls, session.Call{Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return actionOf(c), nil
}
