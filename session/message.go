package session

import "fmt"

// Kind says what a message or event is.
type Kind uint8

// The kinds of events. Condensed, Requested and HiddenCalls exist only in the log.
const (
	System      Kind = iota + 1 // system or developer message: never condensed, no part of the chain
	User                        // user message
	Agent                       // assistant text
	Action                      // assistant message with tool calls
	Observation                 // tool result
	Condensed                   // a condensation took place
	Requested                   // a condensation was asked for
	HiddenCalls                 // calls of the proxy's own tools were taken out of an answer
)

var kindNames = [...]string{"", "system", "user", "agent", "action", "observation", "condensation", "condensation_request", "hidden_calls"}

// String is the kind's name in the log, in headers and in the API.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "unknown"
}

// Message is one element of the client's history. Raw is authoritative and is what goes upstream; the other fields are
// what the house needs to know of it without decoding its content again.
type Message struct {
	Raw    []byte   // aliases the request's body, or what an earlier one began with
	Kind   Kind     //
	Digest Hash     // SHA-256 of the canonical form
	Calls  []string // ids of the tool calls it makes
	Result string   // id of the call it answers
	Sealed bool     // carries reasoning that its provider bound to all that stood before it

	Attached bool // has parts that are not text: images and files, whose tokens are an estimate

	Spoken  Kind   // of one that counts as a system message although the user or the assistant speaks in it: which of them. Else 0
	Lasting []byte // what the client sends of it from the next request on, which Digest is of; nil: all of it
}

// History is the messages of one request with their chain. Positions count the messages in the chain from 1; system
// messages have none (position 0).
type History struct {
	Messages []Message
	Chain    []Hash // Chain[p] covers the first p chained messages; Chain[0] is the seed
	pos      []int  // position of message i
	at       []int  // index of the message at position p+1
}

// NewHistory computes the chain of messages from seed.
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
		h.Chain = append(h.Chain, next(h.Chain[len(h.Chain)-1], messages[i].Digest))
		h.at = append(h.at, i)
		h.pos[i] = len(h.at)
	}
	return h
}

// LoggedHistory is a history read back from the log. Its seed is not known any more, so the chain is the logged one:
// chain[p-1] is the hash at position p.
func LoggedHistory(messages []Message, chain []Hash) (*History, error) {
	h := NewHistory(Hash{}, messages)
	if len(chain) != h.Len() {
		return nil, fmt.Errorf("%d messages with %d chain hashes", h.Len(), len(chain))
	}
	copy(h.Chain[1:], chain)
	return h, nil
}

// Len is the number of chained messages.
func (h *History) Len() int { return len(h.at) }

// Head is the chain hash of the whole history.
func (h *History) Head() Hash { return h.Chain[len(h.Chain)-1] }

// Pos is the position of message i, 0 for a system message.
func (h *History) Pos(i int) int { return h.pos[i] }

// At is the index of the message at position p (1 to Len).
func (h *History) At(p int) int { return h.at[p-1] }

// Message is the message at position p.
func (h *History) Message(p int) *Message { return &h.Messages[h.at[p-1]] }

// Covers reports whether the history's first p messages are those that hash stands for.
func (h *History) Covers(p int, hash Hash) bool {
	return p >= 0 && p < len(h.Chain) && h.Chain[p] == hash
}

// Content is a message decoded. Only those who must read a message (a token count, a summary, excerpts, a trace) pay for
// decoding it; everything else works on the raw bytes.
type Content struct {
	Role      string
	Text      string // text parts, joined by a line feed
	Calls     []Call // the tool calls an assistant message makes
	Result    string // id of the call that a tool result answers
	Name      string // name of the tool or participant, where the message gives one
	Reasoning string // reasoning text that the client sends back
	Images    []Image
	Files     []File
}

// Call is one tool call of an assistant message. Arguments is the raw JSON text that the model wrote.
type Call struct {
	ID, Name, Arguments string
}

// File stands for a part that is neither text nor an image: a document, audio, video, or one that the dialect does not know.
type File struct {
	Kind    string // FileDocument, FileAudio, FileVideo, or what the part itself says
	Name    string // empty if it has none
	ID      string // under which upstream keeps it, empty if it has none
	Format  string // media type, or the end of its name, as "pdf"; empty if unknown
	Bytes   int    // size of inline data, 0 if it is elsewhere
	Seconds int    // about how long audio or video takes, 0 if unknown
}

// What files are.
const (
	FileDocument = "file"
	FileAudio    = "audio"
	FileVideo    = "video"
)

// Image stands for an image part. Width and Height are 0 where they are unknown (a URL); Bytes is the size of inline
// data.
type Image struct {
	Detail        string
	Width, Height int
	Bytes         int
}
