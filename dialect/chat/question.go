package chat

import (
	"cmp"
	"math"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/internal/known/agents"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// usualLimit returns the parameter that limits the answer of a model, by the model's name.
func usualLimit(model string) string {
	if agents.RefusesMaxTokens(model) {
		return completionLimit
	}
	return "max_tokens"
}

// Servers implements dialect.Asker.
func (d *Dialect) Servers() dialect.Servers {
	return dialect.Servers{Differ: true, Limits: limits[:]}
}

// Place implements dialect.Asker.
func (d *Dialect) Place(before string, _ dialect.Question) (path, query string) {
	return before + Path, ""
}

// Question implements dialect.Asker. It is an object of the members that go-openai's request has.
func (d *Dialect) Question(q dialect.Question) dialect.Object {
	out := openai.ChatCompletionRequest{
		Model: q.Model, Stream: q.Streamed, ReasoningEffort: cmp.Or(q.Effort, q.LeastEffort),
		Messages: []openai.ChatCompletionMessage{{Role: openai.ChatMessageRoleUser, Content: q.User}},
	}
	if q.System != "" {
		role := cmp.Or(q.Role, openai.ChatMessageRoleSystem)
		out.Messages = slices.Insert(out.Messages, 0, openai.ChatCompletionMessage{Role: role, Content: q.System})
	}
	if cmp.Or(q.Limit, usualLimit(q.Model)) == completionLimit {
		out.MaxCompletionTokens = q.MaxOutput
	} else {
		out.MaxTokens = q.MaxOutput //nolint:staticcheck // compatible servers support only this one
	}
	if q.Temperature != nil {
		out.Temperature = max(*q.Temperature, math.SmallestNonzeroFloat32) // go-openai omits a zero, and the server would use its own default
	}
	if out.Stream {
		out.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if f := q.Function; f != nil {
		out.Tools = []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: f.Name, Description: f.Description, Parameters: dialect.Raw(f.JSON),
		}}}
		out.ToolChoice = openai.ToolChoice{Type: openai.ToolTypeFunction, Function: openai.ToolFunction{Name: f.Name}}
	}
	if f := q.Format; f != nil {
		out.ResponseFormat = &openai.ChatCompletionResponseFormat{
			Type: openai.ChatCompletionResponseFormatTypeJSONSchema,
			JSONSchema: &openai.ChatCompletionResponseFormatJSONSchema{
				Name: f.Name, Description: f.Description, Schema: dialect.Raw(f.JSON), Strict: true,
			},
		}
	}
	return members(out)
}

// members returns the members of a request as they are sent.
func members(r openai.ChatCompletionRequest) dialect.Object {
	out := dialect.Object{}
	for key, value := range rawjson.Members(assemble.Encode(r)) {
		out[string(key.Raw)] = dialect.Raw(value.Raw)
	}
	return out
}
