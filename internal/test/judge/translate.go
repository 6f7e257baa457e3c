package judge

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/internal/replay"
)

// Translate returns a run of Chat Completions as an agent would have had it in another protocol.
func Translate(run replay.Run, to replay.Protocol) (replay.Run, error) {
	history := slices.Clone(run.Messages)
	if len(run.Final) > 0 && string(run.Final) != "null" {
		history = append(history, run.Final)
	}
	out := replay.Run{Name: run.Name, Protocol: to}
	var err error
	switch to {
	case replay.ProtocolChat:
		return run, nil
	case replay.ProtocolMessages:
		system, turns := anthropic{}.turns(history)
		if system != "" {
			out.System = marshal([]block{{Type: "text", Text: system}})
		}
		for _, t := range turns {
			out.Messages = append(out.Messages, marshal(t))
		}
		out.Tools, err = tools(run.Tools, func(t tool) any {
			return map[string]any{"name": t.Name, "description": t.Description, "input_schema": t.Parameters}
		})
	case replay.ProtocolResponses:
		instructions, messages := items{}.list(history)
		if instructions != "" {
			out.System = marshal(instructions)
		}
		for _, m := range messages {
			list := marshal(m)
			out.Messages = append(out.Messages, list[1:len(list)-1]) // without the brackets
		}
		out.Tools, err = tools(run.Tools, func(t tool) any {
			return map[string]any{"type": "function", "name": t.Name, "description": t.Description, "parameters": t.Parameters}
		})
	default:
		return replay.Run{}, fmt.Errorf("translate run %s: no translation to %q", run.Name, to)
	}
	return out, err
}

// tool is a tool of Chat Completions.
type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// tools translates tools one by one.
func tools(raw json.RawMessage, one func(tool) any) (json.RawMessage, error) {
	var all []struct{ Function tool }
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("translate tools: %w", err)
	}
	var out []any
	for _, t := range all {
		if len(t.Function.Parameters) == 0 {
			t.Function.Parameters = json.RawMessage(`{"type":"object"}`)
		}
		out = append(out, one(t.Function))
	}
	if out == nil {
		return nil, nil
	}
	return marshal(out), nil
}
