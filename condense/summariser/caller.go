// Package summariser calls the models that write summaries.
package summariser

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/condense"
	"github.com/dewpoint-proxy/dewpoint/internal/agents"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Defaults of Caller.
const (
	DefaultTimeout     = 30 * time.Second
	DefaultMaxResponse = 16 << 20
)

// How slow a server may be before a call is given up: the time for the whole follows from what it has to read and to write.
const (
	slowestReading = 4 << 10 // bytes of prompt a second, before the first sign of life
	slowestWriting = 20      // tokens a second
)

// Caller is a condense.Summariser that speaks Chat Completions, or the Messages or the Responses API where the endpoint says so. Answers
// are streamed where the server does that. It may be used concurrently.
type Caller struct {
	Client      *http.Client  // nil: http.DefaultClient
	Timeout     time.Duration // longest silence of the server; 0: DefaultTimeout
	Temperature *float32      // nil: not sent
	MaxResponse int64         // bytes of a response's body; 0: DefaultMaxResponse
	Lacks       *Lacks        // what servers do not take; nil: it is found out with each call
}

var _ condense.Summariser = Caller{}

// Summarise implements Summariser. What the server refuses of the form of the call is left out, and it is asked again;
// that is remembered once the server no longer refuses.
func (c Caller) Summarise(ctx context.Context, r condense.Request) (condense.Reply, error) {
	if r.Endpoint.Way.API == condense.APIMessages {
		return c.messages(ctx, r)
	}
	if r.Body != nil { // it has the form that the client's own requests have
		answer, err := c.attempt(ctx, r, lacks{})
		if err != nil && !errors.Is(err, errWhole) {
			return condense.Reply{}, callError(ctx, err, r.Endpoint.APIKey)
		}
		return answer, nil
	}
	before := c.Lacks.of(r)
	known := before
	for {
		answer, err := c.attempt(ctx, r, known)
		ended := err == nil || errors.Is(err, errSilent) || errors.Is(err, errWhole)
		if known.learn(err) && !ended {
			continue
		}
		if ended && known != before {
			c.Lacks.remember(r, known)
		}
		if err != nil && !errors.Is(err, errWhole) {
			return condense.Reply{}, callError(ctx, err, r.Endpoint.APIKey)
		}
		return answer, nil
	}
}

// attempt makes one call, in the form that the server takes.
func (c Caller) attempt(ctx context.Context, r condense.Request, l lacks) (condense.Reply, error) {
	if r.Endpoint.Way.API == condense.APIResponses {
		return c.responses(ctx, r, l)
	}
	call := c.call
	if r.Body != nil {
		call = c.whole
	}
	answer, err := call(ctx, r, l)
	return reply(answer, r.Function), err
}

// request has all events in one user message: some servers take no two in a row.
func (c Caller) request(r condense.Request) openai.ChatCompletionRequest {
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

func reply(a openai.ChatCompletionResponse, called *condense.Schema) condense.Reply {
	r := condense.Reply{Usage: session.Usage{Input: a.Usage.PromptTokens, Output: a.Usage.CompletionTokens}}
	if d := a.Usage.PromptTokensDetails; d != nil {
		r.Usage.Cached = d.CachedTokens
	}
	if len(a.Choices) > 0 {
		c := a.Choices[0]
		r.Text, r.Refusal, r.Finish = text(c.Message), c.Message.Refusal, string(c.FinishReason)
		r.Arguments = arguments(c.Message, called)
		if called == nil && (len(c.Message.ToolCalls) > 0 || c.Message.FunctionCall != nil) {
			r.Finish = "tool_calls" // whatever the server says
		}
	}
	return r
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

// callError says what went wrong in words of our own, since a server may well quote the key in its.
func callError(ctx context.Context, err error, key string) error {
	if ctx.Err() != nil {
		return &condense.CallError{Kind: gaveUp(ctx), Err: ctx.Err()}
	}
	if e, ok := errors.AsType[*openai.APIError](err); ok {
		if e.HTTPStatusCode == 0 { // told within a stream
			return &condense.CallError{Kind: condense.FailureServer, Code: code(e, key)}
		}
		return &condense.CallError{Kind: failure(e.HTTPStatusCode), Status: e.HTTPStatusCode, Code: code(e, key)}
	}
	if e, ok := errors.AsType[*openai.RequestError](err); ok {
		return &condense.CallError{Kind: failure(e.HTTPStatusCode), Status: e.HTTPStatusCode}
	}
	if e, ok := errors.AsType[*refused](err); ok {
		if e.status == 0 {
			return &condense.CallError{Kind: condense.FailureServer, Code: plain(e.kind, key)}
		}
		return &condense.CallError{Kind: failure(e.status), Status: e.status, Code: plain(e.kind, key)}
	}
	for cause, kind := range map[error]condense.Failure{
		errSilent: condense.FailureTimeout, errStalls: condense.FailureTimeout, errSlow: condense.FailureTimeout,
		errResponseSize: condense.FailureMalformed, errBroken: condense.FailureUnreachable,
	} {
		if errors.Is(err, cause) {
			return &condense.CallError{Kind: kind, Err: cause}
		}
	}
	if e, ok := errors.AsType[*url.Error](err); ok {
		if e.Timeout() {
			return &condense.CallError{Kind: condense.FailureTimeout, Err: hide(e.Err, key)}
		}
		return &condense.CallError{Kind: condense.FailureUnreachable, Err: hide(e.Err, key)}
	}
	return &condense.CallError{Kind: condense.FailureMalformed, Err: hide(err, key)}
}

// gaveUp tells why the caller did: its time was over, or what it was for has ended. Neither is the server's failure.
func gaveUp(ctx context.Context) condense.Failure {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return condense.FailureDeadline
	}
	return condense.FailureCanceled
}

func failure(status int) condense.Failure {
	switch {
	case status == http.StatusTooManyRequests:
		return condense.FailureRateLimited
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return condense.FailureDenied
	case status >= http.StatusInternalServerError:
		return condense.FailureServer
	case status >= http.StatusBadRequest:
		return condense.FailureRejected
	}
	return condense.FailureMalformed
}

// code is the server's error code if it is a plain word.
func code(e *openai.APIError, key string) string {
	c, _ := e.Code.(string)
	return plain(c, key)
}

// plain is a code if it is a plain word and does not hold the key.
func plain(c, key string) string {
	if len(c) > 64 || strings.Trim(c, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" || key != "" && strings.Contains(c, key) {
		return ""
	}
	return c
}

// hide drops an error whose text holds the key.
func hide(err error, key string) error {
	if err == nil || key != "" && strings.Contains(err.Error(), key) {
		return nil
	}
	return err
}
