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

// management is the member of a body that asks upstream to edit or compact the history by itself.
const management = "context_management"

// Manages takes the member that asks upstream to manage the history out of a body, and has it read. Without such a member the zero value is
// given.
func Manages(body []byte, read func(rawjson.Value, *dialect.Managed)) (m dialect.Managed) {
	if !bytes.Contains(body, []byte(management)) || rawjson.Valid(body, 0) != nil {
		return m
	}
	found := false
	rest := Keep(body, func(name string, v *rawjson.Value) bool {
		switch name {
		case management:
			found = true
			read(*v, &m)
			return false
		case "model":
			m.Model = Cut(v.Text())
		}
		return true
	})
	if !found {
		return dialect.Managed{}
	}
	m.Rest = append(rest, '}')
	return m
}

// Ask gives a body with another history, for an answer in one piece, and reports whether the client wants it streamed. The model may call no
// tools. Its end is missing, and so are some members more.
func Ask(body []byte, list string, history func(rawjson.Value) []byte, drop ...string) (asked []byte, streamed bool) {
	asked = Keep(body, func(name string, v *rawjson.Value) bool {
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

// Mark names a compaction that upstream made by what it holds: a history that begins with it is recognised by that.
func Mark(held string) string { return fmt.Sprintf("compaction %x", sha256.Sum256([]byte(held))) }

// Keeps is how long a body of OpenAI's asks for its prefix to be kept in the prompt cache, 0 if it does not say.
// https://platform.openai.com/docs/guides/prompt-caching
func Keeps(body []byte) time.Duration {
	const retention = "prompt_cache_retention"
	if bytes.Contains(body, []byte(retention)) && Member(rawjson.ValueOf(body), retention).Text() == "24h" {
		return 24 * time.Hour
	}
	return 0
}
