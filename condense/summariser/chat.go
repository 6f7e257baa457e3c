package summariser

import (
	"cmp"
	"encoding/json"
	"math"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
)

// usualLimit returns the parameter that limits the answer of a model, by the model's name.
func usualLimit(model string) string {
	if agents.RefusesMaxTokens(model) {
		return limits[1]
	}
	return limits[0]
}

func chatRequest(c Caller, r condense.Request, l lacks) any {
	out := openai.ChatCompletionRequest{
		Model: r.Model,
		Messages: []openai.ChatCompletionMessage{
			{Role: cmp.Or(l.role, openai.ChatMessageRoleSystem), Content: r.System}, {Role: openai.ChatMessageRoleUser, Content: r.User},
		},
		Stream: !l.omits("stream"),
	}
	if l.role == roleUser { // the prompt has the instructions
		out.Messages = out.Messages[1:]
	}
	if cmp.Or(l.limit, r.Endpoint.Way.Limit, usualLimit(r.Model)) == limits[1] {
		out.MaxCompletionTokens = r.MaxOutput
	} else {
		out.MaxTokens = r.MaxOutput //nolint:staticcheck // compatible servers support only this one
	}
	if c.Temperature != nil {
		// go-openai omits a zero, and the server would use its own default.
		out.Temperature = max(*c.Temperature, math.SmallestNonzeroFloat32)
	}
	out.ReasoningEffort = cmp.Or(c.Effort, effortOf(r.Model))
	if out.Stream {
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
