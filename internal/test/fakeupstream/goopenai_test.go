package fakeupstream_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/internal/test/fakeupstream"
)

// agent is a small tool loop on go-openai.
type agent struct {
	client  *openai.Client
	stream  bool
	history []openai.ChatCompletionMessage
	usage   openai.Usage
}

func newAgent(t *testing.T, s *fakeupstream.Server, key string, stream bool) *agent {
	config := openai.DefaultConfig(key)
	config.BaseURL = s.URL() + "/v1"
	config.HTTPClient = newClient(t)
	first := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: "What is in the directory?"}
	return &agent{client: openai.NewClientWithConfig(config), stream: stream, history: []openai.ChatCompletionMessage{first}}
}

// run asks until the model calls no more tools, and returns its last words.
func (a *agent) run(t *testing.T) string {
	t.Helper()
	for range 10 {
		reply := a.step(t)
		a.history = append(a.history, reply)
		if len(reply.ToolCalls) == 0 {
			return reply.Content
		}
		for _, call := range reply.ToolCalls {
			a.history = append(a.history, openai.ChatCompletionMessage{
				Role: openai.ChatMessageRoleTool, ToolCallID: call.ID, Content: "ran " + call.Function.Arguments,
			})
		}
	}
	t.Fatal("the loop does not end")
	return ""
}

func (a *agent) request() openai.ChatCompletionRequest {
	return openai.ChatCompletionRequest{
		Model: "gpt-4o", Messages: a.history,
		Tools: []openai.Tool{{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: "sh", Parameters: map[string]any{"type": "object", "properties": map[string]any{}},
		}}},
	}
}

func (a *agent) step(t *testing.T) openai.ChatCompletionMessage {
	t.Helper()
	if a.stream {
		return a.streamStep(t)
	}
	resp, err := a.client.CreateChatCompletion(guard(t), a.request())
	if err != nil {
		t.Fatal(err)
	}
	a.usage = resp.Usage
	return resp.Choices[0].Message
}

func (a *agent) streamStep(t *testing.T) openai.ChatCompletionMessage {
	t.Helper()
	request := a.request()
	request.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	stream, err := a.client.CreateChatCompletionStream(guard(t), request)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var message openai.ChatCompletionMessage
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return message
		}
		if err != nil {
			t.Fatal(err)
		}
		if chunk.Usage != nil {
			a.usage = *chunk.Usage
		}
		for _, choice := range chunk.Choices {
			gather(&message, choice.Delta)
		}
	}
}

func gather(message *openai.ChatCompletionMessage, delta openai.ChatCompletionStreamChoiceDelta) {
	message.Role += delta.Role
	message.Content += delta.Content
	for _, call := range delta.ToolCalls {
		if *call.Index == len(message.ToolCalls) {
			message.ToolCalls = append(message.ToolCalls, call)
			continue
		}
		message.ToolCalls[*call.Index].Function.Arguments += call.Function.Arguments
	}
}

func TestToolLoopWithGoOpenAI(t *testing.T) {
	calls := []fakeupstream.ToolCall{
		{ID: "call_1", Name: "sh", Arguments: `{"command":"ls -la /srv/größe"}`},
		{ID: "call_2", Name: "sh", Arguments: `{"command":"pwd"}`},
	}
	last := "There are three files, 世界."
	for _, stream := range []bool{false, true} {
		s := start(t, fakeupstream.Options{APIKeys: []string{"sk-1"}, ContextWindow: 4000})
		s.Script(
			fakeupstream.Answer{Content: "Let me look.", ToolCalls: calls},
			fakeupstream.Answer{ToolCalls: calls[:1]}, // the id again: another unit
			fakeupstream.Answer{Content: last, Usage: &fakeupstream.Usage{Prompt: 2000, Completion: 7, Cached: 1920}},
		)
		a := newAgent(t, s, "sk-1", stream)
		if got := a.run(t); got != last {
			t.Errorf("stream %t: %q", stream, got)
		}
		if got := a.history[3].Content; got != "ran "+calls[1].Arguments {
			t.Errorf("stream %t: second result %q", stream, got)
		}
		if a.usage.PromptTokens != 2000 || a.usage.CompletionTokens != 7 || a.usage.PromptTokensDetails.CachedTokens != 1920 {
			t.Errorf("stream %t: usage %+v", stream, a.usage)
		}
		if got := s.Requests(); len(got) != 3 || s.Unplayed() != 0 || len(got[2].Messages) != 6 {
			t.Errorf("stream %t: %d requests", stream, len(got))
		}
	}
}

func TestErrorsReachGoOpenAI(t *testing.T) {
	s := start(t, fakeupstream.Options{APIKeys: []string{"sk-1"}})
	for _, stream := range []bool{false, true} {
		a := newAgent(t, s, "sk-wrong-key", stream)
		_, err := a.client.CreateChatCompletion(guard(t), a.request())
		var apiErr *openai.APIError
		if !errors.As(err, &apiErr) || apiErr.HTTPStatusCode != http.StatusUnauthorized || apiErr.Code != "invalid_api_key" {
			t.Errorf("%v", err)
		}
	}
	a := newAgent(t, s, "sk-1", false)
	a.history = append(a.history, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: "x", Content: "y"})
	_, err := a.client.CreateChatCompletion(guard(t), a.request())
	var apiErr *openai.APIError
	if !errors.As(err, &apiErr) || apiErr.HTTPStatusCode != 400 || !strings.Contains(apiErr.Message, "preceeding message") || *apiErr.Param != "messages.[1].role" {
		t.Errorf("%v", err)
	}
}
