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
	// errWhole says that an answer came whole although a stream was asked for. It can be used.
	errWhole = errors.New("the answer was not streamed")
	// errGarbled says that a stream is none of Chat Completions.
	errGarbled = errors.New("the stream is not one of a completion")
)

// completion is an answer of Chat Completions.
type completion struct {
	choice openai.ChatCompletionChoice
	usage  reported
	over   bool // an end was told of: it did not break off
}

// request has all events in one user message: some servers take no two in a row.
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
		out.MaxTokens = r.MaxOutput //nolint:staticcheck // what compatible servers know
	}
	if c.Temperature != nil {
		// go-openai leaves a zero out, and the server would take its own default.
		out.Temperature = max(*c.Temperature, math.SmallestNonzeroFloat32)
	}
	if !l.effort {
		out.ReasoningEffort = effortOf(r.Model)
	}
	if out.Stream = !l.stream; out.Stream && !l.options {
		out.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	return out
}

// constrain adds the function that the model has to call, or the form that its text must have.
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

func (p *completion) take(data []byte) (last bool, err error) {
	if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
		if !p.over {
			return false, errEnded
		}
		return true, nil
	}
	var chunk struct {
		Choices []openai.ChatCompletionStreamChoice
		Usage   *reported
		Error   json.RawMessage
	}
	if json.Unmarshal(data, &chunk) != nil {
		return false, errGarbled
	}
	if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
		var told struct{ Code string }
		_ = json.Unmarshal(chunk.Error, &told) // what is none has no code
		return false, &refused{code: told.Code}
	}
	if chunk.Usage != nil {
		p.usage = *chunk.Usage
		p.over = p.over || len(chunk.Choices) == 0 // some servers tell of usage in every chunk
	}
	for _, c := range chunk.Choices {
		if c.Index == 0 {
			p.add(c)
		}
	}
	return false, nil
}

func (p *completion) whole(body []byte) error {
	var all struct {
		Choices []openai.ChatCompletionChoice
		Usage   reported
	}
	if json.Unmarshal(body, &all) != nil {
		return errUnreadable
	}
	if p.usage = all.Usage; len(all.Choices) > 0 {
		p.choice = all.Choices[0]
	}
	return errWhole
}

func (p *completion) ended() bool { return p.over }

// add adds a piece of the only choice.
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
		p.call(call)
	}
	if c.FinishReason != "" {
		p.choice.FinishReason, p.over = c.FinishReason, true
	}
}

// call adds a piece of a tool call: one without an index goes on with the last call, or begins the next where it has an id.
func (p *completion) call(piece openai.ToolCall) {
	calls := p.choice.Message.ToolCalls
	at := len(calls) - 1
	if piece.Index != nil {
		at = *piece.Index
	} else if piece.ID != "" {
		at = len(calls)
	}
	if at = min(max(at, 0), len(calls)); at == len(calls) {
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
		out.Finish = "tool_calls" // whatever the server says
	}
	return out
}

// reported is a usage report with the names that other servers than OpenAI's have for cached tokens.
type reported struct {
	openai.Usage
	Hits   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached int `json:"cached_tokens"`           // Moonshot
}

// arguments are those of the first call of the function, whether the server speaks of tools or, as older ones, of a
// function.
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
	parts := []string{}
	if m.Content != "" {
		parts = append(parts, m.Content)
	}
	for _, p := range m.MultiContent {
		parts = append(parts, p.Text)
	}
	return strings.Join(parts, "\n")
}
