package messages

import (
	"bytes"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
)

// maxMarks is the API's limit for cache marks in a request:
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
const maxMarks = 4

// Mark implements dialect.Marker. A mark may not last longer than one before it, so the added mark is a copy of the client's
// next one. If there is none, it is a copy of the client's shortest.
func (d *Dialect) Mark(r *dialect.Request, messages [][]byte, at int) []byte {
	if !bytes.Contains(r.Body, []byte("cache_control")) {
		return messages[at]
	}
	before, after := split.Marks(nil, r.Outside()), [][]byte(nil)
	for i, raw := range messages {
		switch {
		case formOf(raw) == system: // part of Outside
		case i < at:
			before = marksIn(before, raw)
		default:
			after = marksIn(after, raw)
		}
	}
	if n := len(before) + len(after); n == 0 || n >= maxMarks {
		return messages[at]
	}
	if len(after) > 0 {
		return withMark(messages[at], after[0])
	}
	return withMark(messages[at], before[max(slices.IndexFunc(before, split.IsShort), 0)])
}

// Blocks implements dialect.Marker.
func (d *Dialect) Blocks(message []byte) int {
	blocks, _ := blocksOf(message)
	return len(blocks)
}

// marksIn appends the marks in a message, which may be several blocks of one.
func marksIn(to [][]byte, message []byte) [][]byte {
	return split.Marks(to, split.List([][]byte{message}))
}

// CacheTTL returns the lifetime of the shortest mark. The end of the history lives no longer than that, since no mark may
// outlast one before it.
func (d *Dialect) CacheTTL(body []byte) time.Duration {
	all := split.Marks(nil, body)
	switch {
	case len(all) == 0:
		return 0
	case slices.ContainsFunc(all, split.IsShort):
		return 5 * time.Minute
	}
	return time.Hour
}

// withMark adds a mark to the record with which a message begins.
func withMark(message, mark []byte) []byte {
	all, err := blocksOf(message)
	if err != nil || len(all) == 0 {
		return message
	}
	all[0] = split.WithMember(all[0], "cache_control", mark)
	return split.WithMember(message, "content", split.List(all))
}
