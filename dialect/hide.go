package dialect

import "github.com/dewpoint-proxy/dewpoint/session"

// Tool is a tool that the proxy itself offers to models.
type Tool struct {
	Name, Description string
	Parameters        string // a JSON Schema
}

// Hider is the part of a Dialect that lets the proxy offer tools of its own. Clients never see calls of these tools.
type Hider interface {
	// CanHideTools reports whether tools can be added to a request and all calls of them hidden. The client must send
	// tools of its own, leave the choice of tools to the model, ask for a single answer and not have upstream store the
	// history.
	CanHideTools(r *Request) bool
	// Offer returns a request with more tools appended to the client's.
	Offer(r *Request, tools []Tool) *Request
	// Result encodes the result of a call.
	Result(call session.Call, text string) []byte
	// FilterAnswers returns a filter that removes calls of hidden tools from the answers to one request.
	FilterAnswers(streamed bool, hidden func(tool string) bool) AnswerFilter
}

// AnswerFilter turns several answers of a model into one for the client, without the calls of hidden tools. The client
// receives the bytes that Write and Finish return. It is not safe for concurrent use.
//
// It keeps the answers so that the calls can be answered, and an event until it has ended. An event of more than MaxEvent bytes is not read: it is
// passed on as it is if no call was hidden before.
type AnswerFilter interface {
	// Write takes the next bytes of an answer. It keeps p if the answer is not streamed.
	Write(p []byte) []byte
	// Held returns about how many bytes are kept.
	Held() int
	// Forget drops the answers and keeps no more of them. Hidden calls are still removed, but cannot be answered any more.
	Forget()
	// TooLong reports whether a stream cannot be filtered any further: after a hidden call, an event exceeds MaxEvent.
	TooLong() bool
	// Ended tells that upstream has ended a stream as its framing says. Without an end mark, the answer then counts as complete. It is called
	// before Close.
	Ended()
	// Close ends an answer and returns what the model said in it. If the model called only hidden tools, the client does not receive the
	// end of the answer until Finish returns it.
	Close() Said
	// Next starts another answer, which replaces the end of the previous one.
	Next()
	// Finish returns the end of the last answer. It is called after Close.
	Finish() []byte
	// Echo returns the answer as the client will send it back, or nil if that cannot be known.
	Echo() []byte
}

// Limits of an AnswerFilter, in bytes.
const (
	MaxEvent     = 8 << 20  // of an event that is read
	MaxArguments = 16 << 10 // of the arguments of a hidden call. Longer ones are cut to one byte more, and removed from Said.Message
)

// Said is what a model said in one answer.
type Said struct {
	Message   []byte         // for Join, including the hidden calls; nil if it could not be read, or holds none
	Calls     []session.Call // calls of hidden tools
	Forgotten int            // calls of hidden tools that cannot be answered, since the answer was not kept
	Own       bool           // the model also called the client's tools
	Complete  bool           // the answer was not cut off
}

// OnlyHidden reports whether the answer leaves the client nothing to do: the model called hidden tools and no others.
func (s Said) OnlyHidden() bool { return s.Complete && len(s.Calls)+s.Forgotten > 0 && !s.Own }
