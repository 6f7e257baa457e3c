package boltstore

import (
	"encoding/binary"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// bucket names one kind of record. A key in memory is the bucket's byte and then the key in that bucket.
type bucket byte

const (
	meta      bucket = 'm' // format, secret, sizes, accounts
	threads   bucket = 't' // thread -> record
	events    bucket = 'e' // thread, seq -> event
	summaries bucket = 'y' // thread, seq -> summary text
	places    bucket = 'p' // chain hash -> place
	traces    bucket = 'x' // trace -> place
	sessions  bucket = 's' // session -> session
	marked    bucket = 'k' // thread, a digest of them -> traces that it left
	unlisted  bucket = 'u' // session, thread that its record has no room for -> thread
	accounts  bucket = 'b' // tenant, account -> what was spent of it
	savings   bucket = 'v' // thread -> what it saved
	outbox    bucket = 'o' // tenant, time, thread -> nothing; tenant -> how many there are
)

var buckets = [...]bucket{meta, threads, events, summaries, places, traces, sessions, marked, unlisted, accounts, savings, outbox}

// String names a bucket to an operator.
func (b bucket) String() string {
	return map[bucket]string{
		meta: "settings", threads: "threads", events: "log entries", summaries: "summaries", places: "index of histories", traces: "index of traces",
		sessions: "sessions", marked: "traces by thread", unlisted: "threads by session", accounts: "budgets", savings: "savings",
		outbox: "findings to be told of",
	}[b]
}

// optional is a bucket that files of an earlier version do not have: it is made when one is opened.
func (b bucket) optional() bool { return b == accounts || b == savings || b == outbox }

func (b bucket) name() []byte { return []byte{byte(b)} }

func (b bucket) key(name string) string { return string(byte(b)) + name }

func (b bucket) hash(h session.Hash) string { return b.key(string(h[:])) }

// entry is the key of one log entry.
func (b bucket) entry(thread session.ThreadID, seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(b.of(string(thread))), seq))
}

// of begins the keys of all that a thread, a session or a tenant has in a bucket. The id's length goes first, so that no keys of one lie
// among another's.
func (b bucket) of(id string) string {
	return string(append(binary.AppendUvarint([]byte{byte(b)}, uint64(len(id))), id...))
}

// pair is the key of a thread of a session in a bucket.
func (b bucket) pair(id session.SessionID, thread session.ThreadID) string {
	return b.of(string(id)) + string(thread)
}

// owner is the thread that a name under of begins with, empty if it is none.
func owner(name []byte) session.ThreadID {
	n, size := binary.Uvarint(name)
	if size <= 0 || n > uint64(len(name)-size) { //nolint:gosec // size is within name
		return ""
	}
	return session.ThreadID(name[size:][:n])
}

// split gives a key's bucket name and the key in it.
func split(key string) (bucket, name []byte) { return []byte(key[:1]), []byte(key[1:]) }
