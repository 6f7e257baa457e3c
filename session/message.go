package session

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
)

// Kind is the kind of a message or event.
type Kind uint8

// The kinds of events. Condensed, Requested, HiddenCalls, Answered and Unreadable exist only in the log.
const (
	Unreadable  Kind = iota // a damaged entry, of which only the Seq is known
	System                  // system or developer message: never condensed, not in the chain
	User                    // user message
	Agent                   // assistant text
	Action                  // assistant message with tool calls
	Observation             // tool result
	Condensed               // a condensation was made
	Requested               // a condensation was requested
	HiddenCalls             // calls of the proxy's own tools were removed from an answer
	Answered                // the items of an answer that the client will refer to by their ids
)

var kindNames = [...]string{"unreadable", "system", "user", "agent", "action", "observation", "condensation", "condensation_request", "hidden_calls", "answer"}

// String returns the kind's name in the log, in headers and in the API.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// ByModel reports whether the model wrote a message of this kind.
func (k Kind) ByModel() bool { return k == Agent || k == Action }

// Message is one element of the client's history. Raw is authoritative and goes upstream. The other fields save decoding it
// again.
type Message struct {
	Raw    []byte   // aliases the body of this request or of an earlier one that began alike
	Digest Hash     // SHA-256 of the canonical form
	Calls  []string // ids of the tool calls it makes
	Result string   // id of the call it answers

	Kind     Kind
	Note     uint8 // for a system message that the next one of the same kind replaces: that kind; otherwise 0
	Spoken   Kind  // for a system message that contains words of the user or the agent: User or Agent; otherwise 0
	Sealed   bool  // carries reasoning that its provider bound to everything before it
	Attached bool  // has images or files, whose tokens are an estimate
	Apart    bool  // applies to its request only and stands outside of the list, as the instructions of the Responses API do
	Lasts    bool  // is valid for the rest of the history, such as definitions of tools or a sub-agent's task: never hidden
	Relayed  bool  // was written by another agent, such as a sub-agent's report: of kind User, but not a user's words

	Refers   []string // ids of items of earlier answers that it refers to and that upstream stores
	Resolved []byte   // Raw with the items themselves in place of the references; nil if no item is known
	Lasting  []byte   // the part of Raw that Digest covers, because later requests send only that again; nil for all of it
}

// Payload returns the bytes of the message that are logged.
func (m *Message) Payload() []byte {
	if m.Resolved != nil {
		return m.Resolved
	}
	return m.Raw
}

// History holds the messages of one request with their chain. Positions count the chained messages, starting with 1. System
// messages are not chained; their position is 0.
type History struct {
	Messages []Message
	Chain    []Hash // Chain[p] covers the first p chained messages; Chain[0] is the seed
	pos      []int  // pos[i] is the position of message i
	at       []int  // at[p-1] is the index of the message at position p

	repeated func(callID string) bool // see repeatedCalls
}

// WithoutMessages returns the history's chain alone: positions and hashes, without the bytes of its messages.
func (h *History) WithoutMessages() *History {
	bare := *h
	bare.Messages, bare.repeated = nil, nil
	return &bare
}

// NewHistory computes the chain of messages, starting with seed.
func NewHistory(seed Hash, messages []Message) *History {
	h := &History{
		Messages: messages,
		Chain:    make([]Hash, 1, len(messages)+1),
		pos:      make([]int, len(messages)),
		at:       make([]int, 0, len(messages)),
	}
	h.Chain[0] = seed
	for i := range messages {
		if messages[i].Kind == System {
			continue
		}
		h.Chain = append(h.Chain, Next(h.Chain[len(h.Chain)-1], messages[i].Digest))
		h.at = append(h.at, i)
		h.pos[i] = len(h.at)
	}
	h.repeated = repeatedCalls(messages)
	return h
}

// maxSearches is how many ids are looked for by going through all calls of a history. After that, the calls with each id are counted once.
const maxSearches = 16

// repeatedCalls returns a function that reports whether an id identifies more than one call of the messages. It may be called concurrently.
func repeatedCalls(messages []Message) func(callID string) bool {
	var searches atomic.Int32
	counts := sync.OnceValue(func() map[string]int {
		counts := map[string]int{}
		for i := range messages {
			for _, id := range messages[i].Calls {
				counts[id]++
			}
		}
		return counts
	})
	return func(callID string) bool {
		if searches.Add(1) > maxSearches {
			return counts()[callID] > 1
		}
		n := 0
		for i := range messages {
			for _, id := range messages[i].Calls {
				if id == callID {
					n++
				}
			}
		}
		return n > 1
	}
}

// identifies reports whether a call id can identify its run: it looks unique, and at most one call of the history has it. Some servers give
// each call the same id, or number the calls of each answer from 0.
func (h *History) identifies(callID string) bool { return unique(callID) && !h.repeated(callID) }

