// Package store is the contract between the records of sessions and the databases that keep them. A store knows records, logs and index entries,
// and not what they mean: that is written once, in package session/records.
//
// A record has fields, and may have logs. Records of the same group are kept together, so that one commit changes them all or none. Index
// entries are kept apart, under keys of their own, and may be lost: each belongs to a record by what its value begins with.
package store

import (
	"context"
	"math"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// Store keeps records. All methods may be called concurrently and from any replica. When a call has returned, later calls of the same replica see
// its effect. A crash never leaves a commit to one group half done. If the store cannot be reached, a call fails within the store's own
// deadline, with an error that wraps session.ErrUnavailable.
type Store interface {
	// Read reads records and index entries in one round trip.
	Read(ctx context.Context, q Query) (Found, error)
	// Commit changes the records of one group if its conditions hold, and then what depends on that elsewhere.
	Commit(ctx context.Context, c Commit) (Result, error)
	// Log reads a page of a record's log. It returns session.ErrNotFound if the record does not exist.
	Log(ctx context.Context, q LogQuery) (Page, error)
	// Scan lists records of one kind in the store's own order, at least one unless these are the last. While no records are added or deleted,
	// each is listed once. An invalid cursor is session.ErrCursor.
	Scan(ctx context.Context, kind byte, cursor string) (Scanned, error)
	// Lock takes a lock without waiting. It returns session.ErrLocked if another caller has it. It expires ttl after it was taken or last
	// renewed.
	Lock(ctx context.Context, key Key, ttl time.Duration) (session.Lease, error)
	// Late returns how long after a commit its changes to other groups and its index entries may still arrive, 0 if they are part of it.
	Late() time.Duration
	// Ping checks that the store is reachable, healthy and of this version.
	Ping(ctx context.Context) error
	// Close completes pending writes and releases all resources.
	Close() error
}

// Key names a record.
type Key struct {
	Kind  byte
	Group string
	Name  string // of the record in its group, often empty
	Logs  string // the letters of logs of the record that a commit may use: it extends their lives with the record's, and clears them with it
}

// Query says what to read.
type Query struct {
	Records []Select
	Entries []EntryKey
}

// Select selects fields of a record, all if Fields is nil, and the newest entries of a log.
type Select struct {
	Key    Key
	Fields []string
	Log    byte
	Newest int
}

// Found is what was read, in the order of the query.
type Found struct {
	Records []Record
	Entries []string // empty for those that do not exist
}

// Record is a record, or what was selected of it. A record that does not exist has no fields.
type Record struct {
	Fields map[string]string
	Newest []string // entries of a log, oldest first
}

// Exists reports whether any of the fields were found.
func (r Record) Exists() bool { return len(r.Fields) > 0 }

// End returns the name of the field that counts the entries ever written to a log, in decimal digits. The store keeps it.
func End(log byte) string { return "n" + string(log) }

// Recent is the field with the keys of the recent index entries of a record. The store keeps it.
const Recent = "x"

// Commit is one change. The parts with the group of the first one are applied completely or not at all. If the conditions of the others do not
// hold, a store that keeps all groups in one place applies nothing either; other stores have applied the first ones by then, but nothing
// is left of the index entries.
type Commit struct {
	Parts      []Part
	Entries    []Entry    // index entries of the record of the first part, put in this order
	Drop       []EntryKey // index entries that are deleted if they belong to Owner
	Owner      string     // what the values of the record's index entries begin with
	Most       int        // how many recent entries the record keeps: older ones are deleted if they belong to Owner
	RecentKind byte
	Early      bool     // the entries may be put before the conditions are known, which saves a round trip
	While      Cond     // of the record of the first part: if it does not hold once the entries are put, they are withdrawn; none if Field is empty
	Return     []string // fields of the record of the first part to return
}

// Part is the change of one record.
type Part struct {
	Key    Key
	If     []Cond
	Unlock bool    // the record's lock is released
	Renew  Renewal // of the record's life
	Guards bool    // if the conditions do not hold, the index entries are not put either, or withdrawn
	Clear  bool    // the record and its logs are deleted first
	Set    []Field // an empty value deletes the field
	New    []Field // set unless they exist
	Add    []Count
	Log    []Append
	Listed []Field // appended to the value that the field has, after the number of the last entry of the first log appended to, and a colon
	Named  []Field // as Set, with that number appended to the name
	Trim   []Trim
	Keep   time.Duration // how long the record is kept after a change; 0 for the store's TTL
}

// Renewal says when a commit extends the life of a record, of its logs, and of records that one of them renews. A record that the commit creates
// gets a life in any case.
type Renewal byte

// The renewals.
const (
	WhenDue Renewal = iota // now and then, or with the first record of the commit
	Now
	Never // also if Keep says how long the record is kept
)

// Forever keeps a record until it is deleted.
const Forever time.Duration = math.MaxInt64

// Field is a value of a record.
type Field struct{ Name, Value string }

// Count is added to a field that holds a number in decimal digits, 0 if it does not exist.
type Count struct {
	Name string
	N    int64
}

// Append adds entries to a log.
type Append struct {
	Log     byte
	Entries []string
}

// Trim deletes the oldest entries of a log. They still count.
type Trim struct {
	Log  byte
	Keep int // how many of the newest entries stay, at least 1
}

// Test is what a condition tests.
type Test byte

// The tests.
const (
	Is     Test = '=' // the field has the value, or does not exist if the value is empty
	Exists Test = '!'
	Below  Test = '<' // the numbers in the field and in Other together are less than Limit
)

// Cond is a condition.
type Cond struct {
	Field string
	Test  Test
	Value string
	Other string
	Limit int64
}

// EntryKey is the key of an index entry: its kind, and HashLen bytes of a hash.
type EntryKey string

// HashLen is how many bytes of a hash the key of an index entry has.
const HashLen = 20

// Entry is an index entry.
type Entry struct {
	Key    EntryKey
	Value  string
	First  bool // if the key exists, it keeps the value that it has
	Recent bool
}

// Result is the result of a commit.
type Result struct {
	Failed  int       // the part whose conditions do not hold, -1 if all do
	Applied bool      // the parts of the first group were applied
	End     uint64    // the number of the last entry of the first log that the first part appends to
	Sums    [][]int64 // of each part, the values of Add afterwards; only if all are in the first group
	Renewed bool      // the record's life was extended
	Fields  map[string]string
}

// OK reports whether everything was applied.
func (r *Result) OK() bool { return r.Failed < 0 }

// LogQuery selects a page of a log: up to Limit entries from At on (1 is the first) or, if Limit is negative, up to -Limit entries back from At. It
// ends with the entry at which the total size reaches Bytes.
type LogQuery struct {
	Key   Key
	Log   byte
	At    uint64
	Limit int
	Bytes int
}

// Page is a page of a log, in the order in which it was read.
type Page struct {
	End     uint64 // number of the last entry of the log
	First   uint64 // number of the first entry of the page
	Entries []string
}

// Scanned is a page of records, with a cursor behind each.
type Scanned struct {
	Keys    []Key
	Cursors []string
	Next    string // empty after the last record
}
