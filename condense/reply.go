package condense

import (
	"fmt"

	"github.com/dewpoint-proxy/dewpoint/condense/record"
)

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
	if r.Refusal != "" || r.Finish == "content_filter" {
		return "", &SummaryError{Kind: FaultRefused}
	}
	if r.Finish == "error" {
		return "", &SummaryError{Kind: FaultMalformed, Detail: "it ended with an error"}
	}
	if truncated(r) {
		return "", &SummaryError{Kind: FaultTruncated}
	}
	text := record.Unwrap(r.Text)
	if text == "" {
		return "", &SummaryError{Kind: FaultEmpty}
	}
	return text, nil
}

func truncated(r Reply) bool { return r.Finish == "length" || r.Finish == "max_tokens" }
