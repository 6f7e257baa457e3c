package summariser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// responses makes a call in the Responses API. https://platform.openai.com/docs/api-reference/responses/create
func (c Caller) responses(ctx context.Context, r condense.Request, l lacks) (condense.Reply, error) {
	body, err := bodyOf(r, func() any { return c.responsesRequest(r, l) })
	if err != nil {
		return condense.Reply{}, err //nolint:wrapcheck // callError words it
	}
	var got response
	err = c.watched(ctx, r, true, func(ctx context.Context, w *wire) error { return w.post(ctx, body, got.whole, got.take) })
	if err != nil {
		return condense.Reply{}, err
	}
	return got.reply(r), nil
}

type responsesRequest struct {
	Model           string             `json:"model"`
	Instructions    string             `json:"instructions,omitempty"`
	Input           []userItem         `json:"input"`
	MaxOutputTokens int                `json:"max_output_tokens,omitempty"`
	Stream          bool               `json:"stream"`
	Store           bool               `json:"store"` // some servers take nothing but false
	Tools           []responsesTool    `json:"tools,omitempty"`
	ToolChoice      *toolChoice        `json:"tool_choice,omitempty"`
	Text            *responsesText     `json:"text,omitempty"`
	Reasoning       *responsesThinking `json:"reasoning,omitempty"`
	Temperature     *float32           `json:"temperature,omitempty"`
}

type userItem struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

type responsesText struct {
	Format textFormat `json:"format"`
}

type textFormat struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema"`
	Strict      bool            `json:"strict"`
}

type responsesThinking struct {
	Effort string `json:"effort"`
}

// responsesRequest has all events in one user message, as in Chat Completions.
func (c Caller) responsesRequest(r condense.Request, l lacks) responsesRequest {
	out := responsesRequest{Model: r.Model, Instructions: r.System, Stream: true, Temperature: c.Temperature}
	turn := userItem{Type: "message", Role: "user"}
	for _, text := range append(slices.Clip(r.Events), r.User) {
		if strings.TrimSpace(text) != "" {
			turn.Content = append(turn.Content, block{Type: "input_text", Text: text})
		}
	}
	out.Input = []userItem{turn}
	if !l.limit {
		out.MaxOutputTokens = r.MaxOutput
	}
	if effort := effortOf(r.Model); effort != "" && !l.effort {
		out.Reasoning = &responsesThinking{effort}
	}
	if f := r.Function; f != nil {
		out.Tools = []responsesTool{{"function", f.Name, f.Description, f.JSON, false}}
		out.ToolChoice = &toolChoice{"function", f.Name}
	}
	if f := r.Format; f != nil {
		out.Text = &responsesText{textFormat{"json_schema", f.Name, f.Description, f.JSON, true}}
	}
	return out
}

// response is an answer, or an event of a stream.
type response struct {
	Type       string          `json:"type"`
	Status     string          `json:"status"`
	Output     []outputItem    `json:"output"`
	Incomplete incomplete      `json:"incomplete_details"`
	Usage      responsesUsage  `json:"usage"`
	Error      *responsesError `json:"error"`

	Item     *outputItem `json:"item"`     // of an event
	Response *response   `json:"response"` // likewise
	Code     string      `json:"code"`     // of an event that is an error
}

type incomplete struct {
	Reason string `json:"reason"`
}

type outputItem struct {
	Type      string       `json:"type"`
	Content   []outputPart `json:"content"`
	Name      string       `json:"name"`
	Arguments string       `json:"arguments"`
}

type outputPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// responsesUsage counts tokens. Cached ones are part of the input.
type responsesUsage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

type responsesError struct {
	Code string `json:"code"`
	Type string `json:"type"`
}

// take adds what an event tells, and reports whether it was the last one.
func (a *response) take(data []byte) (ended bool, err error) {
	var e response
	switch {
	case bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")):
		return false, nil
	case json.Unmarshal(data, &e) != nil:
		return false, errUnreadable
	case e.Type == "error":
		if e.Error != nil {
			e.Code = cmp.Or(e.Error.Code, e.Error.Type)
		}
		return false, &refused{kind: e.Code}
	case e.Type == "response.output_item.done" && e.Item != nil:
		a.Output = append(a.Output, *e.Item)
	case e.Response == nil:
	case e.Type == "response.completed", e.Type == "response.incomplete", e.Type == "response.failed":
		items := a.Output
		if *a = *e.Response; len(items) > 0 {
			a.Output = items
		}
		return true, a.failed()
	}
	return false, nil
}

// whole takes an answer that was not streamed.
func (a *response) whole(body []byte) error {
	if json.Unmarshal(body, a) != nil {
		return errUnreadable
	}
	return a.failed()
}

func (a *response) failed() error {
	if a.Error == nil {
		return nil
	}
	return &refused{kind: cmp.Or(a.Error.Code, a.Error.Type)}
}

func (a *response) reply(r condense.Request) condense.Reply {
	u := a.Usage
	out := condense.Reply{Finish: "stop", Usage: session.Usage{Input: u.Input, Cached: u.Details.Cached, Output: u.Output}}
	var texts []string
	for _, item := range a.Output {
		for _, p := range item.Content {
			if item.Type == "message" && p.Type == "output_text" {
				texts = append(texts, p.Text)
			}
			out.Refusal += p.Refusal
		}
		if item.Type == "function_call" && r.Function != nil && item.Name == r.Function.Name && out.Arguments == "" {
			out.Arguments, out.Finish = item.Arguments, "tool_calls"
		} else if strings.HasSuffix(item.Type, "_call") {
			out.Finish = "tool_calls"
		}
	}
	switch reason := a.Incomplete.Reason; reason {
	case "":
	case "max_output_tokens":
		out.Finish = "length"
	default:
		out.Finish = reason
	}
	out.Text = strings.Join(texts, "\n")
	return out
}
