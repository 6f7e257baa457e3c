package dialect

import "github.com/dewpoint-proxy/dewpoint/session"

// Tool is a tool of the proxy's own.
type Tool struct {
	Name, Description string
	Parameters        string // a JSON Schema
}

// Hider is the part of a Dialect in which the proxy can offer tools of its own, whose calls its clients never see.
type Hider interface {
	// Hides reports whether tools can be offered with a request, and every call of them be hidden: the client sends tools of its own,
	// leaves the model its choice, wants one answer, and leaves no history with upstream.
	Hides(r *Request) bool
	// Offer gives a request with more tools behind the client's own.
	Offer(r *Request, tools []Tool) *Request
	// Result writes the result of a call.
	Result(call session.Call, text string) []byte
	// Strain begins to take calls of hidden tools out of the answers to one request.
	Strain(streamed bool, hidden func(tool string) bool) Strainer
}

// Strainer makes one answer of several, and takes the calls of hidden tools out. The client gets what Write and Finish give. It is used by
// one goroutine at a time.
type Strainer interface {
	// Write takes the next bytes of an answer.
	Write(p []byte) []byte
	// Close ends an answer, and tells what the model said in it. What ends the answer for the client is held back where hidden calls
	// are all that the model called.
	Close() Said
	// Next begins another answer, in the place of the end of the last one.
	Next()
	// Finish gives the end of the last answer, after Close.
	Finish() []byte
	// Echo is the answer as the client will send it back, nil if none can be told.
	Echo() []byte
}

// Said is what a model said in one answer.
type Said struct {
	Message []byte         // as Join takes it, with the hidden calls; nil: it was not understood
	Calls   []session.Call // of hidden tools
	Own     bool           // it calls tools of the client's, too
	Whole   bool           // it was not cut off
}

// Alone reports whether there is nothing for the client to answer, but for the proxy.
func (s Said) Alone() bool { return s.Whole && len(s.Calls) > 0 && !s.Own }
