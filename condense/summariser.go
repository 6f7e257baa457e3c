package condense

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Summariser is the model that writes summaries. It must be safe for concurrent use.
type Summariser interface {
	// Summarise makes one call. If there is no reply it returns a *CallError. A reply that cannot be used is not an error.
	Summarise(ctx context.Context, r Request) (Reply, error)
}

// Request is one call of a summariser. Of the client's own request it contains only text to summarise, unless Body is set.
type Request struct {
	Endpoint  Endpoint
	Model     string
	System    string
	User      string
	Body      []byte  // the complete request, including System and User: the client's own with a question behind it; nil: none
	MaxOutput int     // maximum tokens of the reply
	Function  *Schema // a function that the model must call; nil: none
	Format    *Schema // schema of the reply's text; nil: any text
}

// Size returns the length of the prompt in bytes.
func (r *Request) Size() int {
	if r.Body != nil {
		return len(r.Body)
	}
	return len(r.System) + len(r.User)
}

// Schema is a JSON schema, of the arguments of a function or of a reply.
type Schema struct {
	Name        string
	Description string
	JSON        []byte // the schema
}

// Reply is the answer of a summariser.
type Reply struct {
	Text      string
	Arguments string // arguments of the function call; empty if there was none
	Finish    string // the protocol's finish_reason
	Refusal   string // the protocol's refusal; empty if none
	Usage     session.Usage
}

// Failure is the reason why a call gave no reply.
type Failure string

const (
	FailureCanceled    Failure = "canceled"     // the caller cancelled the call
	FailureDeadline    Failure = "deadline"     // the caller's deadline passed; this says nothing about the server
	FailureTimeout     Failure = "timeout"      // the server did not answer, or was far too slow
	FailureUnreachable Failure = "unreachable"  // no connection, or it broke
	FailureRateLimited Failure = "rate_limited" // 429
	FailureDenied      Failure = "denied"       // 401, 403: the key is wrong
	FailureRejected    Failure = "rejected"     // any other 4xx: model unknown, prompt too long, ...
	FailureServer      Failure = "server"       // 5xx
	FailureMalformed   Failure = "malformed"    // the reply cannot be read
	FailureUntrusted   Failure = "untrusted"    // not called: upstream has not accepted the client yet, and the operator's key would pay
	FailureLimited     Failure = "limited"      // not called: the tenant has used up its summaries for this minute, or a budget
)

// CallError is the error of a call without a reply. Its text contains neither a key nor text from a server.
type CallError struct {
	Kind   Failure
	Status int    // HTTP status; 0 if there was none
	Code   string // the server's error code if it is a plain word, else empty
	Window int    // the model's context window, in tokens, if the server says that the prompt does not fit it; else 0
	Prompt int    // the prompt's tokens by the same message; 0 if it does not say
	Err    error  // cause on our side of the connection; nil if there is none
	Begun  *Reply // what had arrived of an answer that broke off; nil if none had begun
}

func (e *CallError) Error() string {
	text := "call summariser: " + string(e.Kind)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Missing reports whether the model or its credential does not exist.
func (e *CallError) Missing() bool {
	return e.Kind == FailureDenied || e.Kind == FailureRejected && e.Status == 404
}

func (e *CallError) Unwrap() error { return e.Err }

// mayRetry reports whether a shorter prompt may succeed after err.
func mayRetry(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	return !ok || !slices.Contains([]Failure{
		FailureCanceled, FailureDeadline, FailureDenied, FailureRateLimited, FailureUntrusted, FailureLimited,
	}, call.Kind)
}

// Fault is the reason why a summary cannot be used.
type Fault string

const (
	FaultEmpty      Fault = "empty"
	FaultRefused    Fault = "refused"
	FaultTruncated  Fault = "truncated"
	FaultInflated   Fault = "inflated"   // not enough smaller than what it replaces, or over its limit
	FaultMalformed  Fault = "malformed"  // not in the requested format
	FaultUngrounded Fault = "ungrounded" // most of it names what the model was not shown
	FaultTooLarge   Fault = "too_large"  // not even the shortest prompt fits the summariser's window
	FaultCrowded    Fault = "crowded"    // not asked for: what must stand next to it leaves no room
)

// SummaryError is the error of a summary that cannot be used. Nothing may be hidden for it.
type SummaryError struct {
	Kind   Fault
	Detail string // sizes; never text from the model or the conversation
}

// errorf returns a *SummaryError.
func (f Fault) errorf(detail string, args ...any) error {
	return &SummaryError{Kind: f, Detail: fmt.Sprintf(detail, args...)}
}

func (e *SummaryError) Error() string {
	if e.Detail == "" {
		return "summary " + string(e.Kind)
	}
	return fmt.Sprintf("summary %s: %s", e.Kind, e.Detail)
}

// ReadReply reads the record from a model's reply, without wrapping. It returns a *SummaryError if there is none.
func ReadReply(r Reply) (string, error) {
	text := record.Unwrap(r.Text)
	switch {
	case r.Refusal != "" || r.Finish == "content_filter":
		return "", &SummaryError{Kind: FaultRefused}
	case r.Finish == "error":
		return "", FaultMalformed.errorf("the reply ended with an error")
	case r.Finish == "length":
		return "", &SummaryError{Kind: FaultTruncated}
	case text == "":
		return "", &SummaryError{Kind: FaultEmpty}
	}
	return text, nil
}

// FinishReason translates the reason why an answer ended, in any protocol, to the finish_reason of Chat Completions.
func FinishReason(reason string) string {
	switch reason {
	case "completed", "end_turn", "stop_sequence", "STOP":
		return "stop"
	case "tool_use":
		return "tool_calls"
	case "max_output_tokens", "max_tokens", "model_context_window_exceeded", "MAX_TOKENS":
		return "length"
	case "refusal", "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR":
		return "content_filter"
	case "failed", "OTHER", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE":
		return "error"
	}
	return reason
}