// sampled reports whether m belongs to a sample of about one message in sampleOf, whose traces last. Its content decides, so that a message is in
// the sample of every history that has it.
func (m *Message) sampled() bool {
	sum := byte(0)
	for _, b := range m.Digest {
		sum = 31*sum + b
	}
	return sum < math.MaxUint8/sampleOf
}

// sampleOf is how many messages there are for each one in the sample.
const sampleOf = 32

// callsUnique reports whether a message makes a call whose id can identify its run.
func (h *History) callsUnique(m *Message) bool { return slices.ContainsFunc(m.Calls, h.identifies) }

// LoggedHistory returns a history of messages that were read from the log. Because its seed is unknown, the caller passes the logged chain:
// chain[p-1] is the hash at position p. It fails if their number differs from that of the chained messages.
func LoggedHistory(messages []Message, chain []Hash) (*History, error) {
	h := NewHistory(Hash{}, messages)
	if len(chain) != h.Len() {
		return nil, fmt.Errorf("%d messages with %d chain hashes", h.Len(), len(chain))
	}
	copy(h.Chain[1:], chain)
	return h, nil
}

// Len returns the number of chained messages.
func (h *History) Len() int { return len(h.at) }

// Head returns the chain hash of the whole history.
func (h *History) Head() Hash { return h.Chain[len(h.Chain)-1] }

// Pos returns the position of message i, 0 for a system message.
func (h *History) Pos(i int) int { return h.pos[i] }

// At returns the index of the message at position p (1 to Len).
func (h *History) At(p int) int { return h.at[p-1] }

// Message returns the message at position p.
func (h *History) Message(p int) *Message { return &h.Messages[h.at[p-1]] }

// Replaced reports for each message whether a later note of the same kind replaces it. It returns nil if there are no notes.
func (h *History) Replaced() []bool {
	var replaced []bool
	var seen [math.MaxUint8 + 1]bool
	for i := range slices.Backward(h.Messages) {
		kind := h.Messages[i].Note
		if kind == 0 {
			continue
		}
		if replaced == nil {
			replaced = make([]bool, len(h.Messages))
		}
		replaced[i], seen[kind] = seen[kind], true
	}
	return replaced
}

// IsNotice reports whether message i has the role of the user, but was written by the client after a result that lasts, such as
// "Tool loaded.".
func (h *History) IsNotice(i int) bool {
	return i > 0 && h.Messages[i].Kind == User && h.Messages[i-1].Kind == Observation && h.Messages[i-1].Lasts
}

// ByUser reports whether the user wrote message i, rather than the client (a notice) or another agent.
func (h *History) ByUser(i int) bool {
	m := &h.Messages[i]
	return m.Kind == User && !m.Relayed && !h.IsNotice(i)
}

// LastSealed returns the last position whose message carries sealed reasoning, 0 if there is none.
func (h *History) LastSealed() int {
	for p := h.Len(); p > 0; p-- {
		if h.Message(p).Sealed {
			return p
		}
	}
	return 0
}

// Covers reports whether hash is the chain hash of the history's first p messages.
func (h *History) Covers(p int, hash Hash) bool {
	return p >= 0 && p < len(h.Chain) && h.Chain[p] == hash
}

// Content is a decoded message. Messages are decoded only to count tokens and to make summaries, excerpts and traces. Everything else works
// on the raw bytes.
type Content struct {
	Role      string
	Text      string // text parts, joined by a line feed
	Calls     []Call // the tool calls an assistant message makes
	Result    string // id of the call that a tool result answers
	Name      string // name of the tool or participant, if the message has one
	Reasoning string // reasoning text that the client sends back
	Images    []Image
	Files     []File
}

// Call is one tool call of an assistant message. Arguments is the raw JSON text that the model wrote.
type Call struct {
	ID, Name, Arguments string
}

// File describes a part that is neither text nor an image: a document, audio, video, or a type unknown to the dialect.
type File struct {
	Kind    string // FileDocument, FileAudio, FileVideo, or the part's own type
	Name    string // empty if it has none
	ID      string // upstream's id of the file, empty if it has none
	Format  string // media type or file extension, such as "pdf"; empty if unknown
	Bytes   int    // size of inline data, 0 if the data is elsewhere
	Seconds int    // approximate duration of audio or video, 0 if unknown
}

// Kinds of files.
const (
	FileDocument = "file"
	FileAudio    = "audio"
	FileVideo    = "video"
)

// Image describes an image part. Width and Height are 0 if unknown, as for a URL. Bytes is the size of inline data.
type Image struct {
	Detail        string
	Width, Height int
	Bytes         int
}
