package split

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
)

// management is the member of a body that asks upstream to edit or compact the history.
const management = "context_management"

// StripManagement removes the context_management member of a body and passes it to read. If there is no such member, it
// returns the zero value.
func StripManagement(body []byte, read func(rawjson.Value, *dialect.ContextManagement)) (m dialect.ContextManagement) {
	if !rawjson.MayHold(body, management) || rawjson.Valid(body, 0) != nil {
		return m
	}
	found := false
	rest := FilterMembers(body, func(name string, v *rawjson.Value) bool {
		switch name {
		case management:
			found = true
			read(*v, &m)
			return false
		case "model":
			m.Model = Truncate(v.Text())
		}
		return true
	})
	if !found {
		return dialect.ContextManagement{}
	}
	m.Rest = append(rest, '}')
	return m
}

// Ask replaces the history of a body and removes the given members, as well as those that request a stream, choose a tool
// or manage the history. It reports whether the client asked for a stream. The result lacks its closing brace, so that the
// caller can append members.
func Ask(body []byte, list string, history func(rawjson.Value) []byte, drop ...string) (asked []byte, streamed bool) {
	asked = FilterMembers(body, func(name string, v *rawjson.Value) bool {
		switch name {
		case "stream":
			streamed = v.Kind == rawjson.True
			return false
		case "tool_choice", management:
			return false
		case list:
			v.Raw = history(*v)
		}
		return !slices.Contains(drop, name)
	})
	return asked, streamed
}

// CompactionID derives an id from the content of a compaction made by upstream. A history that starts with the compaction
// is recognised by it. It returns "" if the content is not known.
func CompactionID(content string) string {
	if content == "" {
		return ""
	}
	return fmt.Sprintf("compaction %x", sha256.Sum256([]byte(content)))
}

// OpenAI has the methods of a dialect that are the same in all of OpenAI's APIs.
type OpenAI struct{}

// CacheTTL returns how long a body asks upstream to keep its prefix in the prompt cache, or 0 if it does not say. Gateways to Anthropic's
// models accept Anthropic's cache marks, of which the shortest counts. Marks of five minutes are ignored, as OpenAI's models ignore them.
// https://platform.openai.com/docs/guides/prompt-caching
func (OpenAI) CacheTTL(body []byte) time.Duration {
	const retention = "prompt_cache_retention"
	if bytes.Contains(body, []byte(retention)) && Member(rawjson.ValueOf(body), retention).Text() == "24h" {
		return 24 * time.Hour
	}
	if marks := Marks(nil, body); len(marks) > 0 && !slices.ContainsFunc(marks, IsShort) {
		return time.Hour
	}
	return 0
}

// IsShort reports whether a cache mark lasts five minutes, the default, and not an hour.
func IsShort(mark []byte) bool { return !bytes.Contains(mark, []byte(`"1h"`)) }

// Marks appends Anthropic's cache marks in a JSON text, in order. It skips tool inputs and schemas, where the key has no meaning.
func Marks(to [][]byte, raw []byte) [][]byte {
	const mark = "cache_control"
	if !bytes.Contains(raw, []byte(mark)) {
		return to
	}
	switch v := rawjson.ValueOf(raw); v.Kind {
	case rawjson.Array:
		for element := range rawjson.Elements(raw) {
			to = Marks(to, element.Raw)
		}
	case rawjson.Object:
		for key, member := range rawjson.Members(raw) {
			switch name, object := string(key.Raw), member.Kind == rawjson.Object; {
			case name == mark && object:
				to = append(to, member.Raw)
			case !object || name != "input" && name != "input_schema" && name != "parameters":
				to = Marks(to, member.Raw)
			}
		}
	}
	return to
}

// Failure encodes an error.
func (OpenAI) Failure(f dialect.Failure) []byte { return f.OpenAI() }

// Key returns the header of a bearer token.
func (OpenAI) Key(key string) (name, value string) { return "Authorization", "Bearer " + key }
