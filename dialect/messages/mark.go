package messages

import (
	"bytes"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// maxMarks is how many blocks of a request may be marked for caching:
// https://docs.claude.com/en/docs/build-with-claude/prompt-caching
const maxMarks = 4

var cacheControl = []byte("cache_control")

// Mark gives the message at a place, which Note wrote, marked as the end of a prefix to be cached, if the client marks others and the
// API takes one more. No mark may last longer than one before it, so that it lasts as long as the client's next, else as its shortest.
func (d *Dialect) Mark(r *dialect.Request, messages [][]byte, at int) []byte {
	if !bytes.Contains(r.Body, cacheControl) {
		return messages[at]
	}
	var after [][]byte
	before := marks(nil, r.Outside())
	for i, raw := range messages {
		switch {
		case formOf(raw) == system: // counted outside
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
		return marked(messages[at], after[0])
	}
	return marked(messages[at], before[max(slices.IndexFunc(before, brief), 0)])
}

// Keeps implements dialect.Keeper: a history is kept as long as its briefest mark, since no mark may outlast one before it.
func (d *Dialect) Keeps(body []byte) time.Duration {
	all := marks(nil, body)
	switch {
	case len(all) == 0:
		return 0
	case slices.ContainsFunc(all, brief):
		return 5 * time.Minute
	}
	return time.Hour
}

// brief reports whether a mark lasts five minutes, which is what it lasts if it does not say an hour.
func brief(mark []byte) bool { return !bytes.Contains(mark, []byte(`"1h"`)) }

// marks adds the marks within a JSON text, in their order. What a tool is given is no block, and has none.
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

// marked gives a message, which is one text, as a block with a mark.
func marked(note, mark []byte) []byte {
	text := split.Member(rawjson.ValueOf(note), "content").Raw
	content := slices.Concat([]byte(`[{"type":"text","text":`), text, []byte(`,"cache_control":`), mark, []byte(`}]`))
	return split.WithMember(note, "content", content)
}
