// Package messages implements the dialect of Anthropic's Messages API: POST /v1/messages.
//
// A user message may contain the results of several calls, and text between them. Each result can be hidden or kept, so
// Split returns every result, and every run of other blocks between results, as a separate session.Message. Join
// reassembles them. The system prompt, which is outside the list, is the first message. The raw text of a message shows
// what it is:
//
//	{"role": ...}               a whole element of the list
//	{"type": "tool_result" ...} a result
//	{"type": ...}, {...}        other blocks of a user message, separated by commas
//	"..." or [...]              the system prompt
//
// https://docs.claude.com/en/api/messages
package messages

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/assemble"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Path is the path of the endpoint below the base URL.
const Path = "/messages"

// CountPath is the path of the endpoint that counts the tokens of a request.
const CountPath = "/messages/count_tokens"

// list is the member of a body that holds the history.
const list = "messages"

// Dialect implements dialect.Dialect. Create one with New.
type Dialect struct {
	assemble.Tools
	bodies *split.Splitter
}

var (
	_ dialect.Dialect  = (*Dialect)(nil)
	_ dialect.Unbinder = (*Dialect)(nil)
)

// New returns the dialect.
func New(o split.Options) *Dialect {
	format := split.Format{
		List: list, Element: "a message",
		Members: []string{"max_tokens", "system", "thinking", "thread"},
		Version: version, Texts: []string{"text"}, Skip: isThinking,
		Reader: func(w *split.Walker) split.Reader {
			return split.Reader{Keys: messageKeys, Element: (&reader{w: w}).element}
		},
	}
	tools := assemble.Tools{
		Before: "{", Parameters: "input_schema", After: "}", Answer: `{"type":"tool_result","tool_use_id":%s,"content":%s}`,
	}
	return &Dialect{tools, split.New(format, o)}
}

// Name returns "messages".
func (d *Dialect) Name() string { return "messages" }

// Split validates and slices a body. The error is a *dialect.Error.
func (d *Dialect) Split(_ string, body []byte) (*dialect.Request, error) {
	return d.bodies.Split(body, finish)
}

func finish(w *split.Walker, r *dialect.Request) {
	r.MaxOutput = split.Integer(w.Member("max_tokens"))
	r.NeedsReasoning = split.Member(w.Member("thinking"), "type").Is("enabled")
	thread := w.Member("thread") // a history that upstream stores: {"type": "create"}, later {"type": "continue", "previous_message_id": ...}
	r.Stores = thread.Kind == rawjson.Object
	r.Kept.Answer = split.Truncate(split.Member(thread, "previous_message_id").Text())
	if system := w.Member("system"); system.Kind == rawjson.String || system.Kind == rawjson.Array {
		first := session.Message{Raw: system.Raw, Kind: session.System, Digest: w.Digest.Message("system", system)}
		r.Messages = append([]session.Message{first}, r.Messages...)
	}
}

// Note encodes text as a user message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return split.TextMessage("user", text) }

// Reply encodes text as an assistant message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Reply(text string) []byte { return split.TextMessage("assistant", text) }

// Unbind implements dialect.Unbinder: upstream drops thinking that does not match the preceding history, instead of
// rejecting the request.
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking
func (d *Dialect) Unbind(r *dialect.Request) *dialect.Request {
	outside := r.Outside()
	thinking := split.Member(rawjson.ValueOf(outside), "thinking")
	if thinking.Kind != rawjson.Object || split.Member(thinking, "block_binding").Kind != 0 {
		return r
	}
	option := []byte(`,"block_binding":{"prefix_mismatch_behavior":"drop_block"}`)
	return r.Splice(split.EndOffset(outside, thinking)-1, option)
}

// UnbindHeader implements dialect.Unbinder.
func (d *Dialect) UnbindHeader() (name, value string) {
	return "Anthropic-Beta", "thinking-binding-controls-2026-08-01"
}

// Failure encodes an error in Anthropic's format, plus the stable code, which that format lacks.
// https://docs.claude.com/en/api/errors
func (d *Dialect) Failure(f dialect.Failure) []byte {
	kind := cmp.Or(types[f.Status], "invalid_request_error")
	if f.Status >= 500 {
		kind = cmp.Or(types[f.Status], "api_error")
	}
	return fmt.Appendf(nil, `{"type":"error","error":{"type":%q,"message":%s,"code":%s}}`,
		kind, rawjson.AppendQuote(nil, f.Message), rawjson.AppendQuote(nil, f.Code))
}

// types are the types of Anthropic's errors by status.
var types = map[int]string{
	401: "authentication_error", 403: "permission_error", 404: "not_found_error", 413: "request_too_large",
	429: "rate_limit_error", 503: "overloaded_error", 504: "timeout_error",
}

// Event wraps an encoded error in a stream event. A server may encode it as OpenAI does, without the outer type.
func (d *Dialect) Event(failure []byte) []byte {
	if split.Member(rawjson.ValueOf(failure), "type").Kind == 0 {
		failure = slices.Concat([]byte(`{"type":"error",`), failure[1:])
	}
	return slices.Concat([]byte("event: error\ndata: "), failure, []byte("\n\n"))
}

// Key returns the header of an Anthropic API key.
func (d *Dialect) Key(key string) (name, value string) { return "X-Api-Key", key }
