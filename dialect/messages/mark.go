package messages

import (
	"bytes"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// maxMarks is the API's limit for cache marks in a request:
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
const maxMarks = 4

var cacheControl = []byte("cache_control")

// Mark implements dialect.Marker. A mark may not last longer than one before it, so the added mark is a copy of the client's
// next one. If there is none, it is a copy of the client's shortest.
func (d *Dialect) Mark(r *dialect.Request, messages [][]byte, at int) []byte {
	if !bytes.Contains(r.Body, cacheControl) {
		return messages[at]
	}
	var after [][]byte
	before := marks(nil, r.Outside())
	for i, raw := range messages {
		switch {
		case formOf(raw) == system: // part of Outside
		case i < at:
			before = marks(before, raw)
		default:
			after = marks(after, raw)
		}
	}
	if n := len(before) + len(after); n == 0 || n >= maxMarks {
		return messages[at]
	}
	if len(after) > 0 {
		return withMark(messages[at], after[0])
	}
	return withMark(messages[at], before[max(slices.IndexFunc(before, isShort), 0)])
}

// CacheTTL returns the lifetime of the shortest mark. The end of the history lives no longer than that, since no mark may
// outlast one before it.
func (d *Dialect) CacheTTL(body []byte) time.Duration {
	all := marks(nil, body)
	switch {
	case len(all) == 0:
		return 0
	case slices.ContainsFunc(all, isShort):
		return 5 * time.Minute
	}
	return time.Hour
}

// isShort reports whether a mark lasts five minutes, the default, and not an hour.
func isShort(mark []byte) bool { return !bytes.Contains(mark, []byte(`"1h"`)) }

// marks appends the cache marks in a JSON text, in order. It skips tool inputs and schemas, where the key has no meaning.
func marks(to [][]byte, raw []byte) [][]byte {
	if !bytes.Contains(raw, cacheControl) {
		return to
	}
	switch v := rawjson.ValueOf(raw); v.Kind {
	case rawjson.Array:
		for element := range rawjson.Elements(raw) {
			to = marks(to, element.Raw)
		}
	case rawjson.Object:
		for key, member := range rawjson.Members(raw) {
			switch string(key.Raw) {
			case "cache_control":
				if member.Kind == rawjson.Object {
					to = append(to, member.Raw)
				}
			case "input", "input_schema":
			default:
				to = marks(to, member.Raw)
			}
		}
	}
	return to
}

// withMark converts the string content of a message to a text block with a mark.
func withMark(note, mark []byte) []byte {
	text := split.Member(rawjson.ValueOf(note), "content").Raw
	content := slices.Concat([]byte(`[{"type":"text","text":`), text, []byte(`,"cache_control":`), mark, []byte(`}]`))
	return split.WithMember(note, "content", content)
}
