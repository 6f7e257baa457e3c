package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

const (
	steps     = 25 // of a client's task, all but the last with a tool call
	partSteps = 12 // of a sub-agent's task
	delegated = 14 // the step at which the sub-agent is started

	task     = "Count the lines of notes.txt, one part at a time."
	partTask = "Count in parts, as the delegate."
	finished = "All parts are counted, twenty-five steps."
	partDone = "The parts are counted."
)

// part is the part that a request has in a run.
type part string

const (
	mainLine part = "main"
	subAgent part = "sub-agent"
	other    part = "other" // a title, a probe
)

// model is the model behind the upstream: it calls the client's tool at each step, starts a sub-agent if the client has them, and ends. It is
// safe for concurrent use.
type model struct {
	client client
	tool   *regexp.Regexp

	mu    sync.Mutex
	parts map[int]part // by the request's number
	steps map[part]int
}

func newModel(c client) (*model, error) {
	tool, err := regexp.Compile("^(?:" + c.Tool + ")$")
	return &model{client: c, tool: tool, parts: map[int]part{}, steps: map[part]int{}}, err
}

// reply answers a request.
func (m *model) reply(r *fakeupstream.Request) fakeupstream.Answer {
	m.mu.Lock()
	defer m.mu.Unlock()
	name, who := m.toolOf(r), m.partOf(r)
	m.parts[r.Index] = who
	m.steps[who]++
	n := m.steps[who]
	switch {
	case who == other:
		return fakeupstream.Answer{Content: "Counting lines"}
	case m.client.Turns > 0:
		return fakeupstream.Answer{Content: fmt.Sprintf("Part %d has %d lines. %s", n, n*7, strings.Repeat("It was counted. ", 30))}
	case who == subAgent && n >= partSteps:
		return fakeupstream.Answer{Content: partDone}
	case who == subAgent:
		return m.call(name, m.client.Input, "COMMAND", fmt.Sprintf("echo part %d; seq 1 200", n))
	case n >= steps && m.client.End != nil:
		return m.call(m.client.End.Tool, m.client.End.Input, "FINISHED", finished)
	case n >= steps:
		return fakeupstream.Answer{Content: finished}
	case n == delegated && m.client.Delegate != nil:
		return m.call(m.client.Delegate.Tool, m.client.Delegate.Input, "PROMPT", partTask)
	}
	return m.call(name, m.client.Input, "COMMAND", fmt.Sprintf("echo step %d; seq 1 200", n))
}

// call returns a call of a tool with some content for each.
func (m *model) call(tool, input, placeholder, text string) fakeupstream.Answer {
	id := fmt.Sprintf("call_%d_%d", m.steps[mainLine], m.steps[subAgent])
	return fakeupstream.Answer{ToolCalls: []fakeupstream.ToolCall{{ID: id, Name: tool, Arguments: strings.ReplaceAll(input, placeholder, text)}}}
}

// toolOf returns the name of the client's tool among those of a request, "" if it has none.
func (m *model) toolOf(r *fakeupstream.Request) string {
	for _, name := range toolNames(r.Tools) {
		if m.tool.MatchString(name) {
			return name
		}
	}
	return ""
}

func toolNames(raw json.RawMessage) []string {
	var tools []struct {
		Name     string
		Function struct{ Name string }
		Tools    json.RawMessage
		Declared json.RawMessage `json:"functionDeclarations"`
	}
	if json.Unmarshal(raw, &tools) != nil {
		return nil
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name+t.Function.Name)
		names = append(names, toolNames(t.Tools)...)
		names = append(names, toolNames(t.Declared)...)
	}
	return names
}

// partOf says which part a request has in the run.
func (m *model) partOf(r *fakeupstream.Request) part {
	tools := m.client.Tool == "" || m.toolOf(r) != ""
	isPart := false
	for _, raw := range r.Messages[:min(len(r.Messages), 6)] {
		isPart = isPart || bytes.Contains(raw, []byte(partTask)) && !bytes.Contains(raw, []byte(m.client.delegateName()))
	}
	switch {
	case !tools:
		return other
	case m.client.Delegate != nil && isPart && !bytes.Contains(r.Body, []byte(task)):
		return subAgent
	}
	return mainLine
}

func (c client) delegateName() string {
	if c.Delegate == nil {
		return "\x00"
	}
	return `"` + c.Delegate.Tool + `"`
}

// isSummary recognises Dewpoint's requests for a summary.
func isSummary(r *fakeupstream.Request) bool {
	return bytes.Contains(r.Body, []byte("You keep the record of")) || bytes.Contains(r.Body, []byte("write a record of this conversation"))
}
