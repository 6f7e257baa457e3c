// Package replay plays recorded agent runs through a proxy, step by step as their agents would, against a strict fake
// upstream, and checks the forwarded requests from outside.
package replay

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Run is a recorded agent run: the history up to the last model call, and its answer.
type Run struct {
	Name     string            `json:"id"`
	Messages []json.RawMessage `json:"messages"`
	Final    json.RawMessage   `json:"final_response"`
	Tools    json.RawMessage   `json:"tools"`
}

// format says where the format of a run's file is described.
const format = "docs/troubleshooting.md describes the format"

// Load reads a run from a file. A run without a final response ends with its last assistant message.
func Load(path string) (Run, error) {
	var run Run
	data, err := os.ReadFile(path)
	if err != nil {
		return run, fmt.Errorf("load run: %w", err)
	}
	if err := json.Unmarshal(data, &run); err != nil {
		return run, fmt.Errorf("load run %s: %w; %s", filepath.Base(path), err, format)
	}
	if run.Steps() == 0 {
		return run, fmt.Errorf(`load run %s: no answer in "messages" after the first, and no "final_response"; %s`, filepath.Base(path), format)
	}
	run.Name = cmp.Or(run.Name, filepath.Base(path))
	return run, nil
}

// Paths returns the run files named by args, sorted: files, and *.json in folders.
func Paths(args []string) ([]string, error) {
	var out []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, fmt.Errorf("find runs: %w", err)
		}
		if !info.IsDir() {
			out = append(out, arg)
			continue
		}
		found, err := filepath.Glob(filepath.Join(arg, "*.json"))
		if err != nil {
			return nil, fmt.Errorf("find runs: %w", err)
		}
		out = append(out, found...)
	}
	slices.Sort(out)
	return out, nil
}

// call is one model call of a run: a history and its answer.
type call struct {
	messages []json.RawMessage
	answer   json.RawMessage
}

// Steps returns the number of model calls in the run.
func (r *Run) Steps() int { return len(r.calls()) }

// calls returns the model calls of a run, in order. An answer at the very beginning has no prompt, and does not count.
func (r *Run) calls() []call {
	var out []call
	for k, m := range r.Messages {
		if k > 0 && readMessage(m).Role == "assistant" {
			out = append(out, call{messages: r.Messages[:k], answer: m})
		}
	}
	if len(r.Final) > 0 && string(r.Final) != "null" {
		out = append(out, call{messages: r.Messages, answer: r.Final})
	}
	return out
}

// Beginning returns the run up to the last answer within its first n messages.
func (r Run) Beginning(n int) Run {
	if len(r.Messages) <= n {
		return r
	}
	for n > 2 && readMessage(r.Messages[n]).Role != "assistant" {
		n--
	}
	r.Messages, r.Final = r.Messages[:n], r.Messages[n]
	return r
}
