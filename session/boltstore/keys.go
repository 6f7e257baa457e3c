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
	switch b {
	case meta:
		return "settings"
	case threads:
		return "threads"
	case events:
		return "log entries"
	case summaries:
		return "summaries"
	case places:
		return "index of histories"
	case traces:
		return "index of traces"
	case sessions:
		return "sessions"
	case marked:
		return "traces by thread"
	case accounts:
		return "budgets"
	case savings:
		return "savings"
	case outbox:
		return "findings to be told of"
	}
	return "threads by session"
}

// optional is a bucket that files of an earlier version do not have: it is made when one is opened.
func (b bucket) optional() bool { return b == accounts || b == savings || b == outbox }

func (b bucket) name() []byte { return []byte{byte(b)} }

func (b bucket) key(name string) string { return string(byte(b)) + name }

func (b bucket) hash(h session.Hash) string {
	var k [1 + len(h)]byte
	k[0] = byte(b)
	copy(k[1:], h[:])
	return string(k[:])
}

// entry is the key of one log entry. The id's length goes first, so that no thread's keys lie among another's.
func (b bucket) entry(thread session.ThreadID, seq uint64) string {
	return string(binary.BigEndian.AppendUint64(b.of(thread, 8), seq))
}

// of begins the keys of all that a thread has in a bucket.
func (b bucket) of(thread session.ThreadID, more int) []byte {
	k := make([]byte, 0, 1+binary.MaxVarintLen16+len(thread)+more)
	k = append(k, byte(b))
	k = binary.AppendUvarint(k, uint64(len(thread)))
	return append(k, thread...)
}

// pair is the key of a thread of a session in a bucket.
func (b bucket) pair(id session.SessionID, thread session.ThreadID) string {
	return string(append(b.of(session.ThreadID(id), len(thread)), thread...))
}

// owner is the thread that a name under of begins with, empty if it is none.
func owner(name []byte) session.ThreadID {
	n, size := binary.Uvarint(name)
	if size <= 0 || n > uint64(len(name)-size) { //nolint:gosec // size is within name
		return ""
	}
	return session.ThreadID(name[size : size+int(n)]) //nolint:gosec // n is within name
}

// split gives a key's bucket name and the key in it.
func split(key string) (bucket, name []byte) { return []byte(key[:1]), []byte(key[1:]) }
