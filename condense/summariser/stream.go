package summariser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	openai "github.com/sashabaranov/go-openai"

	"github.com/dewpoint-proxy/dewpoint/condense"
)

// Why a call was given up that its caller still waited for.
var (
	errSilent = errors.New("the server did not answer")
	errStalls = errors.New("the server fell silent")
	errSlow   = errors.New("the server took too long")
)

var (
	// errWhole says that an answer came whole although a stream was asked for. It can be used.
	errWhole = errors.New("the answer was not streamed")
	// errUnreadable says that it came whole, and cannot.
	errUnreadable = errors.New("the answer is not a completion")
)

// call makes one call of Chat Completions.
func (c Caller) call(ctx context.Context, r condense.Request, l lacks) (answer openai.ChatCompletionResponse, err error) {
	err = c.watched(ctx, r, !l.stream, func(ctx context.Context, w *wire) (err error) {
		config := openai.DefaultConfig(r.Endpoint.APIKey)
		config.BaseURL = cmp.Or(r.Endpoint.BaseURL, config.BaseURL)
		config.HTTPClient, config.EmptyMessagesLimit = w, math.MaxInt32 // lines of comments; bytes are bounded
		answer, err = w.ask(ctx, openai.NewClientWithConfig(config), l.shape(c.request(r)))
		return err
	})
	return answer, err
}

// whole makes a call of Chat Completions whose body is there already.
func (c Caller) whole(ctx context.Context, r condense.Request, _ lacks) (answer openai.ChatCompletionResponse, err error) {
	var got pieces
	take := func(data []byte) (ended bool, err error) {
		if bytes.Equal(bytes.TrimSpace(data), []byte("[DONE]")) {
			if !got.ended {
				return false, errEnded
			}
			return true, nil
		}
		var chunk struct {
			openai.ChatCompletionStreamResponse
			Usage *reported       `json:"usage"`
			Error json.RawMessage `json:"error"`
		}
		if json.Unmarshal(data, &chunk) != nil {
			return false, errUnreadable
		}
		if len(chunk.Error) > 0 && string(chunk.Error) != "null" {
			return false, fmt.Errorf("%w: it tells of an error", errBroken)
		}
		if chunk.Usage != nil {
			chunk.ChatCompletionStreamResponse.Usage = chunk.Usage.usage()
		}
		got.add(chunk.ChatCompletionStreamResponse)
		return false, nil
	}
	entire := func(body []byte) error {
		var told struct{ Usage reported }
		if json.Unmarshal(body, &answer) != nil || json.Unmarshal(body, &told) != nil {
			return errUnreadable
		}
		answer.Usage = *told.Usage.usage()
		return errWhole
	}
	err = c.watched(ctx, r, true, func(ctx context.Context, w *wire) error { return w.post(ctx, r.Body, entire, take) })
	if err == nil || errors.Is(err, errEnded) && got.ended {
		return got.whole(), nil
	}
	return answer, err
}

// reported is a usage report with the names that other servers than OpenAI's have for cached tokens.
type reported struct {
	openai.Usage
	Hits   int `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached int `json:"cached_tokens"`           // Moonshot
}

func (r *reported) usage() *openai.Usage {
	if r.PromptTokensDetails == nil {
		r.PromptTokensDetails = &openai.PromptTokensDetails{CachedTokens: max(r.Hits, r.Cached)}
	}
	return &r.Usage
}

// watched makes a call for as long as the server shows signs of life, and is not slow beyond measure.
func (c Caller) watched(ctx context.Context, r condense.Request, streamed bool, call func(context.Context, *wire) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	reading, writing := c.patience(r)
	whole := time.AfterFunc(reading+writing, func() { cancel(errSlow) })
	defer whole.Stop()
	began, alive := false, func() {}
	if streamed {
		silent := time.AfterFunc(reading, func() { cancel(errSilent) })
		defer silent.Stop()
		alive = func() { began = silent.Reset(c.silence()) || began }
	}
	err := call(ctx, c.wire(r.Endpoint, alive, streamed))
	switch cause := context.Cause(ctx); {
	case err == nil:
	case errors.Is(cause, errSilent) && began:
		err = errStalls
	case errors.Is(cause, errSilent), errors.Is(cause, errSlow):
		err = cause
	}
	return err
}

func (c Caller) silence() time.Duration { return cmp.Or(c.Timeout, DefaultTimeout) }

// patience is how long a server may take before its first sign of life, and after that.
func (c Caller) patience(r condense.Request) (reading, writing time.Duration) {
	reading = c.silence() + time.Duration(r.Size())*time.Second/slowestReading
	return reading, time.Duration(r.MaxOutput) * time.Second / slowestWriting
}

// ask makes the request, and gives the answer as if it had not been streamed.
func (w *wire) ask(
	ctx context.Context, client *openai.Client, request openai.ChatCompletionRequest,
) (openai.ChatCompletionResponse, error) {
	if !w.streamed {
		return client.CreateChatCompletion(ctx, request) //nolint:wrapcheck // callError words it
	}
	stream, err := client.CreateChatCompletionStream(ctx, request)
	if err != nil {
		return openai.ChatCompletionResponse{}, err //nolint:wrapcheck // likewise
	}
	defer func() { _ = stream.Close() }()
	if w.whole != nil {
		var answer openai.ChatCompletionResponse
		if err := json.Unmarshal(w.whole, &answer); err != nil {
			return answer, errUnreadable
		}
		return answer, errWhole
	}
	var got pieces
	for {
		chunk, err := stream.Recv()
		switch {
		case err == nil:
			got.add(chunk)
		case !errors.Is(err, io.EOF):
			return got.answer, err //nolint:wrapcheck // likewise
		case !got.ended:
			return got.answer, errBroken
		default:
			return got.whole(), nil
		}
	}
}

// pieces puts a streamed answer together.
type pieces struct {
	answer openai.ChatCompletionResponse
	choice openai.ChatCompletionChoice
	ended  bool // an end was told of: it did not break off
}

func (p *pieces) add(chunk openai.ChatCompletionStreamResponse) {
	if chunk.Usage != nil {
		p.answer.Usage = *chunk.Usage
		p.ended = p.ended || len(chunk.Choices) == 0 // some servers tell of usage in every chunk
	}
	for _, c := range chunk.Choices {
		if c.Index != 0 {
			continue
		}
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
			p.choice.FinishReason, p.ended = c.FinishReason, true
		}
	}
}

// call adds a piece of a tool call: one without an index goes on with the last call, or begins the next where it has an id.
func (p *pieces) call(piece openai.ToolCall) {
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

func (p *pieces) whole() openai.ChatCompletionResponse {
	p.answer.Choices = []openai.ChatCompletionChoice{p.choice}
	return p.answer
}
