package summariser

import (
	"encoding/json"
	"math"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
)

func chatRequest(c Caller, r condense.Request, l lacks) any {
	out := openai.ChatCompletionRequest{
		Model: r.Model,
		Messages: []openai.ChatCompletionMessage{
			{Role: openai.ChatMessageRoleSystem, Content: r.System}, {Role: openai.ChatMessageRoleUser, Content: r.User},
		},
		Stream: !l.stream,
	}
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
	if out.Stream && !l.options {
		out.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
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
	return out
}
