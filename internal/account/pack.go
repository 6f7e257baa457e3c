package account

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/session"
)

// MaxPacked is the most bytes that a packed step takes.
const MaxPacked = 200

// ErrPacked means that bytes are not a packed step, or one of a later version.
var ErrPacked = errors.New("not a step record of this version")

// packVersion is the first byte of a packed step. A new version adds counts, at their end. Older versions are read.
const packVersion = 2

// countsOf says how many counts the versions of a packed step have.
var countsOf = [...]int{1: 17, packVersion: 18}

// Bounds of what is packed: three bytes for a number, six for an amount of money.
const (
	maxNumber = 1<<21 - 1
	maxMoney  = 1<<41 - 1
)

// Precision of packed times: that of what the proxy takes, and of what takes long.
const (
	tick     = 100 * time.Microsecond
	longTick = time.Millisecond
)

// epoch is the time from which packed times count, in milliseconds.
const epoch = 1_700_000_000_000

// Pack returns a step in at most MaxPacked bytes. Numbers that are too large are cut to the largest that is packed, and names that do not fit
// to their beginning: those of the model, the client and the tenant, in this order. Request ids and threads are always whole.
func Pack(s *Step) []byte {
	p := append(make(packer, 0, MaxPacked), packVersion)
	p.number(positive(s.Begun.UnixMilli() - epoch))
	p.number(s.flags())
	for _, n := range s.counts() {
		p.number(min(positive(int64(*n)), maxNumber))
	}
	for _, t := range s.spans() {
		p.number(min(positive(int64((*t.of+t.precision/2)/t.precision)), maxNumber))
	}
	for _, nano := range [...]int64{s.Charged, s.Saved} {
		p = binary.AppendVarint(p, min(max(nano, -maxMoney), maxMoney))
	}
	p.thread(s.Thread)
	room := maxWords
	for _, w := range s.words() {
		room -= p.word(*w, room)
	}
	p.text(s.Request, maxRequest)
	for _, name := range [...]string{s.Tenant, s.Agent, s.Version, s.Model} {
		p.text(name, max(MaxPacked-len(p)-namesAfter, 0))
	}
	return p
}

// maxRequest is the length of the longest request id that is packed, in bytes. namesAfter is the room that is left for the lengths of names.
const (
	maxRequest = 64
	namesAfter = 4
)

// Unpack returns the step that Pack packed.
func Unpack(b []byte) (s Step, err error) {
	u := unpacker{rest: b}
	version := int(u.byte())
	if version == 0 || version > packVersion {
		return s, ErrPacked
	}
	s.Begun = time.UnixMilli(int64(u.uvarint()) + epoch).UTC() //nolint:gosec // Pack writes no negative number
	s.setFlags(u.uvarint())
	for _, n := range s.counts()[:countsOf[version]] {
		*n = int(u.uvarint()) //nolint:gosec // at most maxNumber
	}
	for _, t := range s.spans() {
		*t.of = time.Duration(u.uvarint()) * t.precision //nolint:gosec // at most maxNumber
	}
	s.Charged, s.Saved = u.varint(), u.varint()
	s.Thread = u.thread()
	for _, w := range s.words() {
		*w = u.word()
	}
	s.Request, s.Tenant, s.Agent, s.Version, s.Model = u.text(), u.text(), u.text(), u.text(), u.text()
	if u.bad {
		return Step{}, ErrPacked
	}
	return s, nil
}

// counts returns the counts of a step in the order in which they are packed.
func (s *Step) counts() *[18]*int {
	p := &s.Parts
	return &[...]*int{
		&s.Answer, &s.Status, &s.Input, &s.Cached, &s.Written, &s.WrittenLong, &s.Output, &s.Before.Events, &s.Before.Tokens, &s.After.Events, &s.After.Tokens,
		&p.System, &p.Tools, &p.Head, &p.Record, &p.Kept, &p.New,
		&s.SplitAt,
	}
}

// span is a time of a step, and the precision with which it is packed.
type span struct {
	of        *time.Duration
	precision time.Duration
}

// spans returns the times of a step in the order in which they are packed, behind the counts.
func (s *Step) spans() [8]span {
	t := &s.Times
	return [...]span{
		{&t.Read, tick},
		{&t.Resolve, tick},
		{&t.Overhead, tick},
		{&t.Held, tick},
		{&t.Waited, longTick},
		{&t.Upstream, longTick},
		{&t.Answer, longTick},
		{&t.Whole, longTick},
	}
}

