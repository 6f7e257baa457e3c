package condense

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Summariser is the model that writes summaries. It may be used concurrently.
type Summariser interface {
	// Summarise makes one call. Failures to get a reply are *CallError; a reply that is no good is a Reply.
	Summarise(ctx context.Context, r Request) (Reply, error)
}

// Request is one call of a summariser. Nothing of the client's own request is in it but text to summarise, unless
// the request itself is asked.
type Request struct {
	Endpoint  Endpoint
	Model     string
	System    string
	Events    []string // what stands before User in the user message, one after the other
	User      string
	Body      []byte  // the request as it is sent, which has System and User in it: the client's own with a question behind it; nil: it has none
	MaxOutput int     // tokens the reply may have
	Function  *Schema // a function that the model is made to call; nil: none
	Format    *Schema // the form of the reply's text; nil: any
}

// Size is how long the prompt is, in bytes.
func (r *Request) Size() int {
	if r.Body != nil {
		return len(r.Body)
	}
	n := len(r.System) + len(r.User)
	for _, event := range r.Events {
		n += len(event)
	}
	return n
}

// Schema is a function that a model calls with arguments of a JSON schema, or a form of its text.
type Schema struct {
	Name        string
	Description string
	JSON        []byte // the schema
}

// Reply is what a summariser answered.
type Reply struct {
	Text      string
	Arguments string // of the function that it was made to call, empty if it did not
	Finish    string // the protocol's finish_reason
	Refusal   string // the protocol's refusal, empty if none
	Usage     session.Usage
}

// Failure says why a call gave no reply.
type Failure string

// The failures.
const (
	FailureCanceled    Failure = "canceled"     // the caller gave up
	FailureDeadline    Failure = "deadline"     // the caller's time was over; it says nothing of the server
	FailureTimeout     Failure = "timeout"      // the server was silent, or slow beyond measure
	FailureUnreachable Failure = "unreachable"  // no connection, or it broke
	FailureRateLimited Failure = "rate_limited" // 429
	FailureDenied      Failure = "denied"       // 401, 403: the key is wrong
	FailureRejected    Failure = "rejected"     // any other 4xx: model unknown, prompt too long, ...
	FailureServer      Failure = "server"       // 5xx
	FailureMalformed   Failure = "malformed"    // the reply cannot be read
	FailureUntrusted   Failure = "untrusted"    // not called: upstream has not accepted the client yet, and the operator's key would pay
	FailureLimited     Failure = "limited"      // not called: the tenant has had its summaries for this minute
)

// CallError is a call that gave no reply. Its text never holds a key, nor text that a server sent.
type CallError struct {
	Kind   Failure
	Status int    // HTTP status, 0 if there was none
	Code   string // the server's error code where it is a plain word, empty otherwise
	Err    error  // cause on our side of the connection, nil if there is none
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

// Missing reports whether the model or its credential is not there.
func (e *CallError) Missing() bool {
	return e.Kind == FailureDenied || e.Kind == FailureRejected && e.Status == 404
}

func (e *CallError) Unwrap() error { return e.Err }

// again reports whether a shorter prompt may succeed where the last one failed with err.
func again(err error) bool {
	call, ok := errors.AsType[*CallError](err)
	return !ok || !slices.Contains([]Failure{
		FailureCanceled, FailureDeadline, FailureDenied, FailureRateLimited, FailureUntrusted, FailureLimited,
	}, call.Kind)
}

// Fault says what is wrong with a summary.
type Fault string

// The faults.
const (
	FaultEmpty     Fault = "empty"
	FaultRefused   Fault = "refused"
	FaultTruncated Fault = "truncated"
	FaultInflated  Fault = "inflated"  // not smaller than what it stands for, or over its cap
	FaultMalformed Fault = "malformed" // not of the form that was asked for
	FaultTooLarge  Fault = "too_large" // not even the shortest prompt fits the summariser's window
	FaultCrowded   Fault = "crowded"   // none was asked for: what has to stand next to it leaves it no room
)

// SummaryError is a summary that cannot be used: nothing may be forgotten for it.
type SummaryError struct {
	Kind   Fault
	Detail string // sizes; never text of the model or the conversation
}

func (e *SummaryError) Error() string {
	if e.Detail == "" {
		return "summary " + string(e.Kind)
	}
	return fmt.Sprintf("summary %s: %s", e.Kind, e.Detail)
}

// ReadReply takes the record from a model's reply, without the wrapping that models put around it.
func ReadReply(r Reply) (string, error) {
	text := record.Unwrap(r.Text)
	switch {
	case r.Refusal != "" || r.Finish == "content_filter":
		return "", &SummaryError{Kind: FaultRefused}
	case r.Finish == "error":
		return "", &SummaryError{Kind: FaultMalformed, Detail: "it ended with an error"}
	case truncated(r):
		return "", &SummaryError{Kind: FaultTruncated}
	case text == "":
		return "", &SummaryError{Kind: FaultEmpty}
	}
	return text, nil
}

func truncated(r Reply) bool { return r.Finish == "length" || r.Finish == "max_tokens" }
