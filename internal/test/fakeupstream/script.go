package fakeupstream

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
)

// Answer is the answer to one request. The zero value is an empty message. There is one choice, regardless of "n".
type Answer struct {
	// Message is the raw assistant message, sent verbatim. It overrides the three fields below.
	Message   json.RawMessage
	Content   string
	ToolCalls []ToolCall
	Refusal   string

	FinishReason string // "": tool_calls or stop, depending on the message
	Usage        *Usage // nil: computed with the simulated cache
	OmitUsage    bool   // some servers never send it
	ChunkRunes   int    // characters in a streamed chunk; 0 is Options.ChunkRunes

	Sealed func(message json.RawMessage) // called with the message if the server seals; may be nil

	Error *APIError // answer with this error instead of a message
	Raw   *Raw      // answer with these bytes instead

	Header http.Header    // replaces headers of the response
	Inject map[int]string // raw text written before the n-th event of a stream, from 0
	Fault  Fault
}

// ToolCall is a call of a function.
type ToolCall struct{ ID, Name, Arguments string }

// Usage is the billed usage of an answer, in tokens. Prompt includes Cached and Written, which only Anthropic reports.
type Usage struct{ Prompt, Completion, Cached, Written int }

// Raw is a response in another format, such as a gateway's error page.
type Raw struct {
	Status      int
	ContentType string
	Body        []byte
}

// Break is a way in which a response ends early.
type Break int

const (
	BreakNone  Break = iota
	BreakClose       // the connection is closed: no last chunk, fewer bytes than Content-Length announced
	BreakReset       // the connection is reset (TCP RST)
	BreakEnd         // a stream ends early but cleanly; a whole body breaks as with BreakClose
)

// Fault describes what goes wrong with one answer, whether it is a success or an error. Positions count pieces: the events of a stream, or
// the 64-byte blocks of a whole body. Sending continues when the channel receives a value or is closed, when the client leaves, and when
// the server is closed.
type Fault struct {
	HoldHeaders <-chan struct{} // delays the whole answer
	Hold        <-chan struct{} // delays the rest of the answer after HoldAfter pieces; the headers are sent even if that is 0
	HoldAfter   int
	Drip        <-chan struct{} // delays each piece
	Break       Break
	BreakAfter  int // pieces; -1 is before the headers
}

// blockSize is the size of a piece of a whole body, in bytes.
const blockSize = 64

func (f Fault) slow() bool { return f.Hold != nil || f.Drip != nil || f.Break != BreakNone }

func (f Fault) holdsAt(sent int) bool { return f.Hold != nil && sent == f.HoldAfter }

// message returns the assistant message, with its members in OpenAI's order.
func (a Answer) message() value {
	if a.Message != nil {
		return parse(a.Message)
	}
	content := &a.Content
	if a.Content == "" && (len(a.ToolCalls) > 0 || a.Refusal != "") {
		content = nil
	}
	members := []any{"role", "assistant", "content", content}
	var calls []json.RawMessage
	for _, c := range a.ToolCalls {
		calls = append(calls, build("id", c.ID, "type", "function", "function", build("name", c.Name, "arguments", c.Arguments)))
	}
	if calls != nil {
		members = append(members, "tool_calls", calls)
	}
	return object(append(members, "refusal", orNull(a.Refusal))...)
}

func (a Answer) finishReason(message value) string {
	if message.at("tool_calls").given() {
		return cmp.Or(a.FinishReason, "tool_calls")
	}
	return cmp.Or(a.FinishReason, "stop")
}

// Script queues answers. Each accepted request takes one, unless the summariser answers it. A refused request takes none. When the queue is
// empty, Options.Reply answers.
func (s *Server) Script(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, answers...)
}

// Unplayed returns how many scripted answers were not used yet.
func (s *Server) Unplayed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// RateLimited returns a 429 that asks the client to wait for that many seconds.
func RateLimited(retryAfter string) Answer {
	message := "Rate limit reached for the model in organization org-fake. Please try again in " + retryAfter + "s."
	return Answer{
		Error:  &APIError{http.StatusTooManyRequests, message, "tokens", "", "rate_limit_exceeded"},
		Header: http.Header{"Retry-After": {retryAfter}, "X-Ratelimit-Remaining-Tokens": {"0"}},
	}
}

// ServerError returns a 500.
func ServerError() Answer {
	return Answer{Error: &APIError{http.StatusInternalServerError, "The server had an error while processing your request.", "server_error", "", ""}}
}

// BadGateway returns a 502 with the HTML page of a gateway in front of OpenAI.
func BadGateway() Answer {
	return Answer{Raw: &Raw{http.StatusBadGateway, "text/html", []byte("<html><body><h1>502 Bad Gateway</h1></body></html>\n")}}
}

// MalformedEvent is an event that is not JSON, for Answer.Inject.
const MalformedEvent = "data: {\"choices\":[{\"delta\"\n\n"

// ErrorEvent returns an error as an event of a stream, for Answer.Inject.
func ErrorEvent(e *APIError) string {
	return fmt.Sprintf("data: %s\n\n", e.json())
}
