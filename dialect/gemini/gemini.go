// Package gemini implements the dialect of Gemini's generateContent API, as Google serves it itself, on Vertex AI, and, with the request inside
// another object, for Gemini CLI with a Google account (Code Assist).
//
// As in the Messages API, a user message may contain the results of several calls, and other parts between them. Each result can be hidden or
// kept, so of such a message Split returns every result, and every run of other parts between results, as a separate session.Message. Join
// reassembles them. The system instruction, which is outside the list, is the first message. The raw text of a message shows what it is:
//
//	{"role": ..., "parts": ...}   a whole element of the list, which is a result if that is its only part
//	{"functionResponse": ...}     a result beside other parts; more than once if the client repeats it
//	{...}, {...}                  other parts of a user message, separated by commas
//	[...]                         the parts of the system instruction
//
// Every key may be spelt in camel case or with underscores. The model is in the path, and so is whether the answer is streamed. Calls and
// results need no ids. Where they have none, they belong together by their names and their order.
//
// https://ai.google.dev/api/generate-content
package gemini

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dewpoint-proxy/dewpoint/dialect"
	"github.com/dewpoint-proxy/dewpoint/dialect/split"
	"github.com/dewpoint-proxy/dewpoint/internal/rawjson"
	"github.com/dewpoint-proxy/dewpoint/session"
)

// Dialect implements dialect.Dialect. Create one with New.
type Dialect struct{ bodies *split.Splitter }

var _ dialect.Dialect = (*Dialect)(nil)

// list is the member of a body that holds the history.
const list = "contents"

// members are the other members of a body that are read, each in both spellings.
var members = []string{"systemInstruction", "system_instruction", "generationConfig", "generation_config", "cachedContent", "cached_content"}

// New returns the dialect.
func New(o split.Options) *Dialect {
	format := split.Format{
		List: list, Element: "a content", Members: members,
		Version: version, Skip: func(rawjson.Value) bool { return false },
		Reader: func(w *split.Walker) split.Reader {
			return split.Reader{Keys: contentKeys, Element: (&reader{w: w}).element}
		},
	}
	return &Dialect{split.New(format, o)}
}

// Name returns "gemini".
func (d *Dialect) Name() string { return "gemini" }

// Split validates and slices a body. The error is a *dialect.Error. A request that refers to an explicit cache is not supported: what is cached
// there stands in front of its contents and is not known here.
func (d *Dialect) Split(target string, body []byte) (*dialect.Request, error) {
	at := readTarget(target)
	inner := body
	if at.assist || at.counts {
		inner = requestIn(body).Raw
	}
	var unread *dialect.Error
	r, err := d.bodies.Split(inner, func(w *split.Walker, r *dialect.Request) {
		finish(w, r)
		unread = unreadable(w)
	})
	switch {
	case err != nil:
		return nil, err
	case unread != nil:
		return nil, unread
	}
	if len(inner) < len(body) {
		r.Model = cmp.Or(r.Model, split.Member(rawjson.ValueOf(body), "model").Text())
		from := split.EndOffset(body, rawjson.Value{Raw: inner}) - len(inner)
		r.Body, r.ListSpan = body, dialect.Span{From: from + r.ListSpan.From, To: from + r.ListSpan.To}
	}
	r.Model = cmp.Or(at.model, strings.TrimPrefix(r.Model, "models/"))
	r.Stream, r.Pieces = at.events, at.pieces
	return r, nil
}

// unreadable returns why a request cannot be read although its contents can, or nil.
func unreadable(w *split.Walker) *dialect.Error {
	for i := 0; i < len(members); i += 2 {
		if w.Member(members[i]).Kind != 0 && w.Member(members[i+1]).Kind != 0 {
			return &dialect.Error{Code: dialect.CodeUnsupported, Param: members[i], Message: members[i] + " stands in two spellings"}
		}
	}
	if len(either(w.Member, "cachedContent", "cached_content").Inner()) > 0 {
		return &dialect.Error{Code: dialect.CodeUnsupported, Param: "cachedContent", Message: "the request refers to an explicit cache"}
	}
	return nil
}

// maxChoices is the maximum number of candidates that Gemini writes for one request.
const maxChoices = 8

func finish(w *split.Walker, r *dialect.Request) {
	config := either(w.Member, "generationConfig", "generation_config")
	r.MaxOutput = split.Integer(member(config, "maxOutputTokens", "max_output_tokens"))
	r.Choices = min(split.Integer(member(config, "candidateCount", "candidate_count")), maxChoices)
	system := either(w.Member, "systemInstruction", "system_instruction")
	if parts := split.Member(system, "parts"); parts.Kind == rawjson.Array {
		first := session.Message{Raw: parts.Raw, Kind: session.System, Digest: systemDigest(&w.Digest, parts)}
		r.Messages = append([]session.Message{first}, r.Messages...)
	}
}

// either returns the member that has one of two names.
func either(get func(name string) rawjson.Value, camel, snake string) rawjson.Value {
	if v := get(camel); v.Kind != 0 {
		return v
	}
	return get(snake)
}

// member returns the member of an object that has one of two names.
func member(of rawjson.Value, camel, snake string) rawjson.Value {
	return either(func(name string) rawjson.Value { return split.Member(of, name) }, camel, snake)
}

// Note encodes text as a user message. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Note(text string) []byte { return message("user", textPart(text)) }

// Reply encodes text as a message of the model. Invalid UTF-8 becomes U+FFFD.
func (d *Dialect) Reply(text string) []byte { return message("model", textPart(text)) }

func message(role string, parts ...[]byte) []byte {
	return slices.Concat([]byte(`{"role":"`+role+`","parts":`), split.List(parts), []byte{'}'})
}

func textPart(text string) []byte {
	return append(rawjson.AppendQuote([]byte(`{"text":`), text), '}')
}

// CacheTTL returns 0: Gemini caches prompts by itself, and requests do not say for how long.
func (d *Dialect) CacheTTL([]byte) time.Duration { return 0 }

// Reuse returns nil: whether an answer is streamed is part of the path.
func (d *Dialect) Reuse([]byte, int) []byte { return nil }

// statuses are the names of Google's errors by HTTP status: https://cloud.google.com/apis/design/errors
var statuses = map[int]string{
	401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED",
	499: "CANCELLED", 500: "INTERNAL", 502: "UNAVAILABLE", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

// Failure encodes an error in Google's format, with the stable code as its reason.
func (d *Dialect) Failure(f dialect.Failure) []byte {
	status := cmp.Or(statuses[f.Status], "INVALID_ARGUMENT")
	return fmt.Appendf(nil, `{"error":{"code":%d,"message":%s,"status":%q,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":%s}]}}`,
		f.Status, rawjson.AppendQuote(nil, f.Message), status, rawjson.AppendQuote(nil, f.Code))
}

// Event wraps an encoded error in a stream event.
func (d *Dialect) Event(failure []byte) []byte {
	return slices.Concat([]byte("data: "), failure, []byte("\n\n"))
}

// Key returns the header of a Gemini API key.
func (d *Dialect) Key(key string) (name, value string) { return "X-Goog-Api-Key", key }
