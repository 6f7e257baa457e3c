// Package responses implements the dialect of OpenAI's Responses API: POST /v1/responses.
//
// The output of a model in one turn is a list of items: reasoning, a message, calls. They depend on each other: the API
// rejects a reasoning item without the item after it, and the reverse. So Split returns a run of such items as one
// session.Message, whose raw text is the items with the commas between them. Each result of a call, each user message and
// each system message is a message of its own. Items of unknown types count as output of the model, so that they are never
// separated from those around them. A compaction by upstream counts as a system message, since it must not be hidden. The
// instructions, which are outside the list, are the first message. The raw text of a message shows what it is:
//
//	{...}           an item
//	{...}, {...}    items of one turn
//	"..."           the instructions
//
// If upstream stores the history (previous_response_id, conversation), the request only refers to it: see
// dialect.Request.Kept.
//
// https://platform.openai.com/docs/api-reference/responses/create
package responses

import (
	"cmp"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is the path of the endpoint below the base URL.
const Path = "/responses"

// CountPath is the path of the endpoint that counts the tokens of a request.
const CountPath = "/responses/input_tokens"

// CompactPath is the path of the endpoint that compacts a history.
const CompactPath = "/responses/compact"

// list is the member of a body that holds the history.
const list = "input"

// Dialect implements dialect.Dialect. Create one with New.
type Dialect struct {
	split.OpenAI
	assemble.Tools
	bodies *split.Splitter
	items  map[string][]byte // items that messages may refer to, by id
}

var _ dialect.Dialect = (*Dialect)(nil)

// New returns the dialect.
func New(o split.Options) *Dialect {
	format := split.Format{
		List: list, Element: "an item",
		Members: []string{"max_output_tokens", "instructions", "store", "previous_response_id", "conversation"},
		Version: version, Texts: textTypes, Drop: []string{"annotations", "logprobs"},
		Skip: func(rawjson.Value) bool { return false }, Reader: newReader, Kept: kept,
	}
	tools := assemble.Tools{
		Before: `{"type":"function","strict":false,`, Parameters: "parameters", After: "}",
		Answer: `{"type":"function_call_output","call_id":%s,"output":%s}`,
	}
	return &Dialect{Tools: tools, bodies: split.New(format, o)}
}

// Name returns "responses".
func (d *Dialect) Name() string { return "responses" }

// Split validates and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(_ string, body []byte) (*dialect.Request, error) {
	return d.bodies.Split(body, finish)
}

func finish(w *split.Walker, r *dialect.Request) {
	r.MaxOutput = split.Integer(w.Member("max_output_tokens"))
	r.Stores = w.Member("store").Kind != rawjson.False
	r.DefinesTools = slices.ContainsFunc(r.Messages, definesTools)
	if text := w.Member("instructions"); text.Kind == rawjson.String && len(text.Inner()) > 0 {
		first := session.Message{Raw: text.Raw, Kind: session.System, Apart: true, Digest: w.Digest.Message("system", text)}
		r.Messages = append([]session.Message{first}, r.Messages...)
	}
}

// definesTools reports whether a message is an item that defines tools, as current versions of Codex send them.
func definesTools(m session.Message) bool {
	return m.Kind == session.System && m.Lasts && split.Member(rawjson.ValueOf(m.Raw), "type").Is("additional_tools")
}

// kept returns where upstream stores the history that precedes a body's.
func kept(member func(name string) rawjson.Value) (k session.Kept) {
	k.Answer = split.Truncate(member("previous_response_id").Text())
	conversation := member("conversation") // an id, or an object with one
	k.Conversation = split.Truncate(cmp.Or(conversation.Text(), split.Member(conversation, "id").Text()))
	return k
}

var _ dialect.Keeper = (*Dialect)(nil)

// WithHistory implements dialect.Keeper. A conversation cannot be replaced: the client goes on naming it. The request's own instructions
// stay in front.
func (d *Dialect) WithHistory(r *dialect.Request, earlier []session.Message) *dialect.Request {
	if r.Kept.Answer == "" || r.Kept.Conversation != "" {
		return nil
	}
	whole, err := d.Split("", split.WithoutMember(r.Body, "previous_response_id"))
	if err != nil || len(whole.Messages) != len(r.Messages) {
		return nil
	}
	own := r.Messages
	if len(own) > 0 && own[0].Apart {
		earlier, own = slices.Concat(own[:1], earlier), own[1:]
	}
	if len(own) == 0 {
		return nil
	}
	whole.Messages, whole.Fields, whole.Kept = slices.Concat(earlier, own), r.Fields, r.Kept
	return whole
}

// Note encodes text as a user message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return textMessage("user", "input_text", text) }

// Reply encodes text as an assistant message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Reply(text string) []byte { return textMessage("assistant", "output_text", text) }

func textMessage(role, part, text string) []byte {
	out := []byte(`{"type":"message","role":"` + role + `","content":[{"type":"` + part + `","text":`)
	return append(rawjson.AppendQuote(out, text), "}]}"...)
}

// Event converts an encoded error to a stream event.
// https://platform.openai.com/docs/api-reference/responses-streaming/error
func (d *Dialect) Event(failure []byte) []byte {
	out := []byte("event: error\n" + `data: {"type":"error","sequence_number":0`)
	for _, name := range [...]string{"message", "param", "code"} {
		if v := split.Member(rawjson.ValueOf(failure), "error", name); v.Kind != 0 {
			out = split.AppendMember(out, rawjson.Key{Raw: []byte(name)}, v.Raw)
		}
	}
	return append(out, "}\n\n"...)
}
