package session

import (
	"slices"
	"time"
)

// ThreadID identifies one linear history.
type ThreadID string

// SessionID identifies one conversation or agent run, as a user would count them.
type SessionID string

// Thread is the record of one linear history.
type Thread struct {
	ID      ThreadID
	Session SessionID
	Tenant  string
	Purpose Purpose
	Dialect string // wire protocol of its messages, empty for Chat Completions

	Origin

	Len    int    // positions logged, including those shared with the parent
	Head   Hash   // chain hash at position Len
	System Hash   // SystemDigest of the system messages last seen
	Seq    uint64 // log entries written; the next one gets Seq+1

	Requested uint64 // log entry of the pending condensation request, 0 if there is none
	Requests  int    // number of appends, which the store counts: requests with new messages, but not repeated ones

	Shares []ThreadID // other threads of its session whose logs hold content of its entries (Event.Ref)

	Lists
	Created, Seen time.Time
}

// Origin is where a thread comes from. It is zero if the thread begins a conversation.
type Origin struct {
	Parent  ThreadID // the thread it was forked from or linked to
	ForkAt  int      // positions shared with the parent, 0 if it is only linked
	Caller  ThreadID // the newest thread of the session key that the client named as its parent; for operators only, empty if unknown
	Follows ThreadID // the predecessor: the thread of the session that logged its newest answers before; empty if that is the parent
	Lost    int      // how many threads in a row, including this one, could not carry over the summary of their predecessor
}

// Lists are the condensations and replacements of a thread, without their texts. They include those carried over when it began.
type Lists struct {
	Condensations []Condensation
	Replacements  []Condensation
}

// Event is one immutable record in a thread's log.
type Event struct {
	Seq     uint64 // assigned by the store, starting with 1
	Pos     int    // position in the chain, 0 for system messages and log-only kinds
	After   int    // for a system message, the position of the message before it when it was logged; apart if it is Message.Apart
	Kind    Kind
	Digest  Hash
	Chain   Hash // chain hash up to and including this message; for a system message that upstream added to what it keeps, up to there; else zero
	Tokens  int
	Time    time.Time
	Payload []byte // the message's raw bytes, empty if content is not stored or Ref is set

	Ref EntryID // reference to another thread's entry that stores the payload of the same message, see ReadContent

	Encrypted bool // Payload or Ref is stored encrypted
}

// EntryID identifies a log entry.
type EntryID struct {
	Thread ThreadID
	Seq    uint64
}

// Place is a position in a thread, to which a chain hash or a trace points.
type Place struct {
	Thread   ThreadID
	Session  SessionID
	Pos      int
	Tokens   int    // of all chained messages up to Pos
	Encoding string // of Tokens
}

// Known reports whether p is not the zero Place, which stands for a hash that was not found.
func (p Place) Known() bool { return p.Thread != "" }

// MaxThreads is how many threads, the newest ones, the record of a session lists. There is a limit because a session whose key is used
// forever has more and more threads.
const MaxThreads = 512

// MaxNames is how many session keys the record of a session lists in addition to the one that began it.
const MaxNames = 64

// Session is the record of a conversation.
type Session struct {
	ID            SessionID
	Tenant        string
	Key           string     // the session key that began it, empty if none
	Names         []string   // the other session keys of its clients, such as those of sub-agents: the first MaxNames, oldest first
	Threads       []ThreadID // the newest MaxThreads, oldest first
	Requests      int        // appends to its threads, as Thread.Requests
	Created, Seen time.Time
}

// AddKey adds a session key to those by which the session is found.
func (s *Session) AddKey(key string) {
	switch {
	case key == "" || s.HasKey(key):
	case s.Key == "":
		s.Key = key
	case len(s.Names) < MaxNames:
		s.Names = append(s.Names, key)
	}
}

// HasKey reports whether a session key is one of the session's.
func (s *Session) HasKey(key string) bool { return s.Key == key || slices.Contains(s.Names, key) }

// Purpose is what a thread is for, as far as its content shows.
type Purpose string

const (
	PurposeMain       Purpose = "main"
	PurposeTitle      Purpose = "title"      // names the conversation
	PurposeSuggestion Purpose = "suggestion" // guesses what the user types next
	PurposeCompaction Purpose = "compaction" // the agent's own summary of its history
	PurposeKept       Purpose = "kept"       // upstream stores the history
	PurposeProbe      Purpose = "probe"      // asks for one token only, to test whether the history is accepted or to count its tokens
)

// Branches reports whether a request of this purpose appends its own last message to a history that goes on without it.
// Such a message must not become part of the history's thread.
func (p Purpose) Branches() bool { return p == PurposeSuggestion || p == PurposeCompaction }

// Spares reports whether a request of this purpose is forwarded without condensing its history as long as the history fits
// the model's window.
func (p Purpose) Spares() bool { return p == PurposeCompaction || p == PurposeProbe }
