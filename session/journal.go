package session

import (
	"context"
	"time"
)

// Journal keeps figures about requests apart from the log: for each session a list of small entries, and totals by period. It does not
// interpret them. Every store implements it. Its calls are made off the path of requests.
type Journal interface {
	// WriteJournal appends entries to the journals of their sessions and adds to totals. Entries of sessions that the
	// store does not have are dropped. If the call fails, some of it may have been written; a call with the same batch completes it and
	// counts nothing twice, as long as its writer has not written another one in between.
	WriteJournal(ctx context.Context, b JournalBatch) error
	// ReadJournal reads a session's entries with numbers below before, or the newest if before is 0: at most limit of them, newest first.
	ReadJournal(ctx context.Context, id SessionID, before uint64, limit int) ([]JournalEntry, error)
	// FindJournal returns the session that has the newest entry with a name. ErrNotFound if none is known.
	FindJournal(ctx context.Context, name Hash) (SessionID, error)
	// Totals reads all totals of a period, in no particular order.
	Totals(ctx context.Context, period string) ([]Total, error)
}

// JournalBatch is a number of entries and totals that are written together.
type JournalBatch struct {
	Writer  string // identifies the process that writes
	Number  uint64 // of the batch among those of its writer
	Entries []JournalEntry
	Totals  []Total
}

// JournalEntry is one entry of a session's journal.
type JournalEntry struct {
	Session SessionID
	Name    Hash   // by which the entry's session is found; zero: by none. It is not read back, and goes with its session
	Number  uint64 // assigned by the store, ascending within the session
	Value   []byte
}

// Total is a row of integers that belong to a period. Adding to a row adds to each of its integers.
type Total struct {
	Period string // such as a day; letters, digits and hyphens
	Row    string
	Values []int64
}

// MaxJournal is how many entries a session's journal keeps at least: the newest ones.
const MaxJournal = 10_000

// How long a store keeps what belongs to no session: the names of entries, and totals, after they were last written to.
const (
	JournalNamesFor = 45 * 24 * time.Hour
	TotalsFor       = 400 * 24 * time.Hour
)
