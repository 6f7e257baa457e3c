package summariser

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

var (
	// errNotStreamed means that an answer came whole although a stream was requested. It can be used.
	errNotStreamed = errors.New("the answer was not streamed")
	// errGarbled means that a stream is not one of Chat Completions.
	errGarbled = errors.New("the stream is not a chat completion")
)

// completion is an answer of Chat Completions.
type completion struct {
	choice   openai.ChatCompletionChoice
	usage    completionUsage
	finished bool // the stream reported its end, so it was not cut off
}

// request puts all events into one user message, since some servers refuse consecutive ones.
func (p *completion) request(c Caller, r condense.Request, l lacks) any {
	out := openai.ChatCompletionRequest{
		Model: r.Model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: r.System},
			{Role: openai.ChatMessageRoleUser, Content: strings.Join(append(slices.Clip(r.Events), r.User), "\n")},
		},
	}
	constrain(&out, r)
	if agents.RefusesMaxTokens(r.Model) {
		out.MaxCompletionTokens = r.MaxOutput
	} else {
		out.MaxTokens = r.MaxOutput //nolint:staticcheck // compatible servers support only this one
	}
	if c.Temperature != nil {
		// go-openai omits a zero, and the server would use its own default.
		out.Temperature = max(*c.Temperature, math.SmallestNonzeroFloat32)
	}
	if !l.effort {
		out.ReasoningEffort = effortOf(r.Model)
	}
	out.Stream = !l.stream
	if out.Stream && !l.options {
		out.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return out
}

// constrain adds the function that the model must call, or the format that its text must have.
func constrain(out *openai.ChatCompletionRequest, r condense.Request) {
	if f := r.Function; f != nil {
		out.Tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: f.Name, Description: f.Description, Parameters: json.RawMessage(f.JSON),
		}}}
		out.ToolChoice = openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: f.Name}}
	}
	if f := r.Format; f != nil {
		out.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{
				Name: f.Name, Description: f.Description, Schema: json.RawMessage(f.JSON), Strict: true,
			},
		}
	}
}

func (p *completion) readEvent(data []byte) (last bool, err error) {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		if !p.finished {
			return false, errNoEnd
		}
		return true, nil
	}
	var chunk struct {
		Choices []openai.ChatCompletionStreamChoice
		Usage   *completionUsage
		Error   json.RawMessage
	}
	if json.Unmarshal(data, &chunk) != nil {
		return false, errGarbled
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		var e struct{ Code string }
		_ = json.Unmarshal(chunk.Error, &e) // an error of another form has no code
		return false, &refused{code: e.Code}
	}
	if chunk.Usage != nil {
		p.usage = *chunk.Usage
		p.finished = p.finished || len(chunk.Choices) == 0 // some servers report usage in every chunk
	}
	for _, c := range chunk.Choices {
		if c.Index == 0 {
			p.add(c)
		}
	}
	return false, nil
}

func (p *completion) readBody(body []byte) error {
	var all struct {
		Choices []openai.ChatCompletionChoice
		Usage   completionUsage
	}
	if json.Unmarshal(body, &all) != nil {
		return errUnreadable
	}
	p.usage = all.Usage
	if len(all.Choices) > 0 {
		p.choice = all.Choices[0]
	}
	return errNotStreamed
}

func (p *completion) complete() bool { return p.finished }

// add adds a piece of the first choice.
func (p *completion) add(c openai.ChatCompletionStreamChoice) {
	m := &p.choice.Message
	m.Content += c.Delta.Content
	m.Refusal += c.Delta.Refusal
	if f := c.Delta.FunctionCall; f != nil {
		if m.FunctionCall == nil {
			m.FunctionCall = &openai.FunctionCall{}
		}
		join(m.FunctionCall, *f)
	}
	for _, call := range c.Delta.ToolCalls {
		p.addCall(call)
	}
	if c.FinishReason != "" {
		p.choice.FinishReason = c.FinishReason
		p.finished = true
	}
}

// addCall adds a piece of a tool call. A piece without an index begins a new call if it has an id, and continues the last one if
// not.
func (p *completion) addCall(piece openai.ToolCall) {
	calls := p.choice.Message.ToolCalls
	at := len(calls) - 1
	if piece.Index != nil {
		at = *piece.Index
	} else if piece.ID != "" {
		at = len(calls)
	}
	at = min(max(at, 0), len(calls))
	if at == len(calls) {
		calls = append(calls, openai.ToolCall{})
		p.choice.Message.ToolCalls = calls
	}
	join(&calls[at].Function, piece.Function)
}

func join(to *openai.FunctionCall, piece openai.FunctionCall) {
	to.Name = cmp.Or(to.Name, piece.Name)
	to.Arguments += piece.Arguments
}

func (p *completion) reply(r condense.Request) condense.Reply {
	u, m, called := p.usage, p.choice.Message, r.Function
	out := condense.Reply{
		Text: text(m), Arguments: arguments(m, called), Refusal: m.Refusal, Finish: string(p.choice.FinishReason),
		Usage: session.Usage{Input: u.PromptTokens, Cached: max(u.Hits, u.Cached), Output: u.CompletionTokens},
	}
	if u.PromptTokensDetails != nil {
		out.Usage.Cached = u.PromptTokensDetails.CachedTokens
	}
	if called == nil && (len(m.ToolCalls) > 0 || m.FunctionCall != nil) {
		out.Finish = "tool_calls" // some servers report another reason
	}
	return out
}

// completionUsage is a usage report, including other servers' names for cached tokens.
type completionUsage struct {
	openai.Usage
	Hits   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached int `json:"cached_tokens"`           // Moonshot
}

// arguments returns the arguments of the first call of the function, as a tool call or, from older servers, as a function call.
func arguments(m openai.ChatCompletionMessage, called *condense.Schema) string {
	if called == nil {
		return ""
	}
	for _, call := range m.ToolCalls {
		if call.Function.Name == called.Name {
			return call.Function.Arguments
		}
	}
	if m.FunctionCall != nil && m.FunctionCall.Name == called.Name {
		return m.FunctionCall.Arguments
	}
	return ""
}

func text(m openai.ChatCompletionMessage) string {
	var parts []string
	if m.Content != "" {
		parts = append(parts, m.Content)
	}
	for _, p := range m.MultiContent {
		parts = append(parts, p.Text)
	}
	return strings.Join(parts, "\n")
}