// flags returns how many condensations were made, up to 15, and whether upstream reported the usage.
func (s *Step) flags() uint64 {
	n := min(positive(int64(s.Made)), 15) << 1
	if s.Reported {
		n |= 1
	}
	return n
}

func (s *Step) setFlags(n uint64) { s.Reported, s.Made = n&1 == 1, int(n>>1) }

// words returns the texts of a step that usually have few values.
func (s *Step) words() [7]*string {
	return [...]*string{&s.Protocol, &s.Code, (*string)(&s.Due), &s.Did, &s.Whole, (*string)(&s.Miss), (*string)(&s.Split)}
}

func positive(n int64) uint64 { return uint64(max(n, 0)) }

type packer []byte

func (p *packer) number(n uint64) { *p = binary.AppendUvarint(*p, n) }

// text appends a text, of which at most longest bytes.
func (p *packer) text(s string, longest int) {
	s = s[:min(len(s), longest, 0xff)]
	*p = append(append(*p, byte(len(s))), s...) //nolint:gosec // short
}

// maxWords is how many bytes the unknown words of a step may take together.
const maxWords = 9

// word appends the number of a known word, or 0 and the beginning of the word, for which there is room. It returns what that took of the room.
func (p *packer) word(s string, room int) int {
	i := slices.Index(words[:], s)
	if i < 0 && room <= 1 {
		i = 0
	}
	if i >= 0 {
		*p = append(*p, byte(i+1))
		return 0
	}
	*p = append(*p, 0)
	p.text(s, room-1)
	return 1 + min(len(s), room-1)
}

// maxThread is the length of the longest unusual thread id that is packed, in bytes.
const maxThread = 15

// thread appends a thread's id: in half its length if it is hexadecimal, as the engine makes them.
func (p *packer) thread(id session.ThreadID) {
	if raw, err := hex.DecodeString(string(id)); err == nil && hex.EncodeToString(raw) == string(id) && len(raw) <= 16 {
		*p = append(append(*p, byte(len(raw))), raw...) //nolint:gosec // at most 16
		return
	}
	*p = append(*p, 0x80)
	p.text(string(id), maxThread)
}

type unpacker struct {
	rest []byte
	bad  bool
}

func (u *unpacker) take(n int) []byte {
	if n < 0 || n > len(u.rest) {
		u.bad, u.rest = true, nil
		return nil
	}
	head := u.rest[:n]
	u.rest = u.rest[n:]
	return head
}

func (u *unpacker) byte() byte {
	if b := u.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (u *unpacker) uvarint() uint64 {
	n, size := binary.Uvarint(u.rest)
	if size <= 0 {
		u.bad = true
		return 0
	}
	u.take(size)
	return n
}

func (u *unpacker) varint() int64 {
	n, size := binary.Varint(u.rest)
	if size <= 0 {
		u.bad = true
		return 0
	}
	u.take(size)
	return n
}

func (u *unpacker) text() string { return string(u.take(int(u.byte()))) }

func (u *unpacker) word() string {
	n := int(u.byte())
	switch {
	case n == 0:
		return u.text()
	case n <= len(words):
		return words[n-1]
	}
	u.bad = true
	return ""
}

func (u *unpacker) thread() session.ThreadID {
	n := u.byte()
	if n == 0x80 {
		return session.ThreadID(u.text())
	}
	return session.ThreadID(hex.EncodeToString(u.take(int(n))))
}

// words are the known words, each packed as one byte. Words are only added, at the end.
var words = [...]string{
	"", "chat", "messages", "responses",
	"economics", "events", "tokens", "window", "request", "overflow", "arrival", "size", "aside", "knowledge",
	"below", "done", "excerpts", "shaped", "failed", "cooling", "uncut", "loop", "preparing", "locked", "refused", "again", "held_out", "kept_upstream",
	"observed", "off", "store_away", "failed:timeout", "failed:deadline", "failed:busy", "failed:refused", "failed:store", "failed:empty",
	"client_gone", "upstream_broken", "upstream_unfinished", "upstream_4xx", "upstream_5xx", "internal_error", "upstream_unreachable", "upstream_timeout",
	"budget_spent", "session_budget_spent",
	"user_changed", "answer_changed", "result_changed", "left_out", "inserted", "side_request", "unknown_history", "unread",
	"first", "model_changed", "upstream_changed", "tools_changed", "system_changed", "condensed", "sent_whole", "concurrent", "expired", "too_short",
	"not_marked", "not_reported", "provider",
	"gemini",
	"marks_moved",
}
