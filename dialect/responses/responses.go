// Package responses is the dialect of OpenAI's Responses API: POST /v1/responses.
//
// What a model said in one turn stands there as several items: its reasoning, a message, its calls. They need each other (a
// reasoning item is refused without the item that follows it, and the reverse), so that a run of such items is one message to the
// rest of the house: its raw text is the items with the commas between them. Each result of a call, each message of a user and each
// system message is a message of its own. Items of unknown types count as what a model said, and so are never parted from those
// around them. The instructions, which stand outside the list, are the first message, and so is a compaction of upstream's own, which
// stands for what it hides, a system message: it is kept. The raw text of a message tells which it is:
//
//	{...}           an item
//	{...}, {...}    items of one turn
//	"..."           the instructions
//
// A history that upstream keeps (previous_response_id, conversation) is not in the request, which says where it is (dialect.Request.Kept).
//
// https://platform.openai.com/docs/api-reference/responses/create
package responses

import (
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is where the dialect is served, below the base URL.
const Path = "/responses"

// CountPath is where clients ask how many tokens a request has.
const CountPath = "/responses/input_tokens"

// CompactPath is where clients ask for a history as one item.
const CompactPath = "/responses/compact"

// list is the member of a body that holds the history.
const list = "input"

// Dialect implements dialect.Dialect. Make one with New.
type Dialect struct{ bodies *split.Splitter }

var (
	_ dialect.Dialect = (*Dialect)(nil)
	_ dialect.Opener  = (*Dialect)(nil)
)

// New makes the dialect.
func New(o split.Options) *Dialect {
	return &Dialect{split.New(split.Format{
		List: list, Element: "an item",
		Members: []string{"max_output_tokens", "instructions", "store", "previous_response_id", "conversation"},
		Version: version, Texts: texts, Drop: []string{"annotations", "logprobs"},
		Skip: func(rawjson.Value) bool { return false }, Reader: newReader,
	}, o)}
}

// Name is "responses".
func (d *Dialect) Name() string { return "responses" }

// Keeps implements dialect.Keeper.
func (d *Dialect) Keeps(body []byte) time.Duration { return split.Keeps(body) }

// Split checks and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(body []byte) (*dialect.Request, error) { return d.bodies.Split(body, finish) }

func finish(w *split.Walker, r *dialect.Request) {
	r.MaxOutput = split.Integer(w.Member("max_output_tokens"))
	r.Stores = w.Member("store").Kind != rawjson.False
	r.Kept = session.Kept{Answer: split.Cut(w.Member("previous_response_id").Text()), Conversation: conversation(w.Member("conversation"))}
	if told := w.Member("instructions"); told.Kind == rawjson.String && len(told.Inner()) > 0 {
		first := session.Message{Raw: told.Raw, Kind: session.System, Digest: messageDigest(w.Digest(), "system", told)}
		r.Messages = append([]session.Message{first}, r.Messages...)
	}
}

// conversation is the id of one, which stands alone or in an object.
func conversation(v rawjson.Value) string {
	if v.Kind == rawjson.Object {
		v = split.Member(v, "id")
	}
	return split.Cut(v.Text())
}

// Note writes a user message that carries text. What is not UTF-8 in it becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return written("user", "input_text", text) }

// Reply writes an assistant message that carries text.
func (d *Dialect) Reply(text string) []byte { return written("assistant", "output_text", text) }

func written(role, part, text string) []byte {
	out := make([]byte, 0, len(text)+len(text)/16+96)
	out = append(out, `{"type":"message","role":"`+role+`","content":[{"type":"`+part+`","text":`...)
	return append(rawjson.AppendQuote(out, text), "}]}"...)
}

// Failure writes an error in OpenAI's shape.
func (d *Dialect) Failure(f dialect.Failure) []byte { return f.OpenAI() }

// Event writes an error as an event of a stream.
// https://platform.openai.com/docs/api-reference/responses-streaming/error
func (d *Dialect) Event(failure []byte) []byte {
	out := []byte(`event: error` + "\n" + `data: {"type":"error","sequence_number":0`)
	for _, name := range [...]string{"message", "param", "code"} {
		if v := split.Member(rawjson.ValueOf(failure), "error", name); v.Kind != 0 {
			out = split.AppendMember(out, rawjson.Key{Raw: []byte(name)}, v.Raw)
		}
	}
	return append(out, "}\n\n"...)
}

// Key sends a key as a bearer token.
func (d *Dialect) Key(key string) (name, value string) { return "Authorization", "Bearer " + key }
