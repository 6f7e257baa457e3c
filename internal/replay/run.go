// Package replay plays recorded agent runs through the real proxy, offline, and reports what they would have used and cost without and with
// it.
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
	Messages []json.RawMessage `json:"messages"` // in ProtocolResponses the items of one answer are one message, with commas between them
	Final    json.RawMessage   `json:"final_response"`
	Tools    json.RawMessage   `json:"tools"`

	// What other formats than ours have.
	Protocol Protocol         `json:"-"`
	System   json.RawMessage  `json:"-"` // the prompt outside of the messages: "system" or "instructions"
	Begin    int              `json:"-"` // answers among the messages before this one belong to an earlier run
	Recorded map[int]Recorded `json:"-"` // what was recorded of an answer, by its place in Messages
}

// Recorded is what is recorded of an answer.
type Recorded struct {
	Model  string // empty: not recorded
	Prompt int    // size of the request in tokens; 0: not recorded
}

// format says where the format of a run's file is described.
const format = "docs/replay.md describes the format"

// Load reads a run in our own format from a file. A run without a final response ends with its last assistant message.
func Load(path string) (Run, error) {
	var run Run
	data, err := os.ReadFile(path) //nolint:gosec // the user names the file
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

// Paths returns the files with runs in our own format that args name, sorted: files, and *.json in folders.
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

// Call is one model call of a run: a history and the answer to it.
type Call struct {
	Messages []json.RawMessage
	Answer   json.RawMessage
	Recorded Recorded
}

// Steps returns the number of model calls in the run.
func (r *Run) Steps() int { return len(r.Calls()) }

// Calls returns the model calls of a run, in order. An answer at the very beginning has no prompt, and does not count.
func (r *Run) Calls() []Call {
	var out []Call
	wire := wires[r.Protocol]
	for k, m := range r.Messages {
		if k > 0 && k >= r.Begin && wire.isAnswer(m) {
			out = append(out, Call{Messages: r.Messages[:k], Answer: m, Recorded: r.Recorded[k]})
		}
	}
	if n := len(r.Messages); len(r.Final) > 0 && string(r.Final) != "null" {
		out = append(out, Call{Messages: r.Messages, Answer: r.Final, Recorded: r.Recorded[n]})
	}
	return out
}
