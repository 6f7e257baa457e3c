package summariser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// request puts all events into one user message, as in Chat Completions.
func (a *response) request(c Caller, r condense.Request, l lacks) any {
	message := userMessage(r, "input_text")
	message["type"] = "message"
	out := object{"model": r.Model, "input": []object{message}, "stream": true, "store": false} // some servers require false
	if r.System != "" {
		out["instructions"] = r.System
	}
	if !l.limit && r.MaxOutput > 0 {
		out["max_output_tokens"] = r.MaxOutput
	}
	if effort := effortOf(r.Model); effort != "" && !l.effort {
		out["reasoning"] = object{"effort": effort}
	}
	if c.Temperature != nil {
		out["temperature"] = *c.Temperature
	}
	if f := r.Function; f != nil {
		out["tools"] = []object{described(object{"type": "function", "parameters": json.RawMessage(f.JSON), "strict": false}, f)}
		out["tool_choice"] = object{"type": "function", "name": f.Name}
	}
	if f := r.Format; f != nil {
		format := object{"type": "json_schema", "schema": json.RawMessage(f.JSON), "strict": true}
		out["text"] = object{"format": described(format, f)}
	}
	return out
}

// response is an answer of the Responses API, or an event of its stream.
// https://platform.openai.com/docs/api-reference/responses/create
type response struct {
	Type       string          `json:"type"`
	Output     []outputItem    `json:"output"`
	Usage      responsesUsage  `json:"usage"`
	Error      *responsesError `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`

	// Of an event:
	Item     *outputItem `json:"item"`
	Response *response   `json:"response"`
	Code     errorCode   `json:"code"` // if it is an error
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

// responsesUsage counts tokens. The input includes the cached ones.
type responsesUsage struct {
	Input   int `json:"input_tokens"`
	Output  int `json:"output_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

type responsesError struct {
	Code errorCode `json:"code"`
	Type string    `json:"type"`
}

func (e *responsesError) refused() error { return &refused{code: cmp.Or(string(e.Code), e.Type)} }

// errorCode is the code of an error. It is empty for the numbers that some gateways send.
type errorCode string

func (c *errorCode) UnmarshalJSON(text []byte) error {
	_ = json.Unmarshal(text, (*string)(c))
	return nil
}

func (a *response) readEvent(data []byte) (last bool, err error) {
	var e response
	switch {
	case bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")):
		return false, nil
	case json.Unmarshal(data, &e) != nil:
		return false, errUnreadable
	case e.Type == "error" && e.Error != nil:
		return false, e.Error.refused()
	case e.Type == "error":
		return false, &refused{code: string(e.Code)}
	case e.Type == "response.output_item.done" && e.Item != nil:
		a.Output = append(a.Output, *e.Item)
	case e.Response == nil:
	case e.Type == "response.completed", e.Type == "response.incomplete", e.Type == "response.failed":
		items := a.Output
		*a = *e.Response
		if len(items) > 0 {
			a.Output = items
		}
		return true, a.failed()
	}
	return false, nil
}

func (a *response) readBody(body []byte) error {
	if json.Unmarshal(body, a) != nil {
		return errUnreadable
	}
	return a.failed()
}

// complete returns false: only the last event has the status and the usage.
func (a *response) complete() bool { return false }

func (a *response) failed() error {
	if a.Error == nil {
		return nil
	}
	return a.Error.refused()
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
	if reason := a.Incomplete.Reason; reason != "" {
		out.Finish = condense.FinishReason(reason)
	}
	out.Text = strings.Join(texts, "\n")
	return out
}
