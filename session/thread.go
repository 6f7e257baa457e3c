package session

import "time"

// ThreadID names one linear history.
type ThreadID string

// SessionID names what a user would call one conversation or agent run.
type SessionID string

// Thread is the record of one linear history.
type Thread struct {
	ID      ThreadID
	Session SessionID
	Tenant  string
	Purpose Purpose
	Dialect string   // wire protocol of its messages; empty: Chat Completions
	Parent  ThreadID // the thread it was forked from or linked to, empty if none
	ForkAt  int      // positions shared with the parent, 0 if linked only

	Len    int    // positions logged, those of the parent included
	Head   Hash   // chain hash of them
	System Hash   // digest of the system messages last seen
	Seq    uint64 // log entries written; the next one gets Seq+1

	Requested uint64 // log entry of the condensation request that is pending, 0 if none is

	Lists
	Created, Seen time.Time
}

// Lists are the condensations and asides of a thread, without their texts; those of the parent up to the fork included.
type Lists struct {
	Condensations []Condensation
	Asides        []Condensation // what stands in the place of answers
}

// Event is one immutable record in a thread's log.
type Event struct {
	Seq     uint64 // given by the store, from 1
	Pos     int    // position in the chain, 0 for system messages and log-only kinds
	After   int    // of a system message: the position of the message before it, when it was logged
	Kind    Kind
	Digest  Hash
	Chain   Hash // chain hash up to and including this message, zero for Pos 0
	Tokens  int
	Time    time.Time
	Payload []byte // the message's raw bytes, empty where content is not kept
}

// Place is what a chain hash stands for: a position in a thread.
type Place struct {
	Thread   ThreadID
	Session  SessionID
	Pos      int
	Tokens   int    // of all chained messages up to here
	Encoding string // in which Tokens was counted
}

// Known reports whether p was found at all.
func (p Place) Known() bool { return p.Thread != "" }

// MaxThreads is how many threads the record of a session lists: the newest. A key that is used for ever begins one after
// the other.
const MaxThreads = 512

// Session is the record of a conversation.
type Session struct {
	ID            SessionID
	Tenant        string
	Key           string     // the client's session key, empty if none
	Threads       []ThreadID // at most MaxThreads, in the order in which they began
	Created, Seen time.Time
}

// Purpose says what a thread is for, as far as its content tells.
type Purpose string

// The purposes.
const (
	PurposeMain       Purpose = "main"
	PurposeTitle      Purpose = "title"      // names the conversation
	PurposeSuggestion Purpose = "suggestion" // guesses what the user types next
	PurposeCompaction Purpose = "compaction" // the agent's own summary of its history
	PurposeKept       Purpose = "kept"       // upstream keeps the history: it is logged, and never condensed
	PurposeProbe      Purpose = "probe"      // asks for one token, to see whether the history is taken, or what it takes
)

// Branches reports whether a request of this purpose hangs a last message of its own on a history that goes on without
// it, so that it must not become part of that history's thread.
func (p Purpose) Branches() bool { return p == PurposeSuggestion || p == PurposeCompaction }

// Spares reports whether the history is not condensed for a request of this purpose, as long as it fits the model's window.
func (p Purpose) Spares() bool { return p == PurposeCompaction || p == PurposeProbe }
