package boltstore

import (
	"encoding/binary"

	"github.com/dewpoint-proxy/dewpoint/session"
	"github.com/dewpoint-proxy/dewpoint/session/internal/codec"
)

// bucket names one kind of record. In memory, a key is the bucket's byte followed by the key in that bucket.
type bucket byte

const (
	meta      bucket = 'm' // format, secret, size, settings, experiments
	threads   bucket = 't' // thread -> record
	events    bucket = 'e' // thread, seq -> event
	summaries bucket = 'y' // thread, seq -> summary text; seq 0 -> prepared condensation
	places    bucket = 'p' // chain hash -> place
	traces    bucket = 'x' // trace -> place
	sessions  bucket = 's' // session -> record
	marked    bucket = 'k' // thread, digest of the value -> lasting traces that the thread left; thread -> its recent traces; thread, block -> answers
	unlisted  bucket = 'u' // session, thread that is not in the session's record -> thread
	accounts  bucket = 'b' // tenant, account -> amount spent
	savings   bucket = 'v' // thread -> its savings
	outbox    bucket = 'o' // tenant -> number of notices; tenant, time, thread -> notice
	journals  bucket = 'j' // session -> number of entries; session, number -> entry
	names     bucket = 'n' // name of a journal's entry -> when it expires, session
	totals    bucket = 'g' // period, row -> when it expires, integers
)

var buckets = [...]bucket{meta, threads, events, summaries, places, traces, sessions, marked, unlisted, accounts, savings, outbox, journals, names, totals}

// added are the buckets that an older file of the same format may lack.
var added = [...]bucket{journals, names, totals}

func (b bucket) name() []byte { return []byte{byte(b)} }

func (b bucket) key(name string) string { return string(byte(b)) + name }

func (b bucket) hash(h session.Hash) string { return b.key(codec.Short(h)) }

// entry returns the key of one log entry.
func (b bucket) entry(thread session.ThreadID, seq uint64) string {
	return string(binary.BigEndian.AppendUint64([]byte(b.prefix(string(thread))), seq))
}

// prefix returns the prefix of all keys that a thread, a session or a tenant has in the bucket. It contains the id's
// length, so that the keys of one id are never among those of another.
func (b bucket) prefix(id string) string {
	return string(append(binary.AppendUvarint([]byte{byte(b)}, uint64(len(id))), id...))
}

// pair returns the key of one thread of a session in the bucket.
func (b bucket) pair(id session.SessionID, thread session.ThreadID) string {
	return b.prefix(string(id)) + string(thread)
}

// owner returns the id in a name that begins with bucket.prefix, empty for any other name.
func owner(name []byte) string {
	n, size := binary.Uvarint(name)
	if size <= 0 || n > uint64(len(name)-size) { //nolint:gosec // size is within name
		return ""
	}
	return string(name[size:][:n])
}

// answeredPrefix returns the prefix of the keys of a thread's answers.
func answeredPrefix(id session.ThreadID) string { return marked.prefix(string(id)) + "a" }

// answered returns the key of a block of a thread's answers. A record for each would take more space.
func answered(id session.ThreadID, pos int) string {
	return string(binary.BigEndian.AppendUint32([]byte(answeredPrefix(id)), uint32(pos/answersInBlock))) //nolint:gosec // a position
}

const answersInBlock = 128 // positions

// split returns a key's bucket and the key in it.
func split(key string) (bucket, name []byte) { return []byte(key[:1]), []byte(key[1:]) }
